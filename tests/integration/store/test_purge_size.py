"""The purge keeps the database small, costs little however much there is, and is the operator's to call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import main
from orchestrator.operations.maintenance.heartbeat import Heartbeat
from orchestrator.operations.maintenance.purge import Policy, purge
from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.store.maintenance import purge as purging
from qa.bench.updates_size import BAR, grow
from tasks.periodic import PeriodicThread
from tests.scenarios.world import World, test_resource

TABLES = """
SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS size FROM pg_stat_user_tables
"""
MANY = """
INSERT INTO content (hash, body, created_at)
SELECT sha256(('text ' || n)::bytea), 'text', now() - interval '1 day'
FROM generate_series(1, %(contents)s) AS n;
INSERT INTO revision (stack_id, number, action, template_hash, files, outline)
SELECT s.id, 1 + n, 'UPDATE', sha256(('text ' || n)::bytea),
    (SELECT jsonb_object_agg('f' || f, encode(sha256(('text ' || f)::bytea), 'hex'))
        FROM generate_series(n * 10, n * 10 + 9) AS f), '{}'
FROM stack s, generate_series(1, %(revisions)s) AS n
"""


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url)
    yield made
    made.close()


@pytest.fixture
def db(world: World) -> Iterator[psycopg.Connection[Any]]:
    with world.database.connect(hot=True, replan=True) as connection:
        yield connection


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["purge", *arguments])


def full_vacuum(world: World) -> None:
    with psycopg.connect(world.database.url, autocommit=True) as connection:
        connection.execute("VACUUM")


def test_after_many_updates_and_a_purge_there_is_not_much_more_than_after_the_first(world: World):
    sizes: list[int] = []

    def settle(_: World) -> None:
        full_vacuum(world)
        sizes.append(world.rows(TABLES)[0].size)

    policy = Policy(0, 0, revisions=5, revisions_seconds=0, nodes_seconds=0)
    grow(world, 30, 30, policy, settle=settle)
    first, _, last = sizes
    assert last <= BAR * first
    for table, most in (("revision", 6), ("content", 6), ("resource_definition", 36), ("graph_node", 0)):
        assert world.rows(f"SELECT count(*) FROM {table}")[0][0] <= most
    world.update("s", {"a": test_resource()})
    world.deliver_all()
    assert world.stack_row("s").state == "UPDATE_COMPLETE"


def test_unreferenced_contents_are_found_by_keys_among_very_many(world: World, db):
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    with psycopg.connect(world.database.url, autocommit=True) as connection:
        for statement in MANY.split(";"):
            connection.execute(statement.encode(), {"contents": 30_000, "revisions": 2_000})
        connection.execute("ANALYZE")
    hashes = purging.ids(db, purging.CONTENTS, {"after": b"", "limit": 500})
    with db.transaction():
        db.execute(purging.USE_FILE_INDEX)
        values = {"hashes": hashes[:2], "going": []}
        plan = db.execute(f"EXPLAIN {purging.UNREFERENCED}", values).fetchall()
    text = "\n".join(line for (line,) in plan)
    for index in ("pk_content", "ix_revision_template_hash", "ix_revision_file_hashes"):
        assert index in text, text
    assert "Seq Scan" not in text, text
    assert purge(db, Policy(0, 1e9, 50_000, 0, 1e9)) == {"texts": 30_000 - 20_009}


def test_the_tick_purges_when_there_is_nothing_else_to_do(world: World, monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []

    class Quiet:
        def publish(self, rings: list[Any], report: object) -> None:
            calls.append("publish")
            tick.stopping()

    monkeypatch.setattr(Sweep, "purge", lambda _: calls.append("purge"))
    reporting = Heartbeat(world.database, "check1@here", ["check"])
    tick = PeriodicThread(world.sweep, reporting, Quiet(), 0.0)  # type: ignore[arg-type]
    tick.run()
    assert calls == ["publish", "purge"]


def test_the_command_reports_the_rows_to_purge_and_then_purges_them(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", world.database.url)
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert run().output == "nothing to delete\n"
    reported = run("--dry-run", "--deleted-after", "0", "--nodes-after=1h")
    assert "deleted stacks: 1 to delete" in reported.output
    assert world.rows("SELECT 1 FROM stack")
    done = run("--deleted-after", "0", "--nodes-after=1h")
    assert done.output == reported.output.replace("to delete", "deleted")
    assert not world.rows("SELECT 1 FROM stack")


@pytest.mark.parametrize("wrong", ["soon", "-1", "1.5h", "d", ""])
def test_a_duration_that_is_none_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ORCHESTRATOR_DATABASE_URL", "postgresql://nobody.invalid/none")
    refused = run(f"--events-after={wrong}")
    assert refused.exit_code == 1
    assert "is not a duration; examples: 90, 15m, 12h, 30d" in refused.output


def test_tables_and_indexes_stop_growing_while_stacks_come_and_go(world: World, db):
    sizes = []
    for number in range(8):
        world.create(f"s{number}", {f"r{n}": test_resource(str(n)) for n in range(20)})
        world.deliver_all()
        world.delete(f"s{number}")
        world.deliver_all()
        purge(db, Policy(0, 0, 0, 0, 0))
        full_vacuum(world)
        sizes.append(world.rows(TABLES)[0].size)
    assert sizes[-1] <= 1.2 * sizes[2], sizes
