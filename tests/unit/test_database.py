"""Statements as they are sent on the connections of checks."""

from __future__ import annotations

import re
from types import ModuleType

import psycopg
import pytest

from orchestrator.store import act_statements, ending_statements, heir_statements, node_statements, planning
from orchestrator.store.database import Database, patiently
from orchestrator.store.hot import numbered


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
    statements = [*ending_statements.OF_ONE.values(), *ending_statements.UNCLAIMED.values()]
    statements += [*act_statements.OF_ONE.values(), *act_statements.UNCLAIMED.values()]
    statements += [*heir_statements.OF_ONE.values(), *heir_statements.UNCLAIMED.values()]
    statements += [node_statements.LOOK, node_statements.GLANCE_AT_ONE, planning.STILL_OURS]
    assert [text for text in statements if b"%" in numbered(text)[0]] == []


def test_a_statement_is_gone_through_once_however_long_it_is() -> None:
    statement = "SELECT %(a)s /* " + "x" * 10_000 + " */"
    assert numbered(statement)[0] is numbered(statement)[0]


@pytest.mark.parametrize("module", [act_statements, ending_statements, heir_statements, node_statements])
def test_no_table_is_joined_in_a_way_that_lets_it_be_walked(module: ModuleType) -> None:
    """The aliases are those of the tables; a lone `r` is also what a statement calls the rows it wrote."""
    texts = [text for text in vars(module).values() if isinstance(text, str)]
    texts += [
        text
        for texts in vars(module).values()
        if isinstance(texts, dict)
        for text in texts.values()
        if isinstance(text, str)
    ]
    joins = {found for text in texts for found in re.findall(r"\w+ \b[nrsdq]\.id = \w+\.\w+", text)}
    assert {join for join in joins if not join.startswith("ON r.id = ")} == set()


def test_a_server_that_restarts_is_waited_for_and_one_that_stays_away_is_not_for_ever() -> None:
    tries = []

    def connect() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise psycopg.OperationalError("the database system is starting up")
        return "connected"

    assert patiently(connect, 5.0) == "connected"
    tries.clear()
    with pytest.raises(psycopg.OperationalError):
        patiently(connect, 0.0)
    assert len(tries) < 3


def test_a_connection_that_the_server_closed_is_not_lent_again(postgres_url):
    database = Database(postgres_url)
    with database.lent() as db:
        pid = db.info.backend_pid
    with database.lent() as db:
        assert db.info.backend_pid == pid
    with database.connect() as other:
        other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            pass
    with database.lent() as db:
        assert db.execute("SELECT 1").fetchone() == (1,)
        assert db.info.backend_pid != pid
    database.engine.dispose()
    assert not database._lent
