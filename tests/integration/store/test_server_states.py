"""Errors about the state of the server: sessions that gave such an error are not used again, and new sessions
can write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text

from orchestrator.store.connections.database import UNREACHABLE, Database
from orchestrator.store.connections.outages import SERVER_STATES, ends_session, is_server_state
from orchestrator.store.connections.prepared import fetch_prepared

# The codes of these classes that are errors of the statement or of this code, not of the server.
OF_THE_STATEMENT = {
    *("25000", "25001", "25002", "25003", "25004", "25005", "25007", "25008", "25P01"),
    "25P02",  # an earlier statement of the transaction failed; that error counts
}


def all_errors() -> list[type[psycopg.Error]]:
    """Return the error of each SQLSTATE that the driver knows."""
    found = {
        cls.sqlstate: cls
        for cls in vars(psycopg.errors).values()
        if isinstance(cls, type) and issubclass(cls, psycopg.Error) and isinstance(cls.sqlstate, str)
    }
    return [found[code] for code in sorted(found)]


@pytest.mark.parametrize("error", all_errors(), ids=lambda cls: f"{cls.sqlstate}-{cls.__name__}")
def test_an_error_is_an_outage_if_it_is_about_the_state_of_the_server(error: type[psycopg.Error]) -> None:
    code = str(error.sqlstate)
    if code[:2] in ("08", "25", "53", "57", "58", "XX"):
        assert is_server_state(code) == (code not in OF_THE_STATEMENT)
    if is_server_state(code):
        assert issubclass(error, UNREACHABLE)
        assert SERVER_STATES.get(code) or SERVER_STATES[code[:2]]
    elif code[:2] in ("22", "23", "42"):  # wrong values and statements
        assert not issubclass(error, UNREACHABLE)
        assert not ends_session(error())


Run = Callable[[str], list[Any]]  # run a statement; return its rows


class Sessions:
    """The three ways to reach a database."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)

    @contextmanager
    def engine(self) -> Iterator[Run]:
        with self.database.engine.begin() as connection:

            def run(statement: str) -> list[Any]:
                result = connection.execute(text(statement))
                return [tuple(row) for row in result] if result.returns_rows else []

            yield run

    @contextmanager
    def borrow(self) -> Iterator[Run]:
        with self.database.borrow() as db:

            def run(statement: str) -> list[Any]:
                cursor = db.execute(statement)
                return cursor.fetchall() if cursor.description else []

            yield run

    @contextmanager
    def check(self) -> Iterator[Run]:
        db = self.database.check_connection(durable=True)
        yield lambda statement: fetch_prepared(db, statement, {})

    def lend(self, way: str) -> AbstractContextManager[Run]:
        result: AbstractContextManager[Run] = getattr(self, way)()
        return result

    def run(self, way: str, *statements: str) -> list[Any]:
        """Run statements in one session; return the rows of the last."""
        with self.lend(way) as run:
            return [run(statement) for statement in statements][-1]


WAYS = ("engine", "borrow", "check")
PID = "SELECT pg_backend_pid()"
WRITE = "CREATE TABLE proof (a int)"


@pytest.fixture
def sessions(postgres_url: str) -> Iterator[Sessions]:
    made = Sessions(postgres_url)
    yield made
    made.database.engine.dispose()
    made.database.check_connection(durable=True).close()


@pytest.fixture
def administrator(postgres_server: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.administrator_url(), autocommit=True) as db:
        yield db


def set_read_only(administrator: psycopg.Connection[Any], sessions: Sessions, value: str) -> None:
    name = sql.Identifier(psycopg.conninfo.conninfo_to_dict(sessions.database.url)["dbname"])
    statement = sql.SQL("ALTER DATABASE {name} SET default_transaction_read_only = {value}")
    administrator.execute(statement.format(name=name, value=sql.Literal(value)))


@pytest.mark.parametrize("way", WAYS)
def test_a_session_that_may_not_write_is_closed_by_its_first_write(sessions: Sessions, way: str) -> None:
    before = sessions.run(way, PID)
    assert sessions.run(way, "SET SESSION default_transaction_read_only = on", PID) == before
    with pytest.raises(UNREACHABLE, match="read-only"):
        sessions.run(way, WRITE)
    assert sessions.run(way, WRITE, PID) != before


@pytest.mark.parametrize("way", WAYS)
def test_a_new_session_without_permission_to_write_is_refused_until_it_is_given(
    sessions: Sessions, administrator: psycopg.Connection[Any], way: str
) -> None:
    set_read_only(administrator, sessions, "on")
    with pytest.raises(UNREACHABLE, match="accepts no writes"):
        sessions.run(way, PID)
    set_read_only(administrator, sessions, "off")
    sessions.run(way, WRITE)


@pytest.mark.parametrize("way", WAYS)
def test_a_session_ended_between_two_statements_of_a_transaction_is_an_outage(
    sessions: Sessions, administrator: psycopg.Connection[Any], way: str
) -> None:
    def be_idle() -> None:
        with sessions.lend(way) as run:
            if way != "engine":
                run("BEGIN")
            [(pid,)] = run(PID)
            run("SET LOCAL idle_in_transaction_session_timeout = '1ms'")
            while administrator.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
                pass
            run("SELECT 1")

    with pytest.raises(UNREACHABLE):
        be_idle()
    assert sessions.run(way, "SELECT 1") == [(1,)]


def raising(code: str) -> str:
    return f"DO $$ BEGIN RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'; END $$"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", ["XX000", "XX001", "53100", "57P01", "58030"])
def test_a_session_with_an_error_of_the_server_is_replaced(sessions: Sessions, way: str, code: str) -> None:
    before = sessions.run(way, PID)
    with pytest.raises(UNREACHABLE, match="injected"):
        sessions.run(way, raising(code))
    assert sessions.run(way, PID) != before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", ["40P01", "55P03", "57014", "23505", "22023"])
def test_a_session_of_a_conflict_or_of_a_wrong_value_is_kept(sessions: Sessions, way: str, code: str) -> None:
    before = sessions.run(way, PID)
    with pytest.raises(Exception, match="injected"):
        sessions.run(way, raising(code))
    assert sessions.run(way, PID) == before
