"""A world whose workers are interrupted between any two statements: they die there, or other workers
continue.

Everything comes from a single seed: the order of deliveries, repeats, losses, deaths, lost leases, the
provider's answers. A worker is an engine with its own connections; a worker that stops between two
statements lets another run, or a user ask, or time pass, and then goes on as if nothing had happened. That is
how two
workers meet here, without threads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import text

from orchestrator.engine.messages import CheckMessage, Message, ObservationMessage, RoundMessage
from orchestrator.operations.maintenance import orphans
from orchestrator.operations.maintenance.late_requests import follow_late_requests
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.operations.maintenance.sweep import Sweep
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.operations.observation.observe import observe_resource
from orchestrator.operations.observation.rounds import observe_group
from orchestrator.operations.reconcile.check import check_of
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.runtime import dispatch_window, lease_keeper
from orchestrator.resources.base import Context
from orchestrator.store.connections.database import Database
from tests.scenarios import clock, invariants
from tests.scenarios.fake_cloud import Crash
from tests.scenarios.faults import CALM, Faults
from tests.scenarios.named_things import named_types
from tests.scenarios.provider import Provider
from tests.scenarios.simulated import HeldByTheTest, SimulatedDatabase, TimelessWindows, timeless_jobs
from tests.scenarios.thing_order import dependents, required
from tests.scenarios.warm_database import plan_once
from tests.scenarios.world import HOUR, World

WORKERS = 3  # at once
NO_FILES: Mapping[str, str] = {}
TABLES = (
    "repair",
    "verdict_history",
    "resource_verdict",
    "observation_group",
    "observation_rule",
    "orphan",
    "late_request",
    "observation",
    "observation_pass",
    "stale_child",
    "failure",
    "event",
    "graph_node",
    "resource_definition",
    "resource",
    "stack",
    "content",
)


Delivered = CheckMessage | ObservationMessage | RoundMessage


@dataclass
class Worker:
    """A process: its own connections and memory."""

    database: Database
    engine: WorkerContext
    sweep: Sweep


def _order(message: Delivered) -> tuple[object, ...]:
    if isinstance(message, ObservationMessage):
        return message.label, 0, "observe", message.resource_id
    if isinstance(message, RoundMessage):
        return message.label, 0, "round", message.group_id
    return message.label, message.traversal, message.queue, message.node_id


class Simulator(World):
    """An installation with a few workers, a provider, and a seed."""

    def __init__(self, url: str, *, seed: int = 0, provider: Provider | None = None, **settings: Any) -> None:
        self.provider = provider or Provider()
        self.depth = 0  # how many workers stand in the middle of something
        self.faults = CALM
        self.dice = random.Random(seed)
        self.moments = 0  # before and after every statement and every call of the provider, counted
        self.crash_at: int | None = None  # the moment to die at
        self.user: Callable[[], None] | None = None  # a request that a user may send at any moment
        self.crashes = 0
        self.meddled = False  # a user has changed child stacks directly
        types = self.provider.types() | named_types(self.provider)
        super().__init__(url, seed=seed, types=types, **settings)
        self.workers = [self.worker() for _ in range(WORKERS)]
        for worker in self.workers:  # work that only the first seed would do
            worker.sweep.run()
            plan_once(worker.sweep._db)
            for durable in (True, False):
                worker.database.check_connection(durable=durable)
        self.provider.fate = self.fate
        self.provider.required = lambda token: required(self, token, meddled=self.meddled)
        self.provider.dependents = lambda id_: dependents(self, id_)

    def reset(self, seed: int) -> None:
        """Reset with a new seed and an empty provider. Connections stay open: they cost the most."""
        self.seams.remove()
        self.faults, self.depth, self.user, self.meddled = CALM, 0, None, False
        self.crash_at, self.moments, self.crashes = None, 0, 0
        with self.database.engine.begin() as connection:
            for table in TABLES:
                connection.execute(text(f"DELETE FROM {table}"))
        provider = self.provider
        fresh = Provider(fate=self.fate, required=provider.required, dependents=provider.dependents)
        provider.__dict__.update(fresh.__dict__)
        self.dice, self.messages = random.Random(seed), []
        for worker in self.workers:
            worker.engine = self.memory(worker.database)
            worker.sweep.jobs = timeless_jobs()

    def reset_order(self, seed: int) -> None:
        """Go on in another order."""
        self.dice = random.Random(seed)

    # Processes.

    def open(self, url: str) -> Database:
        database = SimulatedDatabase(url, "orchestrator-test")
        database.simulator = self
        return database

    def worker(self) -> Worker:
        database = self.open(self.settings.database_url.get_secret_value())  # type: ignore[union-attr]
        sweep = Sweep(database, self.settings, self.types, self.cipher, jobs=timeless_jobs())
        return Worker(database, self.memory(database), sweep)

    def memory(self, database: Database) -> WorkerContext:
        """Return a worker's memory, empty."""
        own, self.database = self.database, database
        try:
            engine = self.new_engine()
        finally:
            self.database = own
        return replace(
            engine,
            leases=HeldByTheTest(database, lease_keeper.LEASE_SECONDS),
            windows=TimelessWindows(dispatch_window.SIZE),
        )

    def close(self) -> None:
        self.faults, self.depth = CALM, 0
        super().close()
        for worker in self.workers:
            worker.database.engine.dispose()
            for durable in (True, False):
                worker.database.check_connection(durable=durable).close()
            worker.sweep.close()

    # Where something may happen.

    def moment(self, where: str) -> None:
        """A worker stands before or after a statement."""
        if not self.depth:
            return
        self.moments += 1
        if self.crash_at == self.moments:
            raise Crash
        if self.dice.random() < self.faults.crash:
            raise Crash
        if where == "before" and self.depth < WORKERS and self.dice.random() < self.faults.switch:
            self.meanwhile()

    def meanwhile(self) -> None:
        """Let other workers act."""
        if self.dice.random() < self.faults.age:
            self.age()
        for _ in range(self.dice.randint(1, 6)):
            if self.user is not None and self.dice.random() < 0.02:
                self.as_a_user(self.user)
            elif not self.step():
                return

    def as_a_user(self, action: Callable[[], None]) -> None:
        """Ask for something: the API is no worker, and is not interrupted here."""
        depth, self.depth = self.depth, 0
        try:
            action()
        finally:
            self.depth = depth

    def fate(self, verb: str, _ctx: Context) -> str:
        """Return how a call of the provider fares."""
        self.moments += 2
        if self.crash_at == self.moments - 1:
            return "killed late" if verb == "create" else "killed"
        if self.crash_at == self.moments:
            return "killed after"
        return self.faults.fate(verb, self.dice.random())

    # Deliveries.

    def deliver_one(self, message: Delivered) -> None:
        worker = self.workers[self.depth]
        self.depth += 1
        try:
            rings: Sequence[Message]
            if isinstance(message, ObservationMessage):
                rings = [
                    *follow_late_requests(worker.engine, message.resource_id),
                    *observe_resource(worker.engine, message.resource_id),
                ]
            elif isinstance(message, RoundMessage):
                rings = self._observe_group(worker, message.group_id)
            else:
                check = check_of(message.queue)
                rings = check(worker.engine, [message.node_id], message.traversal, None)
            if self.faults.lose and self.dice.random() < self.faults.lose / 2:
                return  # it died before it could send them
            self.messages += rings
        except Crash:
            self.crashes += 1
            worker.engine = self.memory(worker.database)
        finally:
            self.depth -= 1

    def _observe_group(self, worker: Worker, group_id: int) -> list[CheckMessage]:
        """Carry out a round, and start the repairs that are due after it."""
        touched, db = observe_group(worker.engine, group_id), worker.database.check_connection(durable=True)
        return [message for id_ in touched for message in repair_due_faults(db, self.types, id_)]

    def step(self) -> bool:
        """Deliver a random message; with none left, sweep. Return False if that found nothing."""
        if not self.messages:
            return self.sweep_once()
        self.messages.sort(key=_order)
        message = self.messages.pop(self.dice.randrange(len(self.messages)))
        if self.dice.random() < self.faults.repeat:
            self.messages.append(message)
        if self.dice.random() >= self.faults.lose:
            self.deliver_one(message)
        return True

    def sweep_once(self) -> bool:
        """Make scheduled work due and sweep; return False if that found nothing."""
        clock.make_due(self.database, "node", "snapshot", "observation", "observation pass", "hastened round")
        self.elapse(HOUR, "enqueue", "round message")
        if self.depth >= WORKERS:
            return False
        worker = self.workers[self.depth]
        self.depth += 1
        try:
            self.messages += worker.sweep.run()
        except Crash:
            self.crashes += 1
        finally:
            self.depth -= 1
        return bool(self.messages)

    def age(self) -> None:
        """An hour passes: leases expire, and the provider executes delayed requests."""
        self.provider.land()
        clock.expire_leases(self.database)
        clock.make_probes_due(self.database)
        self.elapse(HOUR, "lost lease", "operation", "wait", *clock.LATE)

    def forget_leases(self) -> None:
        self.age()

    def run(self, count: int, faults: Faults) -> None:
        """Run a number of steps with faults."""
        self.faults = faults
        try:
            for _ in range(count):
                if not self.step():
                    self.age()
        finally:
            self.faults = CALM

    def go(self, *held: str, until: Callable[[], object] = lambda: False, limit: int = 2_000) -> None:
        """Deliver in any order, but nothing labelled as `held`, until something is so or nothing is left."""
        for _ in range(limit):
            if until():
                return
            free = [message for message in self.messages if message.label not in held]
            if not free:
                self.sweep_once()
                free = [message for message in self.messages if message.label not in held]
            if not free:
                return
            free.sort(key=_order)
            message = self.dice.choice(free)
            if self.dice.random() >= self.faults.repeat:
                self.messages.remove(message)
            if self.dice.random() >= self.faults.lose:
                self.deliver_one(message)
        raise AssertionError("it never comes to where it should")

    def rest(self, *, limit: int = 5_000) -> None:
        """Let everything that is under way come to its end, in any order."""
        for _ in range(limit):
            if self.messages:
                self.step()
                continue
            self.age()
            if not self.sweep_once() and not self.sweep_once():
                orphans.delete_orphans(self.database.check_connection(durable=True), OrphanAccess(self.types))
                return
        raise AssertionError("it never comes to rest")

    # Readers of the rows.

    def stack(self) -> Any:
        """Return the youngest stack that is in no other."""
        return self.rows("SELECT * FROM stack WHERE owner_id IS NULL ORDER BY id DESC LIMIT 1")[0]

    def children(self) -> list[Any]:
        """Return the live child stacks, by id."""
        query = """SELECT *, uuid::text AS uuid FROM stack
            WHERE owner_id IS NOT NULL AND deleted_at IS NULL ORDER BY id"""
        return self.rows(query)

    def done(self, verb: str) -> list[str]:
        """Return the names of the created, updated or deleted things, in that order."""
        return [name for did, name, _ in self.provider.log if did == verb]

    def ids(self) -> dict[str, str]:
        """Return the physical ids by name."""
        query = "SELECT name, physical_id FROM resource WHERE NOT deposed ORDER BY name"
        return {row.name: row.physical_id for row in self.rows(query)}

    # Invariants.

    def verify(self, resources: Mapping[str, Any], files: Mapping[str, str] = NO_FILES) -> None:
        """Exactly the things of these resources are there, with the values they give, and nothing is open."""
        invariants.verify(self, self.provider, resources, files)

    def sound(self) -> None:
        """The invariants of an idle system: no open operation, no unknown thing, no broken rule."""
        invariants.sound(self, self.provider)
