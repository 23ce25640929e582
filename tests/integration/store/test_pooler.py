"""Connection poolers: PgBouncer works in session mode, and is refused in the other modes by every process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text

from orchestrator.embedded.postgres import Postgres
from orchestrator.errors import Misconfigured
from orchestrator.security.encryption import new_key
from orchestrator.store.connections import sessions
from orchestrator.store.connections.database import CHECKS_NAME, HOT_SETTINGS, Database, try_lock
from orchestrator.store.connections.prepared import fetch_prepared, statement_name
from orchestrator.store.schema import migrate, version
from tests.integration.cluster import Cluster, eventually, made_once, tree
from tests.integration.store.pgbouncer import pgbouncer, requires_pgbouncer, through
from tests.plugins.thing_fixture import THING_DIR, ThingServer

Start = Callable[..., str]  # with the mode and the options of PgBouncer: the URL of the database behind it
HELD = """SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database
    WHERE locktype = 'advisory' AND datname = current_database()"""
REFUSAL = "set pool_mode = session"


@pytest.fixture
def start(postgres_server: Postgres, postgres_url: str) -> Iterator[Start]:
    """Start PgBouncers; they end with the test."""
    sessions._tested.clear()
    with ExitStack() as running:
        yield lambda mode, **options: through(
            running.enter_context(pgbouncer(postgres_server, mode, **options)), postgres_url
        )


def test_a_statement_name_is_derived_from_text_and_types() -> None:
    assert statement_name(b"SELECT $1", (23,)) == statement_name(b"SELECT $1", (23,))
    names = {
        statement_name(content, types)
        for content in (b"SELECT $1", b"SELECT $2")
        for types in ((), (23,), (2, 3))
    }
    assert len(names) == 6
    assert max(map(len, names)) < 63  # PostgreSQL truncates longer names


def test_a_statement_left_by_an_earlier_client_is_used(postgres_url: str) -> None:
    first, second = (Database(postgres_url).connect(hot=True) for _ in range(2))
    assert fetch_prepared(first, "SELECT %(n)s::int + 1", {"n": "1"}) == [(2,)]
    [(name, prepared)] = first.execute("SELECT name, statement FROM pg_prepared_statements").fetchall()
    second.pgconn.prepare(name.encode(), prepared.encode())
    assert fetch_prepared(second, "SELECT %(n)s::int + 1", {"n": "5"}) == [(6,)]
    first.close()
    second.close()


def test_a_direct_connection_needs_no_test(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_has_own_process", lambda _connection: pytest.fail("tested"))
    database = Database(postgres_url)
    with database.connect(hot=True) as db:
        assert settings_of(db) == HOT_SETTINGS | {"synchronous_commit": "on"}
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1
    database.engine.dispose()


@requires_pgbouncer
@pytest.mark.parametrize("mode", ["transaction", "statement"])
def test_other_modes_are_refused_on_every_path(start: Start, mode: str) -> None:
    url = start(mode)
    for path in (
        lambda: Database(url).connect(hot=True),
        lambda: Database(url).connect(durable=False),
        lambda: Database(url).check_connection(durable=True),
        Database(url).engine.connect,
        lambda: version.current(url),
        lambda: version.require_current(url),
        lambda: migrate.upgrade(url),
    ):
        with pytest.raises(Misconfigured, match=REFUSAL):
            path()


@requires_pgbouncer
def test_transaction_mode_is_detected_while_other_clients_use_the_pool(start: Start) -> None:
    url = start("transaction", options="default_pool_size = 3")
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            try:
                with psycopg.connect(url, prepare_threshold=None) as db:
                    while not done.is_set():
                        db.execute("SELECT pg_sleep(0.001)")
                        db.commit()
            except psycopg.OperationalError:  # its process was ended by the test
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        results = [attempt(url) for _ in range(20)]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert "accepted" not in results
    assert results.count("refused") >= 10


@requires_pgbouncer
@pytest.mark.parametrize(
    "command",
    [
        ("-m", "orchestrator.cli.main", "migrate"),
        ("-m", "orchestrator.cli.main", "api", "--port", "1"),
        ("-m", "orchestrator.cli.main", "worker"),
        ("-m", "orchestrator.cli.main", "token", "list"),
    ],
    ids=lambda command: command[2],
)
def test_every_process_refuses_to_start_in_transaction_mode(
    start: Start, broker_url: str, command: tuple[str, ...]
) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("ORCHESTRATOR_")}
    env |= {
        "ORCHESTRATOR_DATABASE_URL": start("transaction"),
        "ORCHESTRATOR_BROKER_URL": broker_url,
        "ORCHESTRATOR_ENCRYPTION_KEYS": new_key(),
        "ORCHESTRATOR_AUTH": "token",
    }
    ended = subprocess.run(
        (sys.executable, *command), env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode != 0
    assert REFUSAL in ended.stderr


@requires_pgbouncer
def test_session_mode_keeps_settings_statements_and_locks(start: Start) -> None:
    database = Database(start("session"))
    with database.connect(hot=True, durable=False, name=CHECKS_NAME) as hot, database.connect() as cold:
        assert settings_of(hot) == HOT_SETTINGS | {"synchronous_commit": "off"}
        assert settings_of(cold)["enable_seqscan"] == "on"
        [(name, encoding)] = hot.execute(
            "SELECT current_setting('application_name'), current_setting('client_encoding')"
        ).fetchall()
        assert (name, encoding) == (CHECKS_NAME, "UTF8")
        for number in range(3):
            assert fetch_prepared(hot, "SELECT %(n)s::text", {"n": str(number)}) == [(str(number),)]
        assert try_lock(hot, 42)
        assert not try_lock(cold, 42)
    with database.connect() as db:  # PgBouncer runs its reset query after the end of a session
        eventually(lambda: db.execute(HELD).fetchone() == (0,), 10.0, "a lock remained".__str__)
    with database.engine.connect() as connection:
        assert connection.execute(text("SELECT 'é'")).scalar() == "é"
    database.engine.dispose()
    assert version.current(database.url) == version.head()
    migrate.upgrade(database.url)


@requires_pgbouncer
def test_the_state_of_an_earlier_client_is_discarded(start: Start) -> None:
    """With an empty server_reset_query PgBouncer keeps it."""
    url = start("session", options="server_reset_query =\ndefault_pool_size = 1")
    database = Database(url)
    with database.connect(hot=True) as first:
        assert fetch_prepared(first, "SELECT %(n)s::text", {"n": "1"}) == [("1",)]
        assert try_lock(first, 42)
        process = first.execute("SELECT pg_backend_pid()").fetchone()
    with database.connect() as second:
        assert second.execute("SELECT pg_backend_pid()").fetchone() == process
        assert settings_of(second)["enable_seqscan"] == "on"
        assert second.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert second.execute(HELD).fetchone() == (0,)


@requires_pgbouncer
def test_session_mode_is_tested_once_a_minute(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(start("session"))
    tests = 0
    has_own_process = sessions._has_own_process

    def counted(connection: psycopg.Connection) -> bool:
        nonlocal tests
        tests += 1
        return has_own_process(connection)

    monkeypatch.setattr(sessions, "_has_own_process", counted)
    for _ in range(3):
        database.connect().close()
    assert tests == 1
    sessions._tested.update({key: time - sessions.TRUST_SECONDS for key, time in sessions._tested.items()})
    database.connect().close()
    assert tests == 2


@requires_pgbouncer
def test_a_stack_is_created_and_deleted_through_session_mode(
    start: Start, broker_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(THING_DIR))
    things = ThingServer(tmp_path)
    things.start()
    cluster = Cluster(tmp_path / "cluster", start("session"), broker_url, things, checkers=1)
    try:
        cluster.start()
        resources = tree()
        uuid = cluster.create("pooled", resources)
        cluster.wait(uuid, "CREATE_COMPLETE")
        made_once(things, "pooled", resources)
        cluster.delete("pooled")
        cluster.wait(uuid, "DELETE_COMPLETE")
    finally:
        cluster.close()
        things.stop()


def attempt(url: str) -> str:
    try:
        sessions.open_session(lambda: psycopg.connect(url)).close()
    except Misconfigured:
        return "refused"
    except psycopg.OperationalError:  # the test had no result: the next attempt decides
        return "retry"
    return "accepted"


def settings_of(db: psycopg.Connection) -> dict[str, str]:
    names = [*HOT_SETTINGS, "synchronous_commit"]
    rows = db.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (names,)).fetchall()
    return dict(rows)
