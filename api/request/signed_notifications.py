"""Notifications without a token: signed like the messages of webhooks (docs/drift.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flask import Request, g

from api.dependencies import app_state, dependencies
from api.middleware import audit_records, turns
from api.request.body import read_body
from orchestrator.engine.messages import Message
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.observation import notified
from orchestrator.security.caller import Caller
from orchestrator.security.webhook_signatures import accept_once, require_signed, signed_message

VIEW: Final = "observations.notify"
POLICY: Final = "observations:notify"


def is_signed(request: Request) -> bool:
    """Whether a signature authenticates a notification. A token takes precedence."""
    headers = request.headers
    return (
        request.endpoint == VIEW
        and request.method == "POST"
        and "webhook-signature" in headers
        and not ("X-Auth-Token" in headers or "Authorization" in headers)
    )


def notify(request: Request, project_id: str) -> Sequence[Message]:
    """Note the objects that a signed notification names; return the messages to be sent.

    Raises:
        InvalidRequest: headers or body are malformed.
        Refused: the signature is wrong, or of no webhook of the project.
        RequestExpired: the message is too old.
        Replayed: it was accepted before.
    """
    deps = dependencies()
    logins = app_state().failed_logins
    id_, timestamp, signatures = (
        request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature")
    )
    message = signed_message(id_, timestamp, signatures)
    with read_body(request, deps.settings, small=True) as received:
        body = received.read()
    given = logins.signature(str(message.webhook), message.signatures, known=True)
    with logins.verifying(request.environ, given):
        require_signed(deps.database, deps.cipher, project_id, message, body)
    g.caller = caller = Caller(project_id, f"webhook {message.webhook}", ())
    app_state().rate_limits.take(request.environ, caller)
    turns.begin(request.environ, project_id)
    g.policy_name = POLICY  # for the audit
    audit_records.begin(POLICY, caller)
    accept_once(deps.database, project_id, message)
    context = OperationContext(deps.database, deps.cipher, caller, deps.settings, deps.types)
    return notified.notify(context, Body(data=body))
