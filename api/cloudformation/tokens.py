"""`ClientRequestToken`: a request that comes again under its token is the one that was accepted."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from api.cloudformation.arguments import Arguments
from api.cloudformation.names import ARN
from api.dependencies import dependencies, operation_context
from orchestrator.operations.context import OperationContext
from orchestrator.store.access import idempotency
from orchestrator.store.access.idempotency import ClientToken, TokenTaken

NAME: Final = "ClientRequestToken"
_TOKEN: Final = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]{0,127}")
# How a request is signed and answered is no part of what it asks.
_HOW: Final = re.compile(
    r"ClientRequestToken|AWSAccessKeyId|Signature\w*|Timestamp|Expires|Version|ContentType|X-Amz-.*"
)

Told = Mapping[str, Any] | None


def once(arguments: Arguments, accept: Callable[[OperationContext], Told], *, told: bool) -> Told:
    """Return what `accept` does, which is given the token to write down; of a request that came before, what
    that was answered, with the stack's id where it is `told`.

    Raises:
        TokenTaken: another request came under its token.
    """
    context, token = operation_context(), arguments.text(NAME)
    if token is None:
        return accept(context)
    if not _TOKEN.fullmatch(token):
        arguments.wrong(f"{NAME} is a letter or digit and up to 127 of those and hyphens")
        arguments.check()
    asked = ClientToken(token, _digest(arguments.given))
    if (before := _before(context, asked)) is not None:
        return before if told else None
    try:
        return accept(replace(context, asked=asked))
    except TokenTaken:
        before = _before(context, asked)  # it came twice at once, and this is the second
        if before is None:
            raise
        return before if told else None


def _digest(given: Mapping[str, str]) -> bytes:
    what = {name: value for name, value in given.items() if not _HOW.fullmatch(name)}
    return hashlib.sha256(orjson.dumps(what, option=orjson.OPT_SORT_KEYS)).digest()


def _before(context: OperationContext, asked: ClientToken) -> Mapping[str, Any] | None:
    """Return what the request was answered when it came before.

    Raises:
        TokenTaken: another request came under its token.
    """
    project_id = context.caller.project_id
    with dependencies().database.borrow() as db:
        found = idempotency.find(db, project_id, asked.token)
    if found is None:
        return None
    if found.digest != asked.digest:
        raise TokenTaken(asked.token)
    return {"StackId": f"{ARN}{project_id}:stacks/{found.stack_name}/{found.stack_uuid}"}
