"""Errors about the state of the server, and sessions that end with them.

Such an error says nothing about the statement: its request is answered 503 and can be repeated, and its task
is retried. The session is closed, because the next session may reach a different server, or the same server
in a different state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

# SQLSTATEs, whole classes (two characters) or single codes, and what they say about the server. Codes without
# an entry are errors of the statement or of this code.
SERVER_STATES: Final[Mapping[str, str]] = {
    "08": "the connection was lost or refused",
    "25006": "the server accepts no writes: it is a standby, or read-only",
    "25P03": "the administrator limits the time between two statements of a transaction",
    "25P04": "the administrator limits the duration of a transaction",
    "28": "the server refuses the role or its password, which an administrator can change at any time",
    "40": "the transaction was ended for another transaction, or by recovery on a standby",
    "53": "the server has no disk space, memory or connections left",
    "54": "a limit of the server was exceeded, such as the depth of its stack",
    "55": "an object is in use or locked, or recovery does not permit the statement yet",
    "57": "an administrator, a timeout, a shutdown or a crash ended the statement or the session",
    "58": "the operating system of the server failed: a disk error, a missing file",
    "F0": "the configuration of the server is broken",
    "XX": "the server found an error in itself or in its data",
}

# The statement was ended for the benefit of another statement; its session is sound. A session ended for each
# of these would add the cost of a connection to every conflict.
SOUND_SESSIONS: Final = ("40P01", "55", "57014")


# The driver's classes of these errors. OperationalError contains most codes, and also the errors without a
# code: a broken connection. InterfaceError: the connection is closed.
OUTAGES: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
    psycopg.errors.TransactionTimeout,
    psycopg.errors.InternalError_,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)


def is_server_state(code: str | None) -> bool:
    """Whether an SQLSTATE is about the state of the server."""
    return code is not None and (code in SERVER_STATES or code[:2] in SERVER_STATES)


def ends_session(error: BaseException) -> bool:
    """Whether the session of an error must not be used again."""
    if not isinstance(error, OUTAGES) or isinstance(error, psycopg.errors.PipelineAborted):
        return False
    return not (error.sqlstate or "").startswith(SOUND_SESSIONS)


class Session(psycopg.Connection[TupleRow]):
    """A connection that closes itself after an error about the state of the server."""

    def wait(self, *arguments: Any, **options: Any) -> Any:
        """Run a request; every request of psycopg is run here."""
        try:
            return super().wait(*arguments, **options)
        except OUTAGES as error:
            if ends_session(error):
                self.close()
            raise
