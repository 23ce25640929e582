"""The statements of a visit, run as libpq has it: the same rows and the same errors as through psycopg."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import psycopg
import pytest

from orchestrator.store.connections import prepared
from orchestrator.store.connections.database import CHECKS_NAME, Database
from orchestrator.store.connections.prepared import PreparedConnection, fetch_prepared

EVERYTHING = """SELECT %(none)s::text, %(text)s::text, %(number)s::bigint + 1, %(numbers)s::bigint[],
    '{"a": [1, null]}'::json, %(text)s::text || '%%'"""
VALUES = {"none": None, "text": "é ' \" \\", "number": 2**40, "numbers": [1, 2**40]}


@pytest.fixture
def db(postgres_url: str) -> Iterator[psycopg.Connection]:
    """A connection as a check has it."""
    connection = Database(postgres_url).connect(hot=True)
    assert isinstance(connection, PreparedConnection)
    yield connection
    connection.close()


def test_values_go_there_and_back_as_they_do_through_a_cursor(db: psycopg.Connection) -> None:
    [row] = fetch_prepared(db, EVERYTHING, VALUES)
    assert row == (None, VALUES["text"], 2**40 + 1, [1, 2**40], {"a": [1, None]}, VALUES["text"] + "%")
    assert db.execute(EVERYTHING, VALUES).fetchall() == [row]
    with psycopg.connect(db.info.dsn) as cold:
        assert fetch_prepared(cold, EVERYTHING, VALUES) == [row]


def test_a_statement_is_prepared_once_for_values_of_the_same_types(db: psycopg.Connection) -> None:
    for number in (1, 2, 2**40):
        assert fetch_prepared(db, "SELECT %(n)s + 0", {"n": number}) == [(number,)]
    [(count,)] = fetch_prepared(
        db, "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%+ 0'", {}
    )
    assert count == 2  # for small and for large numbers


def test_a_statement_that_gives_no_rows_gives_none(db: psycopg.Connection) -> None:
    assert fetch_prepared(db, "UPDATE stack SET name = %(n)s WHERE false", {"n": "x"}) == []


def test_an_error_equals_the_error_of_a_cursor_and_the_connection_survives(db: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        fetch_prepared(db, "SELECT 1 / %(n)s::int", {"n": 0})
    with pytest.raises(psycopg.errors.UndefinedTable):
        fetch_prepared(db, "SELECT * FROM nowhere WHERE a = %(n)s", {"n": 0})
    assert fetch_prepared(db, "SELECT %(n)s::int", {"n": 1}) == [(1,)]


def test_a_broken_connection_is_an_operational_error_and_closed(db: psycopg.Connection) -> None:
    fetch_prepared(db, "SELECT %(n)s::int", {"n": 1})
    with socket.socket(fileno=os.dup(db.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    with pytest.raises(psycopg.OperationalError):
        fetch_prepared(db, "SELECT %(n)s::int", {"n": 1})
    assert db.closed


def test_a_connection_ended_by_the_server_is_an_operational_error(
    db: psycopg.Connection, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (db.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        fetch_prepared(db, "SELECT %(n)s::int", {"n": 1})
    assert db.closed


def test_prepared_statements_survive_a_rolled_back_transaction(db: psycopg.Connection) -> None:
    fetch_prepared(db, "SELECT %(n)s::int", {"n": 1})
    with pytest.raises(psycopg.errors.DivisionByZero), db.transaction():
        db.execute("SELECT 1 / 0")
    with db.transaction() as opened:
        db.execute("SELECT %s::int", (1,)).fetchone()
        raise psycopg.Rollback(opened)
    assert fetch_prepared(db, "SELECT %(n)s::int", {"n": 2}) == [(2,)]


def test_beyond_the_most_that_are_prepared_statements_are_run_all_the_same(
    db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "PREPARED", 2)
    for number in range(5):
        assert fetch_prepared(db, f"SELECT {number} + %(n)s::int", {"n": 1}) == [(number + 1,)]
    query = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'visit_%'"
    assert db.execute(query).fetchall() == [(2,)]


def test_a_repeated_statement_reads_the_current_rows(db: psycopg.Connection) -> None:
    query = "SELECT x, '[1]'::json FROM unnest(string_to_array(%(t)s, ',')) AS x"
    for texts in (["é", "b"], [], ["c"], ["d"] * 1000):
        assert fetch_prepared(db, query, {"t": ",".join(texts)}) == [(text, [1]) for text in texts]


@pytest.mark.parametrize("number", [0, 1])
def test_a_text_that_cannot_be_stored_is_refused_and_not_cut_off(db: psycopg.Connection, number: int) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        fetch_prepared(db, "SELECT %(t)s::text, %(n)s::int", {"t": "half\0of it", "n": (None, 1)[number]})


def test_text_is_encoded_for_the_server_in_any_locale(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with Database(postgres_url).connect(hot=True) as db:
        assert fetch_prepared(db, "SELECT %(t)s::text, length(%(t)s::text)", {"t": "é"}) == [("é", 1)]


def test_a_process_with_a_thousand_connections_can_borrow_another(postgres_url: str) -> None:
    """The number of its socket is more than select() takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    database, held = Database(postgres_url), [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        for _ in range(2):  # the second is the first, which is looked at before it is lent again
            with database.borrow() as db:
                assert db.fileno() > 1_024
                assert fetch_prepared(db, "SELECT 1", {}) == [(1,)]
    finally:
        for number in held:
            os.close(number)
        database.engine.dispose()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


CLOSE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = %s
"""


def test_a_checks_connection_that_the_server_closed_is_replaced_before_it_is_used(postgres_url: str) -> None:
    database = Database(postgres_url)
    first = database.check_connection(durable=True)
    assert database.check_connection(durable=True) is first
    with database.borrow() as other:
        assert other.execute(CLOSE, (CHECKS_NAME,)).fetchall() == [(True,)]
    again = database.check_connection(durable=True)
    assert again is not first
    assert fetch_prepared(again, "SELECT 1", {}) == [(1,)]
    again.close()
    database.engine.dispose()
