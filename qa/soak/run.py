"""A run: stacks, requests, kills, quiescence, verdict. Requests and kills derive from the same seed."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from orchestrator.embedded.data_dir import DataDir
from orchestrator.operations.maintenance import purge
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance.stale_inputs import stale_inputs
from qa.soak import noise, templates, verdict
from qa.soak.killer import RECOVERY_SECONDS, Kill, Killer
from qa.soak.users import ACTS, Api, UserStack
from tests import constants
from tests.e2e.running import Up, environment
from tests.patience import slowness
from tests.plugins.thing_fixture import ThingServer

PROBE = {
    "a": {"type": templates.THING, "properties": {"value": "probe"}},
    "b": {"type": templates.VALUE, "properties": {"value": {"get_attr": ["a", "value"]}}},
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a run is to be."""

    seconds: float = 120.0
    seed: int = 0
    stacks: int = 5
    size: int = 12  # maximum of resources of a stack; a single stack has five times as many
    kill_seconds: float = 3.0  # between two kills, about
    kills_at_once: int = 3  # not got over yet
    ask_seconds: float = 0.4  # between two requests, about
    rest_seconds: float = 240.0  # to come to rest in after the last kill
    kills: int = 0  # end after this number of kills; 0: after `seconds`
    outage_seconds: float = 0.0  # maximum duration of an outage of a service; 0: no outages
    stuck: float = 0.0  # fraction of things that never become ready
    held: float = 0.0  # fraction of changes of things that are carried out late
    constants: dict[str, float] = field(default_factory=dict)  # of the installation, over those of a run


CORRECTED_SECONDS = 60.0  # after the last late request was carried out (operations/adr/0025)
CONVERGING = ("CREATE", "UPDATE", "ROLLBACK")  # a check may change outputs until the next update

# Small bodies count as large: separate processes parse and plan them, and may be killed.
CONSTANTS = {"inline_body_size": 3_000}


PURGED = purge.Policy(deleted_seconds=0, events_seconds=0, revisions=2, revisions_seconds=0, nodes_seconds=0)


@dataclass(slots=True)
class Report:
    """Events of the run, and all faults."""

    plan: Plan
    requests: Counter[str] = field(default_factory=Counter)
    kills: list[Kill] = field(default_factory=list)
    things: int = 0
    purged: Counter[str] = field(default_factory=Counter)
    stuck: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)  # leaks, differences, states
    late: list[str] = field(default_factory=list)
    rest_seconds: float = 0.0  # from the last request until nothing moved
    outages: int = 0
    destroyed: list[str] = field(default_factory=list)  # healthy things, deleted without a reason
    stale: list[str] = field(default_factory=list)  # resources built with former outputs of others

    @property
    def faults(self) -> list[str]:
        """Everything that was wrong."""
        return [*self.stuck, *self.doubled, *self.destroyed, *self.stale, *self.invalid, *self.late]

    @property
    def leaked(self) -> list[str]:
        """The faults that are objects without an owner."""
        return [fault for fault in self.invalid if "leaked" in fault or "nobody's" in fault]

    def __str__(self) -> str:
        victims = Counter(kill.victim for kill in self.kills)
        actions: Counter[str] = Counter()
        for kill in self.kills:
            actions.update(kill.actions.keys())
        longest = max((kill.freed_seconds or 0.0 for kill in self.kills), default=0.0)
        probe = max((kill.probe_seconds or 0.0 for kill in self.kills), default=0.0)
        quiet = max((kill.quiet_seconds or 0.0 for kill in self.kills), default=0.0)
        return "\n".join(
            [
                f"seed {self.plan.seed}: {len(self.kills)} kills, {self.outages} outages, "
                f"{self.things} things made",
                f"  requests: {dict(self.requests)}",
                f"  killed: {dict(victims)}",
                f"  during: {dict(actions)}",
                f"  purged: {dict(self.purged)}",
                f"  longest recovery: {longest:.1f} s until a lease was free, {probe:.1f} s for a new stack "
                f"({quiet:.1f} s after the last kill before that)",
                f"  {len(self.stuck)} stuck, {len(self.doubled)} doubled, {len(self.leaked)} leaked, "
                f"{len(self.destroyed)} healthy destroyed, {len(self.stale)} stale, "
                f"{len(self.invalid) - len(self.leaked)} wrong, "
                f"{len(self.late)} late; at rest after {self.rest_seconds:.0f} s",
                *(f"  {fault}" for fault in self.faults),
            ]
        )


def run(folder: Path, plan: Plan) -> Report:
    """Run a plan in an empty folder."""
    print(f"kills: seed {plan.seed}, {plan.seconds:.0f} s", flush=True)
    things = ThingServer(folder)
    things.start()
    replaced = {**CONSTANTS, **(noise.CONSTANTS if plan.stuck else {}), **plan.constants}
    settings = {**constants.environment(replaced), **(noise.SETTINGS if plan.stuck else {})}
    up = Up(folder / "data", env=things.env(environment(settings)), workers=2)
    drain = threading.Thread(target=_drain, args=(up, folder / "up.log"), daemon=True)
    try:
        up.wait_ready(90)
        drain.start()
        return _Run(up, things, DataDir(folder / "data").postgres().url(), plan).run()
    finally:
        up.process.terminate()
        up.process.wait(90)
        drain.join(10)
        things.stop()


