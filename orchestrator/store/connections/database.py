"""Connections: a pooled SQLAlchemy engine for the API and planning, one psycopg connection per thread for
checks.

Every connection names its process in `application_name`. Nothing else in the store opens one.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import orjson
import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_dumps, set_json_loads
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from orchestrator.config import Settings
from orchestrator.errors import Misconfigured
from orchestrator.store.connections.batching import Batcher
from orchestrator.store.connections.prepared import PreparedConnection

T = TypeVar("T")
Request = TypeVar("Request")
Result = TypeVar("Result")

set_json_loads(orjson.loads)
set_json_dumps(orjson.dumps)

# The hot statements reach every row by its key. A generic plan made while a table was small, or after ANALYZE
# of a graph with one huge fan-out, must not turn into a scan (docs/internals/ceilings.md §3).
HOT_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}


KEPT_LENT = 32  # connections of one process
CONNECT_SECONDS = 10  # that a server may take to answer a connection
# A server whose machine is gone says nothing: a connection to it is broken after this.
NETWORK: dict[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
TRY_SECONDS = 0.5  # between two looks at a server that has been away for longer than one is patient
# What says that the database was not there, or broke off what was asked of it: not that anything was wrong.
UNREACHABLE: Final = (psycopg.OperationalError, OperationalError, InterfaceError, PoolTimeout)
CHECKS = "orchestrator-check"  # the application name of the connections checks are made on


class Database:
    """One PostgreSQL database."""

    def __init__(
        self, url: str, application_name: str = "orchestrator", *, patience_seconds: float = 0.0
    ) -> None:
        """Connect lazily to `url` (`postgresql://…`); for so long, a server that cannot be reached is waited
        for: it may just be restarting.
        """
        self.url = url
        self.application_name = application_name
        self.patience_seconds = patience_seconds
        self._engine: Engine | None = None
        self._engine_pid = 0
        self._local = threading.local()
        self._lent: deque[psycopg.Connection[TupleRow]] = deque()  # that nobody uses just now
        self._together: dict[Any, Batcher[Any, Any]] = {}
        self._outage = ConnectBackoff(patience_seconds)

    @property
    def engine(self) -> Engine:
        """The pool; made on first use, and anew in a forked process."""
        if self._engine is None or self._engine_pid != os.getpid():
            url = make_url(self.url).set(drivername="postgresql+psycopg")
            self._engine = create_engine(
                url,
                pool_size=8,
                max_overflow=16,
                json_serializer=lambda value: orjson.dumps(value).decode(),
                json_deserializer=orjson.loads,
                connect_args={
                    "application_name": self.application_name,
                    "connect_timeout": self._connect_seconds,
                    **NETWORK,
                },
            )
            self._engine_pid = os.getpid()
            event.listen(self._engine, "do_connect", self._connect_engine)
            event.listen(self._engine, "checkout", _refuse_closed)
            self._lent = deque()  # another process's are its own
            event.listen(self._engine, "engine_disposed", self._close_lent)
        return self._engine

    @property
    def _connect_seconds(self) -> int:
        """Who is patient for so long only does not wait longer for one answer (libpq takes two at least)."""
        patience = self.patience_seconds or CONNECT_SECONDS
        return max(2, min(CONNECT_SECONDS, round(patience)))

    def _connect_engine(self, _dialect: Any, _record: Any, args: Any, params: Any) -> Any:
        return self._outage.connect(lambda: psycopg.connect(*args, **params))

    def connect(
        self, *, durable: bool = True, hot: bool = False, replan: bool = False, name: str = ""
    ) -> psycopg.Connection[TupleRow]:
        """Open a connection in autocommit.

        `durable=False` lets commits return before they are on disk; `hot` is for statements that reach rows
        by their keys; with `replan` each is planned for the tables as they are when it runs.
        """
        options: dict[str, Any] = dict(HOT_SETTINGS) if hot else {}
        if replan:
            options["plan_cache_mode"] = "force_custom_plan"
        options["synchronous_commit"] = "on" if durable else "off"
        kind = PreparedConnection if hot else psycopg.Connection
        connection = self._outage.connect(
            lambda: kind.connect(
                self.url,
                autocommit=True,
                application_name=name or self.application_name,
                client_encoding="UTF8",  # what store/connections/prepared.py writes
                connect_timeout=self._connect_seconds,
                **NETWORK,
                prepare_threshold=None
                if hot
                else 5,  # what is prepared there is prepared by store/connections/prepared.py
                options=" ".join(f"-c {key}={value}" for key, value in options.items()),
            )
        )
        connection.prepared_max = 200
        return connection

    @contextmanager
    def borrow(self) -> Iterator[psycopg.Connection[TupleRow]]:
        """Lend a connection like a check's, of those kept for requests that are many and small.

        One on which the server has said something since was closed by it.
        """
        _ = self.engine  # whose end is theirs
        kept = self._lent
        connection = None
        while connection is None and kept:
            connection = kept.pop()
            if _is_closed(connection):
                connection.close()
                connection = None
        if connection is None:
            connection = self.connect(hot=True)
        try:
            yield connection
        finally:
            if connection.closed or connection.info.transaction_status or len(kept) >= KEPT_LENT:
                connection.close()
            else:
                kept.append(connection)

    def batched(
        self, ask: Callable[[psycopg.Connection[TupleRow], Sequence[Request]], Sequence[Result]], one: Request
    ) -> Result:
        """Return what `ask`, a function of a module, tells of `one`: asked together with what other threads
        ask of it at this moment, on one connection (`store/connections/batching.py`).
        """
        key = (os.getpid(), ask)
        found = self._together.get(key)
        if found is None:

            def lent(several: Sequence[Request]) -> Sequence[Result]:
                with self.borrow() as db:
                    return ask(db, several)

            found = self._together.setdefault(key, Batcher(lent))
        told: Result = found(one)
        return told

    def _close_lent(self, _engine: Any) -> None:
        while self._lent:
            self._lent.pop().close()

    def check_connection(self, *, durable: bool) -> psycopg.Connection[TupleRow]:
        """Return this thread's own connection for checks, opened on first use and again after it broke.

        One that the server closed while this thread had nothing to do is found out here, not by a visit.
        """
        held: dict[tuple[int, bool], psycopg.Connection[TupleRow]] = self._local.__dict__.setdefault(
            "held", {}
        )
        key = (os.getpid(), durable)
        connection = held.get(key)
        if connection is not None and _is_closed(connection):
            connection.close()
            connection = None
        if connection is None:
            connection = held[key] = self.connect(durable=durable, hot=True, name=CHECKS)
        return connection


def _is_closed(connection: Any) -> bool:
    """Whether the server has ended an idle connection: then there is something to read. Asking the server, as
    `pool_pre_ping` does, would cost a request as much as one of its statements.
    """
    if connection.closed:
        return True
    said = select.poll()  # not select(): that refuses a process's thousandth connection
    said.register(connection.fileno(), select.POLLIN)
    return bool(said.poll(0))


def _refuse_closed(connection: Any, _record: Any, _proxy: Any) -> None:
    """Let the pool replace a connection that the server has ended."""
    if _is_closed(connection):
        raise DisconnectionError


class ConnectBackoff:
    """One server's absence, as this process knows it: waited for together, then told of at once.

    Whoever finds the server away tries again until it has been so for `patience` seconds. From then on one
    caller looks now and then, and all others are refused without a look: there would be no end of threads
    that wait.
    """

    def __init__(self, patience: float) -> None:
        """Wait out `patience` seconds of an absence; with none, each caller looks once."""
        self.patience = patience
        self._since: float | None = None  # the absence's beginning, on the monotonic clock
        self._tried_at = 0.0
        self._error: psycopg.OperationalError | None = None
        self._lock = threading.Lock()

    def connect(self, connect: Callable[[], T]) -> T:
        """Return a connection.

        Raises:
            psycopg.OperationalError: the server cannot be reached, and is not waited for any longer.
        """
        while True:
            self._refuse_at_once()
            try:
                made = connect()
            except psycopg.OperationalError as error:
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
            if now < self._tried_at + TRY_SECONDS and self._error is not None:
                raise psycopg.OperationalError(str(self._error))
            self._tried_at = now

    def _is_over(self, error: psycopg.OperationalError) -> bool:
        """Whether nobody waits any longer."""
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
