"""A check reads the rows of its node, independent of the table statistics when its statements were planned
(invariant 6).

A connection keeps the plans that it made. A plan made just after an update that changed nothing, when
hardly a node was left, is used for the large update that follows.
"""

from __future__ import annotations

import psycopg
import pytest

from qa.bench.shapes import template
from tests.scenarios.world import World

SIZE = 300
MOST = 40  # rows or index entries of a table for each check; a sequential scan would read SIZE

READ = """
SELECT relname, coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_user_tables
UNION ALL SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes
"""


def read(world: World) -> dict[str, int]:
    """Return the rows read so far, by table and index, of the connections that checks are made on."""
    for durable in (True, False):
        world.database.check_connection(durable=durable).execute("SELECT pg_stat_force_next_flush()")
    return {row[0]: int(row[1]) for row in world.rows(READ)}


def plan_for_empty_tables(world: World, url: str) -> None:
    """Let the statistics say that there is hardly a row, and every statement be planned by them."""
    world.database.engine.dispose()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("VACUUM (ANALYZE) graph_node, resource, resource_definition, stack")
    for durable in (True, False):
        world.database.check_connection(durable=durable).close()
    world.submit("tiny", template("layered", 20))
    world.deliver_all()
    world.update("tiny", template("layered", 20, "replace-all")["resources"])
    world.deliver_all()
    world.delete("tiny")
    world.deliver_all()


@pytest.mark.parametrize("shape", ["layered", "fan-in"])
def test_plans_made_while_tables_were_empty_serve_a_large_stack(
    world: World, postgres_url: str, shape: str
) -> None:
    plan_for_empty_tables(world, postgres_url)
    for operation in ("create", "change-all", "replace-all", "delete"):
        expected = template(shape, SIZE, operation)
        if operation == "create":
            world.submit("large", expected)
        elif operation == "delete":
            world.delete("large")
        else:
            world.update("large", expected["resources"])
        before = read(world)
        world.deliver_all()
        assert [row.status for row in world.rows("SELECT status FROM stack WHERE name = 'large'")] == [
            "COMPLETE"
        ]
        each = {name: (count - before[name]) / SIZE for name, count in read(world).items()}
        assert {name: count for name, count in each.items() if count > MOST} == {}, operation
