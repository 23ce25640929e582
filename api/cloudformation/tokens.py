"""`ClientRequestToken`: a repeated request with the same token returns the result of the first."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import orjson

from api.cloudformation.arguments import Arguments
from api.cloudformation.names import ARN
from api.dependencies import dependencies, operation_context
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import OperationContext
from orchestrator.store.access import idempotency
from orchestrator.store.access.idempotency import ClientToken, TokenTaken

NAME: Final = "ClientRequestToken"
_TOKEN: Final = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}")
# Signature and response format are not part of the request's identity.
_HOW: Final = re.compile(
    r"ClientRequestToken|AWSAccessKeyId|Signature\w*|Timestamp|Expires|Version|ContentType|X-Amz-.*"
)

Response_ = JsonMapping | None


def once(
    arguments: Arguments, accept: Callable[[OperationContext], Response_], *, with_body: bool
) -> Response_:
    """Run `accept` with the token to record. For a repeated request return the first response; it has the
    stack's id if `with_body`.

    Raises:
        TokenTaken: another request used the token.
    """
    context, token = operation_context(), arguments.text(NAME)
    if token is None:
        return accept(context)
    if not _TOKEN.fullmatch(token):
        arguments.invalid(f"{NAME} is a letter or digit and up to 127 of those and hyphens")
        arguments.check()
    client_token = ClientToken(token, _digest(arguments.given))
    if (previous := _earlier_response(context, client_token)) is not None:
        return previous if with_body else None
    try:
        return accept(replace(context, client_token=client_token))
    except TokenTaken:
        previous = _earlier_response(context, client_token)  # a concurrent repetition won
        if previous is None:
            raise
        return previous if with_body else None


def _digest(parameters: Mapping[str, str]) -> bytes:
    identity = {name: value for name, value in parameters.items() if not _HOW.fullmatch(name)}
    return hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).digest()


def _earlier_response(context: OperationContext, client_token: ClientToken) -> JsonMapping | None:
    """Return the first response to a repeated request.

    Raises:
        TokenTaken: another request used the token.
    """
    project_id = context.caller.project_id
    with dependencies().database.borrow() as db:
        recorded = idempotency.find(db, project_id, client_token.token)
    if recorded is None:
        return None
    if recorded.digest != client_token.digest:
        raise TokenTaken(client_token.token)
    return {"StackId": f"{ARN}{project_id}:stacks/{recorded.stack_name}/{recorded.stack_uuid}"}
