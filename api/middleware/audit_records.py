"""Audit records in the database, required by the setting `audit_required`.

The record is committed before the request has an effect, or before a secret is sent. If it cannot be written,
the request is refused with 503. The result is added afterwards; a record without a result belongs to a
request whose process or database failed meanwhile.
"""

from __future__ import annotations

from typing import Final

import psycopg
from flask import g, request

from api.dependencies import dependencies
from orchestrator import logs
from orchestrator.errors import Unavailable
from orchestrator.security.caller import Caller
from orchestrator.security.policy import AUDITED
from orchestrator.store.access import audit_records

log = logs.logger()

NOT_WRITTEN: Final = "The audit record of this request cannot be written. Please try again later."


def begin(name: str, caller: Caller) -> None:
    """Write the record of an authorized request if the operation is audited.

    Polls of stack users are logged only: each server sends several per minute.

    Raises:
        Unavailable: the record cannot be written.
    """
    polls = caller.bearer is not None and request.method == "GET"
    if name in AUDITED and not polls:
        _write(name, caller)


def secret_read(name: str, caller: Caller) -> None:
    """Audit a response that contains a secret although the operation is not audited otherwise.

    Raises:
        Unavailable: the record cannot be written.
    """
    g.secret_read = True
    _write(name, caller)


def complete(status: int, stack: str | None) -> None:
    """Add the result to the record of the request, if there is one."""
    record_id: int | None = g.pop("audit_record", None)
    if record_id is None:
        return
    try:
        with dependencies().database.borrow() as db:
            audit_records.complete(db, record_id, str(status), stack)
    except psycopg.Error as error:  # the effect is committed, and the record shows an unknown result
        log.error("audit_result_lost", record=record_id, status=status, error=str(error))


def _write(name: str, caller: Caller) -> None:
    deps = dependencies()
    if not deps.settings.audit_required or "audit_record" in g:
        return
    try:
        with deps.database.borrow() as db:
            g.audit_record = audit_records.begin(
                db,
                name,
                project_id=caller.project_id,
                user_name=caller.user or None,
                origin=request.remote_addr,
                request_id=g.get("request_id"),
            )
    except psycopg.Error as error:
        log.error("audit_record_refused", action=name, error=str(error))
        raise Unavailable(NOT_WRITTEN) from error
