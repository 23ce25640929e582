"""Audit records of server commands: changes of tokens, key pairs, quotas, keys, schema and data."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg

from orchestrator.errors import Misconfigured
from orchestrator.store.access import audit_records
from orchestrator.store.connections.database import Database

DONE = "done"


@dataclass(slots=True)
class AuditEntry:
    """The record of a command in progress; `target` and `result` are stored when the command has ended."""

    target: str | None = None
    result: str = DONE


@contextlib.contextmanager
def audited(
    database: Database, action: str, *, project: str | None, target: str | None = None
) -> Iterator[AuditEntry]:
    """Write the audit record of a command before its effect, and complete it afterwards.

    Raises:
        Misconfigured: the record cannot be written; the command must have no effect.
    """
    entry = AuditEntry(target)
    try:
        with database.borrow() as db:
            record_id = audit_records.begin(
                db,
                action,
                project_id=project,
                user_name=operator(os.environ),
                origin=socket.gethostname(),
                target=target,
            )
    except psycopg.Error as error:
        raise Misconfigured(f"the audit record cannot be written, so nothing was changed: {error}") from error
    try:
        yield entry
    except BaseException as error:
        entry.result = f"failed: {error or type(error).__name__}"
        raise
    finally:
        with contextlib.suppress(psycopg.Error), database.borrow() as db:  # the result is then unknown
            audit_records.complete(db, record_id, entry.result, entry.target)


def operator(environ: Mapping[str, str]) -> str:
    """Return the user of the operating system, with the user of sudo: `os:root sudo:ada`."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without an entry, as in containers
        name = str(os.getuid())
    sudo = environ.get("SUDO_USER")
    return f"os:{name} sudo:{sudo}" if sudo else f"os:{name}"
