"""New sessions: their settings, and the checks that each can write and has its own server process.

A standby, or a primary that is read-only for the time of a switchover, accepts connections and refuses every
change. Such a session is refused at its start; libpq does the same with `target_session_attrs=read-write`.

The store keeps state in its sessions: prepared statements, settings, advisory locks. PgBouncer in transaction
or statement mode distributes the statements of a session over several server processes; this state is then
lost, or seen by other clients. `open_session` detects such a pooler.

First step, for every connection: PostgreSQL reports the process id of a session at the start of the session,
for cancel requests. A pooler does not know that process yet, and reports a random number. If
`pg_backend_pid()` returns the reported number, no pooler is present. This needs no additional round trip,
because the same statement applies the settings; it also asks whether the session can write.

Second step, behind a pooler, once a minute for each process: end the server process, and observe whether the
session ends. The session sets `idle_session_timeout` to IDLE_MILLISECONDS and waits. With a process of its
own the session ends without a further request. In the other modes an idle session has no server process, so
it does not end, and a later statement runs in a different process. The observation is conclusive in both
directions; comparing two values of `pg_backend_pid()` is not, because an idle pooler uses the same process
repeatedly. A session that ends early proves nothing: a delayed pooler forwards the end of a process together
with its last result. A process that is lent to a different client during the test ends when it is idle.

Settings are applied by statements, not by the startup parameter `options`, which PgBouncer refuses or drops.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql

from orchestrator.errors import Misconfigured

C = TypeVar("C", bound=psycopg.Connection[Any])

# `transaction_read_only` is also on for every transaction of a standby.
PROCESS: Final = sql.SQL(
    "SELECT pg_backend_pid(), current_setting('transaction_read_only') = 'on', pg_is_in_recovery()"
)
# Nothing is changed in a process that may belong to other clients.
PROCESS_AND_SETTINGS: Final = sql.SQL(
    PROCESS.as_string() + ", CASE WHEN pg_backend_pid() = {process} THEN concat({settings}) END"
)
SETTING: Final = sql.SQL("set_config({name}, {value}, false)")
IDLE_MILLISECONDS: Final = 100
END_WHEN_IDLE: Final = f"SET idle_session_timeout = {IDLE_MILLISECONDS}"
# State of earlier clients, if the pooler has no server_reset_query.
RESET: Final = "DISCARD ALL"

TRUST_SECONDS: Final = 60.0  # validity of a test result: the mode of a pooler can be changed at any time
TEST_SECONDS: Final = 10.0

POOLER: Final = (
    "the connection pooler of the database is in transaction or statement mode, which loses prepared"
    " statements, settings and locks: set pool_mode = session for this database in the pooler, or set"
    " ORCHESTRATOR_DATABASE_URL to the address of PostgreSQL itself"
)

NO_WRITES: Final = "the database server accepts no writes"

_tested: dict[
    tuple[str, int, str, str], float
] = {}  # time of the last test, by host, port, database and user


def open_session(connect: Callable[[], C], settings: Mapping[str, str] | None = None) -> C:
    """Return a connection with `settings` and its own server process; `connect` opens it.

    Raises:
        Misconfigured: a pooler distributes the statements of a session over several server processes.
        psycopg.OperationalError: the server is unreachable.
        psycopg.errors.ReadOnlySqlTransaction: the server accepts no writes.
    """
    connection = connect()
    try:
        reported = connection.info.backend_pid
        if _apply(connection, settings or {}, reported) == reported:
            return connection
        address = _address(connection)
        if _tested.get(address, -TRUST_SECONDS) + TRUST_SECONDS < time.monotonic():
            if not _has_own_process(connection):
                raise Misconfigured(POOLER)
            _tested[address] = time.monotonic()
            connection.close()
            connection = connect()
        _reset(connection, settings or {})
    except BaseException:
        connection.close()
        raise
    return connection


def _address(connection: psycopg.Connection[Any]) -> tuple[str, int, str, str]:
    info = connection.info
    return info.host, info.port, info.dbname, info.user


def _apply(connection: psycopg.Connection[Any], settings: Mapping[str, str], process: int) -> int:
    """Apply settings if the session is in `process`; return the id of its process."""
    if not settings:
        return _process(connection)
    assignments = [SETTING.format(name=name, value=value) for name, value in settings.items()]
    statement = PROCESS_AND_SETTINGS.format(process=process, settings=sql.SQL(", ").join(assignments))
    return _writable_process(_run(connection, statement))


def _process(connection: psycopg.Connection[Any]) -> int:
    return _writable_process(_run(connection, PROCESS))


def _writable_process(row: tuple[Any, ...]) -> int:
    process, read_only, in_recovery = row[:3]
    if read_only:
        reason = "it is a standby" if in_recovery else "default_transaction_read_only is on"
        raise psycopg.errors.ReadOnlySqlTransaction(f"{NO_WRITES}: {reason}")
    return int(process)


def _reset(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> None:
    """Replace the state of the session, which an earlier client may have left, by `settings`."""
    name = connection.info.parameter_status("application_name") or ""
    _run(connection, RESET)
    kept = {"application_name": name, "client_encoding": "UTF8"}
    _apply(connection, {**kept, **settings}, _process(connection))


def _has_own_process(connection: psycopg.Connection[Any]) -> bool:
    """Whether the session ends with its server process. If so, the connection is closed afterwards.

    Raises:
        psycopg.OperationalError: the observation was not conclusive, or the server is unreachable.
    """
    process = _process(connection)
    _run(connection, END_WHEN_IDLE)
    readable = select.poll()
    readable.register(connection.fileno(), select.POLLIN)
    deadline = time.monotonic() + TEST_SECONDS
    while (idle_since := time.monotonic()) < deadline:
        if readable.poll(3 * IDLE_MILLISECONDS):  # the server's last message, or the end of the connection
            if time.monotonic() < idle_since + IDLE_MILLISECONDS / 2_000:
                break
            return True
        if _process(connection) != process:
            return False
    raise psycopg.OperationalError("the test for a connection pooler had no result")


def _run(connection: psycopg.Connection[Any], statement: sql.Composable | str) -> tuple[Any, ...]:
    """Run a statement outside of a transaction; return its first row, () if it has none."""
    autocommit = connection.autocommit
    connection.autocommit = True
    try:
        cursor = connection.execute(statement, prepare=False)  # type: ignore[arg-type]  # constants of this module
        row = cursor.fetchone() if cursor.description else None
    finally:
        if not connection.closed:
            connection.autocommit = autocommit
    return tuple(row or ())
