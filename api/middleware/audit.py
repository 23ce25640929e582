"""Audit log: a line per requested change and per read secret, accepted or rejected, with caller, operation
and stack.

The event is `audit`. The line has the request id, and never a body, a query or a header. With the setting
`audit_required`, a record in the database precedes the effect of the request (`audit_records.py`).
"""

from __future__ import annotations

from typing import Final

from flask import Response, g, request

from api.middleware import audit_records
from api.middleware.authorization import name_of
from orchestrator import logs
from orchestrator.security.caller import Caller
from orchestrator.security.policy import AUDITED

log = logs.logger()

SIGNALS: Final = frozenset({"cfn.signal", "cfn.wait_condition"})  # URLs with a signature


def record(response: Response) -> None:
    """Log the line if the request is audited, and complete its record."""
    name = _name()
    if name not in AUDITED and not g.get("secret_read", False):
        return
    actor: Caller | None = g.get("caller")
    stack = _stack(response)
    audit_records.complete(response.status_code, stack)
    log_change(
        name or "",
        actor,
        stack=stack,
        status=response.status_code,
        project=actor.project_id if actor else (request.view_args or {}).get("project_id"),
        method=request.method,
        path=f"{request.script_root}{request.path}",
        address=request.remote_addr,
    )


def log_change(
    name: str,
    caller_ident: Caller | None,
    *,
    stack: str | None,
    status: int,
    project: str | None,
    method: str,
    path: str,
    address: str | None,
) -> None:
    """Log the line of an audited request; `name` is the policy's name."""
    log.info(
        "audit",
        action=name,
        stack=stack,
        status=status,
        user=caller_ident.user if caller_ident else None,
        user_id=caller_ident.user_id or None if caller_ident else None,
        project=project,
        roles=list(caller_ident.roles) if caller_ident else [],
        is_admin=caller_ident.is_admin if caller_ident else False,
        method=method,
        path=path,
        address=address,
    )


def _name() -> str | None:
    """Return the policy's name of the request, also for unauthenticated requests."""
    policy_name: str | None = g.get("policy_name")
    if policy_name is not None or request.endpoint is None:
        return policy_name
    if request.endpoint in SIGNALS:
        return "resource:signal"
    if request.endpoint == "stacks.act":
        return "actions:action"  # the action is in a body that was not read
    return name_of(request.endpoint, request.method)


def _stack(response: Response) -> str | None:
    """Return `name/id` of the stack, including a new stack; its name alone if the id is unknown."""
    path_values = request.view_args or {}
    if "stack_name" in path_values:
        return "/".join(path_values[key] for key in ("stack_name", "stack_id") if key in path_values)
    if response.status_code == 201:
        return response.headers.get("Location", "").rpartition("/stacks/")[2] or None
    if request.endpoint in SIGNALS:
        return "/".join(path_values["rest"].partition(":stacks/")[2].split("/")[:2])
    if request.blueprint == "cfn":
        values: dict[str, str] = g.get("wanted") or {}
        return values.get("StackName")
    return None
