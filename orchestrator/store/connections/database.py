"""Connections: a pooled SQLAlchemy engine for the API and for planning, psycopg connections that are lent to
short requests, and a psycopg connection per thread for checks.

Every connection names its process in `application_name`. No other module of the store opens connections.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import orjson
import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_dumps, set_json_loads
from sqlalchemy import Engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from orchestrator.store.connections.batching import Batcher
from orchestrator.store.connections.engines import new_engine
from orchestrator.store.connections.outages import OUTAGES, Session
from orchestrator.store.connections.prepared import PreparedConnection
from orchestrator.store.connections.sessions import open_session

T = TypeVar("T")
Request = TypeVar("Request")
Result = TypeVar("Result")

set_json_loads(orjson.loads)
set_json_dumps(orjson.dumps)

# Statements on hot connections reach every row by its key. A generic plan made while a table was small, or
# after ANALYZE of a graph with a huge fan-out, must not become a sequential scan (docs/internals/ceilings.md
# §3).
HOT_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}


# Idle connections kept per process, hot and others. Opening one costs a request as much as ten statements.
MAX_IDLE = {True: 32, False: 16}
CONNECT_SECONDS = 10  # timeout of a connection attempt
# A server whose machine is down does not answer: its connections break after this time.
NETWORK: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
RETRY_SECONDS = 0.5  # interval between connection attempts during a long outage
# Errors that mean the database was unreachable or aborted the statement, not that the statement was wrong
# (store/connections/outages.py has the list). The engine raises the driver's errors of this kind unwrapped.
UNREACHABLE: Final = (*OUTAGES, PoolTimeout)
CHECKS_NAME = "orchestrator-check"  # application name of the connections for checks


class Database:
    """One PostgreSQL database."""

    def __init__(
        self, url: str, application_name: str = "orchestrator", *, patience_seconds: float = 0.0
    ) -> None:
        """Connect to `url` (`postgresql://…`) on first use. While the server is unreachable, retry for up to
        `patience_seconds`: it may be restarting.
        """
        self.url = url
        self.application_name = application_name
        self.patience_seconds = patience_seconds
        self._engine: Engine | None = None
        self._engine_pid = 0
        self._local = threading.local()
        self._idle = _no_idle_connections()
        self._batchers: dict[Any, Batcher[Any, Any]] = {}
        self._outage = ConnectBackoff(patience_seconds)

    @property
    def engine(self) -> Engine:
        """The pool; created on first use, and again in a forked process."""
        if self._engine is None or self._engine_pid != os.getpid():
            self._engine = new_engine(
                self._open_for_engine,
                pool_size=8,
                max_overflow=16,
                json_serializer=lambda value: orjson.dumps(value).decode(),
                json_deserializer=orjson.loads,
            )
            self._engine_pid = os.getpid()
            event.listen(self._engine, "checkout", _refuse_closed)
            self._idle = _no_idle_connections()  # the parent's connections belong to the parent
            event.listen(self._engine, "engine_disposed", self._close_idle)
        return self._engine

    @property
    def _connect_seconds(self) -> int:
        """The timeout of a connection attempt: not longer than the patience, and at least the 2 seconds that
        libpq needs.
        """
        patience = self.patience_seconds or CONNECT_SECONDS
        return max(2, min(CONNECT_SECONDS, round(patience)))

    def _open_for_engine(self) -> Session:
        def connect() -> Session:
            return Session.connect(
                self.url,
                application_name=self.application_name,
                connect_timeout=self._connect_seconds,
                **NETWORK,
            )

        return self._outage.connect(lambda: open_session(connect))

    def connect(
        self, *, durable: bool = True, hot: bool = False, replan: bool = False, name: str = ""
    ) -> psycopg.Connection[TupleRow]:
        """Open a connection in autocommit.

        `durable=False`: commits return before they are on disk. `hot`: for statements that reach rows by
        their keys. `replan`: every execution is planned for the present state of the tables.
        """
        options = dict(HOT_SETTINGS) if hot else {}
        if replan:
            options["plan_cache_mode"] = "force_custom_plan"
        options["synchronous_commit"] = "on" if durable else "off"
        connection_class = PreparedConnection if hot else Session

        def connect() -> psycopg.Connection[TupleRow]:
            return connection_class.connect(
                self.url,
                autocommit=True,
                application_name=name or self.application_name,
                client_encoding="UTF8",  # store/connections/prepared.py encodes to this
                connect_timeout=self._connect_seconds,
                **NETWORK,
                prepare_threshold=None
                if hot
                else 5,  # hot connections are prepared by store/connections/prepared.py
            )

        connection = self._outage.connect(lambda: open_session(connect, options))
        connection.prepared_max = 200
        return connection

    @contextmanager
    def borrow(self, *, hot: bool = True) -> Iterator[psycopg.Connection[TupleRow]]:
        """Lend a connection in autocommit for a short request, from those kept idle.

        `hot`: for statements that reach rows by their keys; otherwise every execution is planned for the
        present state of the tables. An idle connection with unread data was closed by the server, and is
        replaced.
        """
        _ = self.engine  # disposing of the engine closes these connections, too
        idle = self._idle[hot]
        connection = None
        while connection is None and idle:
            connection = idle.pop()
            if _is_closed(connection):
                connection.close()
                connection = None
        if connection is None:
            connection = self.connect(hot=hot, replan=not hot)
        try:
            yield connection
        finally:
            if connection.closed or connection.info.transaction_status or len(idle) >= MAX_IDLE[hot]:
                connection.close()
            else:
                idle.append(connection)

    def batched(
        self,
        ask: Callable[[psycopg.Connection[TupleRow], Sequence[Request]], Sequence[Result]],
        request: Request,
    ) -> Result:
        """Return the result of `ask` for a single request, batched with the requests of other threads
        (`store/connections/batching.py`). `ask` is a function of a module.
        """
        key = (os.getpid(), ask)
        batcher = self._batchers.get(key)
        if batcher is None:

            def lent(several: Sequence[Request]) -> Sequence[Result]:
                with self.borrow() as db:
                    return ask(db, several)

            batcher = self._batchers.setdefault(key, Batcher(lent))
        result: Result = batcher(request)
        return result

    def _close_idle(self, _engine: object) -> None:
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

    def check_connection(self, *, durable: bool) -> psycopg.Connection[TupleRow]:
        """Return this thread's own connection for checks, opened on first use and again after it broke.

        A connection that the server closed while idle is detected here, not by a visit.
        """
        connections: dict[tuple[int, bool], psycopg.Connection[TupleRow]] = self._local.__dict__.setdefault(
            "held", {}
        )
        key = (os.getpid(), durable)
        connection = connections.get(key)
        if connection is not None and _is_closed(connection):
            connection.close()
            connection = None
        if connection is None:
            connection = connections[key] = self.connect(durable=durable, hot=True, name=CHECKS_NAME)
        return connection


def _no_idle_connections() -> Mapping[bool, deque[psycopg.Connection[TupleRow]]]:
    """Return the idle connections of a new process: hot and others."""
    return {True: deque(), False: deque()}


def _is_closed(connection: Any) -> bool:
    """Whether the server has closed an idle connection: then it has unread data. A query, as sent by
    `pool_pre_ping`, would cost a request as much as one of its statements.
    """
    if connection.closed:
        return True
    said = select.poll()  # not select(), which refuses file descriptors above 1023
    said.register(connection.fileno(), select.POLLIN)
    return bool(said.poll(0))


def _refuse_closed(connection: object, _record: object, _proxy: object) -> None:
    """Have the pool replace a connection that the server has closed."""
    if _is_closed(connection):
        raise DisconnectionError


class ConnectBackoff:
    """The outage of a server as seen by this process: callers wait together, and later fail at once.

    Callers retry until the outage has lasted for `patience` seconds. From then on a single caller at a time
    tries now and then, and all other callers fail without an attempt: otherwise waiting threads would pile
    up.
    """

    def __init__(self, patience: float) -> None:
        """Retry for `patience` seconds; with 0, each caller tries once."""
        self.patience = patience
        self._since: float | None = None  # the start of the outage, on the monotonic clock
        self._tried_at = 0.0
        self._error: psycopg.Error | None = None
        self._lock = threading.Lock()

    def connect(self, connect: Callable[[], T]) -> T:
        """Return a connection.

        Raises:
            UNREACHABLE: the server is unreachable or accepts no writes, and the patience is exhausted.
        """
        while True:
            self._refuse_at_once()
            try:
                made = connect()
            except OUTAGES as error:
                if self._is_over(error):
                    raise
                time.sleep(0.1)
            else:
                self._since = None
                return made

    def _refuse_at_once(self) -> None:
        with self._lock:
            since, now = self._since, time.monotonic()
            if not self.patience or since is None or now < since + self.patience:
                return
            if now < self._tried_at + RETRY_SECONDS and self._error is not None:
                raise psycopg.OperationalError(str(self._error))
            self._tried_at = now

    def _is_over(self, error: psycopg.Error) -> bool:
        """Whether the patience is exhausted."""
        with self._lock:
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            self._error = error
            return now >= self._since + self.patience


def open_database(
    settings: Settings, application_name: str = "orchestrator", *, patience_seconds: float = 0.0
) -> Database:
    """Return the configured database.

    Raises:
        Misconfigured: no URL is set.
    """
    if settings.database_url is None:
        raise Misconfigured(
            "set ORCHESTRATOR_DATABASE_URL, or run `orchestrator up`, which starts a database of its own"
        )
    url = settings.database_url.get_secret_value()
    return Database(url, application_name, patience_seconds=patience_seconds)


# Advisory locks of a session: held until unlocked or until the connection ends.

TRY_LOCK: Final = "SELECT pg_try_advisory_lock(%(key)s)"
UNLOCK: Final = "SELECT pg_advisory_unlock(%(key)s)"


def try_lock(db: Connection[TupleRow], key: int) -> bool:
    """Take a lock unless another session holds it; return whether it was taken."""
    row = db.execute(TRY_LOCK, {"key": key}).fetchone()
    return row is not None and bool(row[0])


def unlock(db: Connection[TupleRow], key: int) -> None:
    """Release a lock."""
    db.execute(UNLOCK, {"key": key})
