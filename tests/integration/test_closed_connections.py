"""A connection that the server has closed while nobody used it is replaced before a check begins on it."""

from __future__ import annotations

from orchestrator.store.database import CHECKS, Database

CLOSE = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s"


def test_a_checks_connection_that_the_server_closed_is_replaced_before_it_is_used(postgres_url: str) -> None:
    database = Database(postgres_url, "test")
    first = database.hot(durable=True)
    assert database.hot(durable=True) is first
    with database.lent() as other:
        assert other.execute(CLOSE, (CHECKS,)).fetchall() == [(True,)]
    again = database.hot(durable=True)
    assert again is not first
    assert again.execute("SELECT 1").fetchall() == [(1,)]
    again.close()
    database.engine.dispose()
