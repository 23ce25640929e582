"""Cost of the continuous observation: quiet rounds, and the way from a fault to its verdict and its repair.

The engine runs without processes of its own (`tests/scenarios/world.py`), on a provider in memory. The rows
of the larger sizes are copies of a stack that the engine has made.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import running
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value
from orchestrator.store.observation import groups
from orchestrator.store.schema import migrate
from tests.scenarios.world import World

SIZES: Final = (1_000, 10_000, 100_000)
REPAIRED: Final = (1_000, 10_000)  # resources of the stacks with a repair
QUIET_ROUNDS: Final = 5
HOUR_ROUNDS: Final = 60
MANY_PER_HOUR: Final = 10_000  # resources of the quiet hour at the most
INTERVAL: Final = 60.0
PROJECT: Final = "p1"
TICKS: Final = os.sysconf("SC_CLK_TCK")

COPY: Final = """
WITH s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, status_reason, traversal)
        OVERRIDING SYSTEM VALUE
    SELECT x.id, x.id, gen_random_uuid(), o.project_id, o.name || '-' || x.n, o.action, o.status, '', 1
    FROM stack o CROSS JOIN (SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS id, n
        FROM generate_series(%(first)s::int, %(last)s::int) AS n) AS x
    WHERE o.name = 'base'
    RETURNING id, name
)
INSERT INTO resource (uuid, stack_id, name, type, physical_id, action, status, properties)
SELECT gen_random_uuid(), s.id, r.name, r.type, s.name || r.physical_id, r.action, r.status, r.properties
FROM s CROSS JOIN resource r JOIN stack o ON o.id = r.stack_id AND o.name = 'base'
RETURNING physical_id
"""
WRITTEN: Final = """
SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname <> 'alembic_version'
"""


@dataclass(frozen=True, slots=True)
class ObserveRun:
    """The cost of the observation of a number of resources."""

    size: int
    cpu_us: float  # of a quiet round per resource, in worker and database
    seconds: float  # of a quiet round
    calls: float  # of a quiet round
    written: float  # rows of a quiet round, beyond that of the group
    verdict_seconds: float  # of the round that finds a fault

    @property
    def share(self) -> float:
        """The share of a core that quiet rounds take."""
        return self.cpu_us * self.size / 1e6 / INTERVAL

    def __str__(self) -> str:
        """Return the run as a line of text."""
        return (
            f"observe {self.size:,}: quiet round {self.seconds:.2f} s, {self.cpu_us:.1f} us CPU each, "
            f"{self.share:.2%} of a core, {self.calls:.0f} calls, {self.written:.0f} rows written; "
            f"round with a fault {self.verdict_seconds:.2f} s"
        )


@dataclass(slots=True)
class ObserveRuns:
    """All figures."""

    rounds: list[ObserveRun] = field(default_factory=list)
    repair_seconds: dict[int, float] = field(default_factory=dict)  # by size of the stack
    hour_bytes: float | None = None  # growth of the database in a quiet hour

    def __str__(self) -> str:
        """Return the figures as lines of text."""
        lines = [str(run) for run in self.rounds]
        lines += [f"repair in a stack of {n:,}: {s:.2f} s" for n, s in self.repair_seconds.items()]
        if self.hour_bytes is not None:
            lines.append(_hour(self.hour_bytes))
        return "\n".join(lines)


def _hour(grown: float) -> str:
    return f"database growth in a quiet hour: {grown / 1e6:.2f} MB"


class Item(ResourceType):
    """A type with lists."""

    name = "Bench::Item"
    service = "bench"
    lists = "items"
    properties: ClassVar = {"label": Property("string", "Text.", update_allowed=True)}

    def __init__(self) -> None:
        """Start without objects."""
        self.objects: dict[str, dict[str, Any]] = {}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Keep an object."""
        id_ = f"item-{len(self.objects)}-{ctx.token}"
        self.objects[id_] = {"label": props.get("label")}
        return Created(id_)

    def find(self, ctx: Context, token: str) -> str | None:
        """Find nothing."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read an object."""
        found = (ctx.listed or {}).get(physical_id) or self.objects.get(physical_id)
        if found is None:
            return Observation(exists=False)
        return Observation(exists=True, properties=dict(found))

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change an object."""
        self.objects[physical_id]["label"] = props.get("label")
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Remove an object."""
        self.objects.pop(physical_id, None)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield all objects."""
        yield from self.objects.items()


class Bench:
    """A world with items, and its rounds."""

    def __init__(self, url: str) -> None:
        """Create nothing yet."""
        self.items = Item()
        self.world = World(url, types={Item.name: self.items}, observation_interval_seconds=INTERVAL)
        self.db = self.world.database.check_connection(durable=True)
        self.pid = self.db.info.backend_pid

    def stack(self, name: str, size: int) -> None:
        """Create a stack by the engine."""
        item = {"type": Item.name, "properties": {"label": "blue"}}
        self.world.create(name, {f"r{number}": item for number in range(size)})
        self.deliver()

    def deliver(self) -> None:
        """Deliver all messages."""
        while self.world.messages:
            self.world.deliver()

    def copy(self, first: int, last: int) -> None:
        """Add copies of the stack `base`."""
        for (id_,) in self.db.execute(COPY, {"first": first, "last": last}).fetchall():
            self.items.objects[id_] = {"label": "blue"}

    def discover(self) -> None:
        """Find the groups."""
        groups.start_discoveries(self.db, self.world.settings.region_name, 0.0)
        self.run("discovery")

    def run(self, kind: str = "lists") -> None:
        """Carry out a round."""
        self.db.execute(
            "UPDATE observation_group SET due_at = now() + interval '1 hour' WHERE kind <> %s", (kind,)
        )
        self.db.execute("UPDATE observation_group SET due_at = now() WHERE kind = %s", (kind,))
        for message in groups.due(self.db, 10):
            self.world.deliver_one(message)

    def cpu(self) -> float:
        """Return the processor time of this thread and its database process, in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return time.thread_time() + (int(fields[11]) + int(fields[12])) / TICKS

    def written(self) -> int:
        """Return the number of rows that were written so far."""
        self.db.execute("SELECT pg_stat_force_next_flush()")
        rows = dict(self.db.execute(WRITTEN).fetchall())
        return sum(count for name, count in rows.items() if name != "observation_group")

    def measure(self, size: int) -> ObserveRun:
        """Measure quiet rounds, and one that finds a fault."""
        self.db.execute("VACUUM ANALYZE resource")
        self.discover()
        for _ in range(2):
            self.run()
        written, started, spent = self.written(), time.perf_counter(), self.cpu()
        for _ in range(QUIET_ROUNDS):
            self.run()
        spent, seconds = self.cpu() - spent, time.perf_counter() - started
        calls = self.db.execute("SELECT sum(calls) FROM observation_group WHERE kind = 'lists'").fetchone()
        rows = self.written() - written
        lost = next(iter(self.items.objects))
        kept = self.items.objects.pop(lost)
        started = time.perf_counter()
        self.run()
        verdict_seconds = time.perf_counter() - started
        self.items.objects[lost] = kept
        self.run()
        return ObserveRun(
            size,
            spent / QUIET_ROUNDS / size * 1e6,
            seconds / QUIET_ROUNDS,
            float(calls[0]) if calls else 0.0,
            rows / QUIET_ROUNDS,
            verdict_seconds,
        )

    def repair(self, stack: str) -> float:
        """Return the seconds from the verdict on a missing object to the end of its repair."""
        [row] = self.world.rows(
            "SELECT r.physical_id FROM resource r JOIN stack s ON s.id = r.stack_id"
            " WHERE s.name = :s ORDER BY r.id LIMIT 1",
            s=stack,
        )
        del self.items.objects[row.physical_id]
        self.run()
        started = time.perf_counter()
        self.world.messages += repair_due_faults(self.db, self.world.types)
        self.deliver()
        seconds = time.perf_counter() - started
        assert self.world.rows("SELECT 1 FROM repair WHERE status = 'started'")
        repair_due_faults(self.db, self.world.types)
        self.run()
        repair_due_faults(self.db, self.world.types)
        return seconds

    def hour(self) -> float:
        """Return the growth of the database in the rounds of a quiet hour, in bytes."""

        def size() -> int:
            row = self.db.execute("SELECT pg_database_size(current_database())").fetchone()
            return int(row[0]) if row else 0

        before = size()
        for _ in range(HOUR_ROUNDS):
            self.run("discovery")
            self.run()
        return float(size() - before)


