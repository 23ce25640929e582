"""Statements as they are sent on the connections of checks."""

from __future__ import annotations

import re
import time

import psycopg
import pytest

from orchestrator.store.connections.database import ConnectBackoff, Database
from orchestrator.store.connections.prepared import numbered
from orchestrator.store.nodes import action_sql, outcome_sql, replacement_sql, visit_sql
from orchestrator.store.nodes.outcome_builder import OutcomeStatement, render
from orchestrator.store.planning import bulk_writer

OUTCOMES = (*outcome_sql.STATEMENTS, *action_sql.STATEMENTS, replacement_sql.SETTLE_INLINE_REPLACEMENT)
FORMS = [
    render(statement, leased=leased, rows=rows)
    for statement in OUTCOMES
    for leased in (True, False)
    for rows in ("one", "many")
]


@pytest.mark.parametrize(
    ("statement", "text", "names"),
    [
        ("SELECT 1", b"SELECT 1", ()),
        ("SELECT %s, %s", b"SELECT $1, $2", ()),
        ("SELECT %(a)s, %(b)s::text, %(a)s", b"SELECT $1, $2::text, $1", ("a", "b")),
        ("SELECT 5 %% 2, %(a)s", b"SELECT 5 % 2, $1", ("a",)),
    ],
)
def test_placeholders_are_numbered_in_the_order_in_which_they_first_come(
    statement: str, text: bytes, names: tuple[str, ...]
) -> None:
    assert numbered(statement) == (text, names)


def test_no_placeholder_is_left_in_the_statements_of_a_visit() -> None:
    statements = [*FORMS, visit_sql.READ_CLAIMED, visit_sql.READ_QUEUED_ONE, bulk_writer.LOCK_TRAVERSAL]
    assert [text for text in statements if b"%" in numbered(text)[0]] == []


@pytest.mark.parametrize("statement", OUTCOMES, ids=lambda statement: statement.name)
def test_an_outcome_of_an_unclaimed_node_needs_no_lease(statement: OutcomeStatement) -> None:
    assert "%(lease)s" in render(statement, leased=True, rows="one")
    assert "%(lease)s" not in render(statement, leased=False, rows="one")
    assert "%(lease)s" not in render(statement, leased=False, rows="many")


def test_a_column_that_no_outcome_has_is_refused() -> None:
    with pytest.raises(KeyError, match="nonsense"):
        render(OutcomeStatement("wrong", resource="type = i.nonsense"), leased=True, rows="one")


def test_a_statement_is_gone_through_once_however_long_it_is() -> None:
    statement = "SELECT %(a)s /* " + "x" * 10_000 + " */"
    assert numbered(statement)[0] is numbered(statement)[0]


def test_no_table_is_joined_in_a_way_that_lets_it_be_walked() -> None:
    """The aliases are the tables'; statements also use a lone `r` for the rows that they wrote."""
    modules = (action_sql, outcome_sql, visit_sql)
    texts = FORMS + [text for module in modules for text in vars(module).values() if isinstance(text, str)]
    joins = {item for text in texts for item in re.findall(r"\w+ \b[nrsdq]\.id = \w+\.\w+", text)}
    assert {join for join in joins if not join.startswith("ON r.id = ")} == set()


def test_a_restarting_server_is_waited_for_but_not_endlessly() -> None:
    tries = []

    def connect() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise psycopg.OperationalError("the database system is starting up")
        return "connected"

    assert ConnectBackoff(5.0).connect(connect) == "connected"
    tries.clear()
    with pytest.raises(psycopg.OperationalError):
        ConnectBackoff(0.0).connect(connect)
    assert len(tries) < 3


def test_during_an_outage_requests_fail_at_once_and_a_single_probe_retries(
    monkeypatch,
) -> None:
    now, tries = [100.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    def connect() -> str:
        tries.append(now[0])
        if now[0] < 120.0:
            raise psycopg.OperationalError("connection refused")
        return "connected"

    outage = ConnectBackoff(5.0)
    with pytest.raises(psycopg.OperationalError):
        outage.connect(connect)
    assert 105.0 <= now[0] < 105.5  # it was waited for
    tries.clear()
    for _ in range(100):  # callers of the next second
        with pytest.raises(psycopg.OperationalError, match="connection refused"):
            outage.connect(connect)
        now[0] += 0.01
    assert 1 <= len(tries) <= 3
    now[0] = 121.0
    assert outage.connect(connect) == "connected"
    now[0] = 122.0
    assert outage.connect(connect) == "connected"


@pytest.mark.parametrize("hot", [True, False])
def test_a_connection_that_the_server_closed_is_not_lent_again(postgres_url, hot):
    database = Database(postgres_url)
    with database.borrow(hot=hot) as db:
        pid = db.info.backend_pid
    with database.borrow(hot=hot) as db, db.transaction():
        assert db.info.backend_pid == pid
    with database.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            pass
    with database.borrow(hot=hot) as db:
        assert db.execute("SELECT 1").fetchone() == (1,)
        assert db.info.backend_pid != pid
        pid = db.info.backend_pid
    database.engine.dispose()
    with database.borrow(hot=hot) as db:
        assert db.info.backend_pid != pid
    database.engine.dispose()


def test_each_execution_on_a_connection_that_is_not_hot_is_planned(postgres_url):
    database = Database(postgres_url)
    with database.borrow(hot=False) as db:
        assert db.execute("SHOW plan_cache_mode").fetchone() == ("force_custom_plan",)
        assert db.execute("SHOW enable_seqscan").fetchone() == ("on",)
    with database.borrow() as db:
        assert db.execute("SHOW enable_seqscan").fetchone() == ("off",)
    database.engine.dispose()


@pytest.mark.parametrize("hot", [True, False])
def test_a_connection_in_a_transaction_is_not_lent_again(postgres_url, hot):
    database = Database(postgres_url)
    with database.borrow(hot=hot) as db:
        pid = db.info.backend_pid
        db.execute("BEGIN")
    with database.borrow(hot=hot) as db:
        assert db.info.backend_pid != pid
    database.engine.dispose()