class _Run:
    def __init__(self, up: Up, things: ThingServer, url: str, plan: Plan) -> None:
        self.up, self.things, self.url, self.plan = up, things, url, plan
        self.dice = random.Random(plan.seed)
        self.killer = Killer(up, url, random.Random(plan.seed + 1_000_000))
        self.apis = [Api(up.url)]
        self.api = self.apis[0]
        self.report = Report(plan)
        self.numbers = iter(range(1, 1_000_000))
        self.stacks: list[UserStack] = []
        self.gone: list[UserStack] = []
        self.probes: list[UserStack] = []
        self.threads: list[threading.Thread] = []
        self.errors: list[BaseException] = []
        self.ends = time.monotonic() + plan.seconds
        self.noise = noise.Noise(
            things, random.Random(plan.seed + 2_000_000), plan.outage_seconds, plan.stuck, plan.held
        )
        self.steady = noise.SteadyUser(self.api, random.Random(plan.seed + 3_000_000), 5 * plan.ask_seconds)

    def run(self) -> Report:
        works: list[Callable[[], None]] = [self._kill_until, self._purge_until]
        if self.plan.outage_seconds or self.plan.held:
            works += [lambda: self.noise.run_until(self._over), lambda: self.steady.run_until(self._over)]
        other_items = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]
        for other in other_items:
            other.start()
        while not self._over():
            self._ask()
            time.sleep(self.dice.expovariate(1 / self.plan.ask_seconds))
        for other in other_items:
            other.join()
        self._come_to_rest()
        self._judge()
        for api in self.apis:
            api.close()
        return self.report

    def _over(self) -> bool:
        """Return whether the last request and the last kill are past."""
        if self.errors or time.monotonic() >= self.ends:
            return True
        return 0 < self.plan.kills <= len(self.killer.kills)

    # Requests.

    def _ask(self) -> None:
        """Send a request of a user."""
        while len(self.stacks) < self.plan.stacks:
            self._create()
        stack = self.dice.choice(self.stacks)
        chance = self.dice.random()
        if stack.action == "suspend":  # nothing else goes before it is resumed
            if chance < 0.5:
                self._act(stack, "resume")
            elif chance < 0.6:
                self._delete(stack)
        elif chance < 0.37:
            self._update(stack)
        elif chance < 0.47:
            self._update_sparsely(stack)
        elif chance < 0.55 and stack.action != "delete":
            self._act(stack, self.dice.choice(("check", "suspend", "snapshot")))
        elif chance < 0.65:
            self._count("cancel", stack.cancel(rollback=True))
        elif chance < 0.70:
            self._count("stop", stack.cancel(rollback=False))
        elif chance < 0.77:
            self._delete(stack)
        elif chance < 0.82:
            self._update(stack, broken=True)
        else:
            stack.read_status()

    def _create(self) -> None:
        stack = UserStack(self.api, f"k{next(self.numbers)}")
        size = self._size(stack)
        broken, rollback = self.dice.random() < 0.15, self.dice.random() < 0.5
        resources = templates.fresh(self.dice, self.dice.randint(max(1, size // 2), size))
        if broken:
            resources = templates.broken(self.dice, resources)
        stack.create(resources, broken=broken, rollback=rollback)
        self.stacks.append(stack)
        self._count("create")

    def _update(self, stack: UserStack, *, broken: bool = False) -> None:
        sound = {name: snippet for name, snippet in stack.last.resources.items() if name != "bad"}
        for snippet in sound.values():
            assert "bad" not in str(snippet), snippet
        kind, resources = templates.changed(self.dice, sound, self._size(stack))
        if broken:
            kind, resources = "break", templates.broken(self.dice, resources)
        if stack.update(resources, broken=broken, rollback=self.dice.random() < 0.6):
            self._count(kind)
        else:
            self._retire(stack)

    def _update_sparsely(self, stack: UserStack) -> None:
        sound = {name: snippet for name, snippet in stack.last.resources.items() if name != "bad"}
        for resources in templates.sparse(self.dice, sound):
            if not stack.update(resources, rollback=self.dice.random() < 0.6):
                self._retire(stack)
                return
            self._count("sparse update")

    def _act(self, stack: UserStack, action: str) -> None:
        self._count(action, stack.act(action))

    def _delete(self, stack: UserStack) -> None:
        stack.delete()
        self._count("delete")
        if self.dice.random() < 0.8:  # else another template may come over it
            self._retire(stack)

    def _retire(self, stack: UserStack) -> None:
        if stack in self.stacks:
            self.stacks.remove(stack)
            self.gone.append(stack)

    def _size(self, stack: UserStack) -> int:
        return self.plan.size * 5 if stack.name.endswith("0") or stack.name == "k1" else self.plan.size

    def _count(self, what: str, done: bool = True) -> None:
        if done:
            self.report.requests[what] += 1

    # Kills.

    def _kill_until(self) -> None:
        while not self._over():
            time.sleep(self.killer.dice.uniform(0.3, 1.7) * self.plan.kill_seconds)
            if self.killer.under_way >= self.plan.kills_at_once:
                continue  # on a busy machine nothing would ever come up again
            kill = self.killer.strike()
            if kill is not None:
                thread = threading.Thread(target=self._guarded, args=(self._probe, kill), daemon=True)
                thread.start()
                self.threads.append(thread)

    def _probe(self, kill: Kill) -> None:
        """Ask for a stack after a kill, see how long it takes, and remove it."""
        self.apis.append(api := Api(self.up.url))
        stack = UserStack(api, f"probe{id(kill)}")
        self.probes.append(stack)
        stack.create(PROBE)
        while (
            not stack.read_status().endswith("_COMPLETE")
            and time.monotonic() - kill.at < 5 * RECOVERY_SECONDS
        ):
            time.sleep(0.1)
        if stack.read_status() == "CREATE_COMPLETE":
            self.killer.got_over(kill)
        stack.delete()

    def _purge_until(self) -> None:
        """Forget all that may be forgotten, again and again, while everything is at work."""
        database = Database(self.url, "kills")
        while not self._over():
            time.sleep(self.plan.kill_seconds)
            with contextlib.suppress(psycopg.Error), database.connect(hot=True, replan=True) as db:
                self.report.purged.update(purge.purge(db, PURGED))

    def _guarded(self, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException as error:
            self.errors.append(error)
            raise

    # The end.

    def _come_to_rest(self) -> None:
        began = time.monotonic()
        for thread in self.threads:
            thread.join(self.plan.rest_seconds)
        self.killer.wait()
        self._put_right()
        deadline = time.monotonic() + self.plan.rest_seconds
        waiting = [*self.stacks, *self.steady.stacks, *self.gone, *self.probes]
        while waiting and time.monotonic() < deadline:
            waiting = [stack for stack in waiting if stack.read_status().endswith("IN_PROGRESS")]
            time.sleep(0.3)
        self._await_corrections()
        deadline = time.monotonic() + self.plan.rest_seconds
        while verdict.at_work(self.url) and time.monotonic() < deadline:
            time.sleep(0.3)
        self.report.rest_seconds = time.monotonic() - began
        for stack in waiting:
            self.report.stuck += [f"{stack.name} is {stack.read_status()} after {stack.action}"]
            self.report.stuck += [f"    {row}" for row in verdict.unfinished(self.url, stack.name)]

    def _await_corrections(self) -> None:
        """Wait until the effects of changes that were carried out late are corrected."""
        if self.plan.held:
            time.sleep(max(0.0, self.things.held_until() - time.time()))
            time.sleep(CORRECTED_SECONDS * slowness())  # nothing shows that there was nothing to correct

    def _put_right(self) -> None:
        """Repeat the last request of stacks whose last action failed."""
        deadline = time.monotonic() + self.plan.rest_seconds
        for stack in [*self.stacks, *self.steady.stacks]:
            while stack.action in ACTS and time.monotonic() < deadline:
                if stack.read_status().endswith("IN_PROGRESS"):
                    time.sleep(0.3)
                elif stack.read_status().startswith("SUSPEND"):
                    self._act(stack, "resume")
                else:
                    last = stack.last
                    stack.update(last.resources, broken=last.broken, rollback=last.rollback)

    def _judge(self) -> None:
        report, steady = self.report, self.steady.stacks
        everyone = [*self.stacks, *steady, *self.gone, *self.probes]
        report.outages = self.noise.outages
        report.requests.update(self.steady.requests)
        report.destroyed += verdict.destroyed(self.things, steady)
        report.kills = self.killer.kills
        report.things = len(self.things.log("created"))
        report.stuck += verdict.at_work(self.url)
        report.doubled += verdict.doubles(self.things)
        with Database(self.url, "kills").connect() as db:
            report.stale += [f"stale: {row}" for row in stale_inputs(db) if row.action in CONVERGING]
        report.invalid += [f"a thread ended: {error!r}" for error in self.errors]
        report.invalid += verdict.strangers(self.things, everyone)
        for stack in everyone:
            report.invalid += verdict.faults(stack, self.things, self.url)
        report.late += [f"late: {kill}" for kill in report.kills if kill.late]


def _drain(up: Up, path: Path) -> None:
    """Drain the output of `up`: a full pipe would block it."""
    assert up.process.stdout is not None
    with up.process.stdout, path.open("wb") as log:
        while chunk := up.process.stdout.read1():  # type: ignore[attr-defined]
            log.write(chunk)
            log.flush()