def measure_observation(
    sizes: Iterable[int] = SIZES, tell: Callable[[str], None] = lambda _: None
) -> ObserveRuns:
    """Measure all sizes on its own database."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs under another account
        server = Postgres(folder / "postgres")
        with running(server.child(), folder / "postgres.log"):
            migrate.upgrade(server.url())
            bench = Bench(server.url())
            try:
                return measured(bench, sorted(sizes), tell)
            finally:
                bench.world.close()


def measured(bench: Bench, sizes: Iterable[int], tell: Callable[[str], None]) -> ObserveRuns:
    """Measure all sizes, each a project of the resources before and further copies."""
    runs = ObserveRuns()
    base = min(sizes)
    bench.stack("base", base)
    copies = 1
    for size in sizes:
        wanted = size // base
        if wanted > copies:
            bench.copy(copies, wanted - 1)
            copies = wanted
        runs.rounds.append(bench.measure(size))
        tell(str(runs.rounds[-1]))
        if size <= MANY_PER_HOUR:  # the last one counts: that of the most resources
            runs.hour_bytes = bench.hour()
            tell(f"{size:,}: {_hour(runs.hour_bytes)}")
    bench.db.execute("DELETE FROM resource r USING stack s WHERE s.id = r.stack_id AND s.name LIKE 'base-%'")
    bench.db.execute("DELETE FROM stack WHERE name LIKE 'base-%'")
    bench.db.execute(
        "INSERT INTO observation_rule (uuid, project_id, kind, mode, created_by)"
        " VALUES (gen_random_uuid(), %s, 'policy', 'heal', 'bench')",
        (PROJECT,),
    )
    for size in REPAIRED:
        if size <= max(sizes):
            name = f"stack-{size}"
            bench.stack(name, size)
            bench.run()
            runs.repair_seconds[size] = bench.repair(name)
            tell(f"repair in a stack of {size:,}: {runs.repair_seconds[size]:.2f} s")
    return runs
