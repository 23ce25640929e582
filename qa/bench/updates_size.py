"""`python -m qa.bench.updates_size`: size of the database after many small updates and their purge.

Uses the real engine and its own PostgreSQL, set up as by `orchestrator up`, without processes in between: the
same updates, only faster. Sizes are `pg_database_size`, after autovacuum. Rows that the purge policy keeps
for a day or an hour are treated as older; the other defaults apply.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from orchestrator.config import Settings
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import running
from orchestrator.logs import configure_logs
from orchestrator.operations.maintenance.purge import Policy, purge
from orchestrator.store.schema import migrate
from qa.bench.shapes import layered
from tests.scenarios.world import World

BAR = 3.0  # times the size after the first update
MB = 1024 * 1024
VACUUM_SECONDS = 90.0  # the longest wait for autovacuum, which looks every 15 s
SIZE = "SELECT pg_database_size(current_database()) AS size"
DEAD = """
SELECT count(*) AS tables FROM pg_stat_user_tables
WHERE n_dead_tup > 50 + 0.2 * n_live_tup AND relname <> 'alembic_version'
"""
LARGEST = """
SELECT relname, pg_total_relation_size(relid) AS size FROM pg_stat_user_tables
ORDER BY size DESC LIMIT 8
"""


@dataclass(slots=True)
class Sizes:
    """Bytes at each point, and the number of purged rows."""

    at: dict[str, int] = field(default_factory=dict)
    purged: Mapping[str, int] = field(default_factory=dict)
    tables: dict[str, int] = field(default_factory=dict)  # the largest in the end
    seconds: float = 0.0  # a purge took

    @property
    def times(self) -> float:
        """Final size over the size after the first update."""
        return self.at["after the purge"] / self.at["after the first update"]


def grow(
    world: World,
    resources: int,
    updates: int,
    policy: Policy,
    *,
    settle: Callable[[World], None],
    tell: Callable[[str], None] = lambda _: None,
) -> Sizes:
    """Create a stack, update it repeatedly by a single change, and purge; `settle` waits for vacuum."""
    dice, sizes, template = random.Random(0), Sizes(), layered(resources)

    def note(point: str) -> None:
        sizes.at[point] = world.rows(SIZE)[0].size
        tell(f"{point}: {sizes.at[point] / MB:.1f} MB")

    note("empty")
    uuid = world.create("s", template)
    world.deliver_all()
    for number in range(1, updates + 1):
        _change(template, dice, number)
        world.update("s", template)
        world.deliver_all()
        assert world.state(uuid) == "UPDATE_COMPLETE"
        if number == 1:
            settle(world)
            note("after the first update")
        elif number % 100 == 0:
            note(f"after {number} updates")
    settle(world)
    note("before the purge")
    began = time.monotonic()
    with world.database.connect(hot=True, replan=True) as db:
        sizes.purged = purge(db, policy)
    sizes.seconds = time.monotonic() - began
    settle(world)
    note("after the purge")
    sizes.tables = {row.relname: row.size for row in world.rows(LARGEST)}
    return sizes


def _change(template: dict[str, Any], dice: random.Random, number: int) -> None:
    """Change the value of a resource; its dependents do not use that value."""
    properties = dice.choice(list(template.values()))["properties"]
    if isinstance(properties["value"], str):
        properties["value"] = f"made in update {number}"
    else:
        text = properties["value"]["str_replace"]
        text["template"] = f"made in update {number} of {' and '.join(text['params'])}"


def autovacuum(world: World) -> None:
    """Wait until nothing is left for autovacuum to do, or it has had time enough."""
    deadline = time.monotonic() + VACUUM_SECONDS
    time.sleep(2)  # until statistics are in
    while world.rows(DEAD)[0].tables and time.monotonic() < deadline:
        time.sleep(1)


@click.command()
@click.option("--resources", default=1_000, show_default=True)
@click.option("--updates", default=1_000, show_default=True)
def main(*, resources: int, updates: int) -> None:
    """Measure; exit with 1 when the database has grown too much."""
    configure_logs(level="WARNING")
    with tempfile.TemporaryDirectory(prefix="orchestrator-bench-") as name:
        folder = Path(name)
        # as root, the database runs under another account, which must be able to enter the folder
        folder.chmod(0o711)
        server = Postgres(folder / "postgres")
        with running(server.child(), folder / "postgres.log"):
            migrate.upgrade(server.url())
            world = World(server.url())
            policy = replace(Policy.of(Settings()), revisions_seconds=0, nodes_seconds=0)
            try:
                sizes = grow(world, resources, updates, policy, settle=autovacuum, tell=click.echo)
            finally:
                world.close()
    click.echo(f"purged in {sizes.seconds:.1f} s: {dict(sizes.purged)}")
    click.echo("largest: " + ", ".join(f"{name} {size / MB:.1f} MB" for name, size in sizes.tables.items()))
    click.echo(f"{'ok' if sizes.times <= BAR else 'SHORT'}: {sizes.times:.2f} times, at most {BAR:g}")
    sys.exit(sizes.times > BAR)


if __name__ == "__main__":
    main()
