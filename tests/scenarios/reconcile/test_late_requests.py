"""Requests that are carried out late, after newer ones: an update, a suspend or a resume without an answer,
or of a worker that was stopped in the middle of its call and continues after its lease.

A minute after the last of them was carried out, every object is as its stack desires.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.errors import Conflict, NotSupported
from orchestrator.resources.base import Context
from tests.scenarios import clock
from tests.scenarios.faults import CALM
from tests.scenarios.provider import Thing, thing
from tests.scenarios.simulator import WORKERS, Simulator

CALL_SECONDS = 20.0  # after which a call ends without an answer
HELD = ("update", "suspend", "resume")
STEP_SECONDS = 5.0
CORRECTED_SECONDS = 60.0  # after the last request was carried out
Resources = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


class HeldRequests:
    """A provider that holds requests for up to a minute, and workers that are stopped in the middle of calls.

    Time is virtual: it passes while a request is held, in steps, and meanwhile other workers and users act.
    """

    def __init__(self, world: Simulator, dice: random.Random, share: float) -> None:
        self.world, self.dice, self.share = world, dice, share
        self.now, self.landings = 0.0, list[float]()
        self.user: Callable[[], None] = lambda: None
        world.provider.fate = self.fate

    def fate(self, verb: str, _ctx: Context) -> str:
        self.world.provider.landing = False
        if verb not in HELD or self.dice.random() >= self.share or self.world.depth >= WORKERS:
            return "done"
        seconds = self.dice.uniform(1.0, 60.0)
        if self.dice.random() < 0.4:  # its worker is stopped before it is sent
            self.pass_time(self.dice.choice([35.0, 60.0, 90.0]))
            self.world.provider.landing = True
            return "done"
        self.pass_time(min(seconds, CALL_SECONDS))
        if seconds <= CALL_SECONDS:
            self.world.provider.landing = True
            return "done"
        self.landings.append(self.now + seconds - CALL_SECONDS)
        return "late"

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in which users, other workers and the provider act."""
        until = self.now + seconds
        while self.now < until:
            if self.world.depth and self.dice.random() < 0.3:
                self.world.as_a_user(self.user)
            for _ in range(self.dice.randint(0, 12) if self.world.depth else 200):
                if self.world.depth >= WORKERS or not (self.world.messages or self.world.sweep_once()):
                    break
                self.world.step()
            step = max(0.0, min(STEP_SECONDS, until - self.now))  # calls in the meantime have taken time
            clock.pass_time(self.world.database, step)
            self.now += step
            self.land()

    def land(self) -> None:
        """Carry out the requests whose time has come."""
        provider, due = self.world.provider, [at <= self.now for at in self.landings]
        acts = [act for act, is_due in zip(provider.in_flight, due, strict=True) if is_due]
        waiting = [act for act, is_due in zip(provider.in_flight, due, strict=True) if not is_due]
        self.landings = [at for at in self.landings if at > self.now]
        provider.in_flight = acts
        provider.land()
        provider.in_flight, provider.hours = waiting, 0  # the deadlines of calls are kept here

    def end(self) -> None:
        """Wait until the last request is carried out, and a minute longer."""
        self.share = 0.0
        while self.landings:
            self.pass_time(STEP_SECONDS)
        self.pass_time(CORRECTED_SECONDS)


class Life:
    """A stack whose user changes values in place, suspends and resumes it."""

    def __init__(self, world: Simulator, seed: int) -> None:
        world.reset(seed)
        self.world, self.dice = world, random.Random(f"late {seed}")
        self.number = 0
        self.wanted: Resources = {}
        self.told: list[str] = []
        self.held = HeldRequests(world, self.dice, share=0.5)
        self.held.user = self.ask

    def live(self) -> None:
        share, self.held.share = self.held.share, 0.0
        self.wanted = {name: thing(a="0", b="0") for name in ("one", "two", "three")}
        self.world.create("s", self.wanted)
        self.held.pass_time(STEP_SECONDS)
        ids = self.world.ids()
        self.held.share = share
        for _ in range(self.dice.randint(2, 4)):
            self.ask()
            self.held.pass_time(self.dice.choice([5.0, 25.0, 50.0]))
        self.held.end()
        self.resume()
        self.world.verify(self.wanted)
        assert self.world.ids() == ids
        assert self.world.done("delete") == []

    def ask(self) -> None:
        chance = self.dice.random()
        if self.world.stack().action == "SUSPEND":
            self.act("resume")
        elif chance < 0.75:
            self.update()
        else:
            self.act("suspend")

    def update(self) -> None:
        self.number += 1
        changed = self.dice.sample(sorted(self.wanted), self.dice.randint(1, 3))
        wanted = dict(self.wanted)
        for name in changed:
            wanted[name] = thing(**{**wanted[name]["properties"], self.dice.choice("ab"): str(self.number)})
        try:
            self.world.update("s", wanted)
        except NotSupported:  # it is suspended by now
            return
        self.wanted = wanted
        self.told.append(f"{self.held.now:.0f} update {self.number} of {', '.join(changed)}")

    def act(self, action: str) -> None:
        try:
            self.world.act("s", action)
        except (Conflict, NotSupported):
            return
        self.told.append(f"{self.held.now:.0f} {action}")

    def resume(self) -> None:
        """Resume a suspended stack: everything was suspended."""
        stack = self.world.stack()
        if stack.action != "SUSPEND":
            return
        assert stack.status == "COMPLETE", stack.status_reason
        assert all(thing.paused for thing in self.world.provider.things.values())
        self.act("resume")
        self.held.pass_time(CORRECTED_SECONDS)


def live(world: Simulator, seed: int) -> None:
    """Run a sequence."""
    life = Life(world, seed)
    try:
        life.live()
    except BaseException as error:
        error.add_note(f"seed {seed}: {'; '.join(life.told)}")
        raise
    finally:
        world.faults = CALM
        world.provider.fate = world.fate


@pytest.fixture
def held(world: Simulator) -> Iterator[HeldRequests]:
    """A stack of one thing, whose requests the test holds."""
    world.reset(1)
    held = HeldRequests(world, random.Random("held"), share=0.0)
    world.create("s", {"one": thing(a="0")})
    held.pass_time(STEP_SECONDS)
    yield held
    world.provider.fate = world.fate


def the_thing(world: Simulator) -> Thing:
    [one] = world.provider.things.values()
    return one


def hold_next(held: HeldRequests, verb: str, seconds: float) -> None:
    """Hold the next request of a verb for so long after its call has given up."""

    def fate(asked: str, ctx: Context) -> str:
        if asked != verb:
            return held.fate(asked, ctx)
        held.world.provider.fate = held.fate
        held.landings.append(held.now + seconds)
        return "late"

    held.world.provider.fate = fate


def late_rows(world: Simulator) -> int:
    return len(world.rows("SELECT * FROM late_request"))


def test_an_update_that_arrives_after_a_newer_one_is_corrected(world: Simulator, held: HeldRequests) -> None:
    hold_next(held, "update", 40.0)
    world.update("s", {"one": thing(a="old")})
    world.step(), world.step()
    world.update("s", {"one": thing(a="new")})
    held.pass_time(35.0)
    assert (world.stack().status, the_thing(world).properties["a"]) == ("COMPLETE", "new")
    held.pass_time(5.0)
    assert the_thing(world).properties["a"] == "old"  # the late request was carried out
    held.pass_time(CORRECTED_SECONDS)
    world.verify({"one": thing(a="new")})


def test_an_update_sent_after_the_lease_of_its_worker_is_corrected(
    world: Simulator, held: HeldRequests
) -> None:
    def fate(verb: str, ctx: Context) -> str:
        if verb == "update":
            world.provider.fate = held.fate
            world.as_a_user(lambda: world.update("s", {"one": thing(a="new")}))
            held.pass_time(90.0)
            assert (world.stack().status, the_thing(world).properties["a"]) == ("COMPLETE", "new")
            world.provider.landing = True
        return "done"

    world.provider.fate = fate
    world.update("s", {"one": thing(a="old")})
    while world.provider.fate is fate:
        world.step()
    held.pass_time(CORRECTED_SECONDS)
    world.verify({"one": thing(a="new")})


def test_a_suspend_that_arrives_after_the_resume_is_ended(world: Simulator, held: HeldRequests) -> None:
    hold_next(held, "suspend", 40.0)
    world.act("s", "suspend")
    held.pass_time(10.0)
    world.act("s", "resume")
    held.pass_time(30.0)
    assert (world.stack().action, the_thing(world).paused) == ("RESUME", True)
    held.pass_time(CORRECTED_SECONDS)
    assert not the_thing(world).paused
    world.verify({"one": thing(a="0")})


def test_a_resume_that_arrives_after_the_next_suspend_is_ended(world: Simulator, held: HeldRequests) -> None:
    world.act("s", "suspend")
    held.pass_time(10.0)
    hold_next(held, "resume", 40.0)
    world.act("s", "resume")
    held.pass_time(10.0)
    world.act("s", "suspend")
    held.pass_time(30.0)
    assert (world.stack().action, the_thing(world).paused) == ("SUSPEND", False)
    held.pass_time(CORRECTED_SECONDS)
    assert (world.stack().action, world.stack().status) == ("SUSPEND", "COMPLETE")
    assert the_thing(world).paused


def test_without_a_difference_a_late_request_starts_nothing_and_is_forgotten(
    world: Simulator, held: HeldRequests
) -> None:
    hold_next(held, "update", 5.0)
    world.update("s", {"one": thing(a="new")})
    held.pass_time(CORRECTED_SECONDS)
    traversal = world.stack().traversal
    assert late_rows(world) == 1
    for _ in range(12):
        held.pass_time(CORRECTED_SECONDS)
    assert (world.stack().traversal, late_rows(world)) == (traversal, 0)


def test_a_request_that_is_refused_for_now_is_not_followed(world: Simulator, held: HeldRequests) -> None:
    fates = iter(["busy", "busy"])
    world.provider.fate = lambda verb, ctx: next(fates, "done") if verb == "update" else held.fate(verb, ctx)
    world.update("s", {"one": thing(a="new")})
    held.pass_time(30.0)
    assert late_rows(world) == 0
    world.verify({"one": thing(a="new")})


def test_a_newer_update_during_a_correction_wins(world: Simulator, held: HeldRequests) -> None:
    hold_next(held, "update", 10.0)
    world.update("s", {"one": thing(a="old")})
    world.step(), world.step()
    world.update("s", {"one": thing(a="new")})
    held.pass_time(10.0)
    assert the_thing(world).properties["a"] == "old"

    def fate(verb: str, ctx: Context) -> str:
        if verb == "update":
            world.provider.fate = held.fate
            world.as_a_user(lambda: world.update("s", {"one": thing(a="newest")}))
        return held.fate(verb, ctx)

    world.provider.fate = fate
    held.pass_time(CORRECTED_SECONDS)
    world.verify({"one": thing(a="newest")})


def test_late_updates_of_many_resources_are_corrected_together(world: Simulator, held: HeldRequests) -> None:
    names = [f"r{number}" for number in range(8)]
    world.update("s", {name: thing(a="0") for name in names})
    held.pass_time(STEP_SECONDS)
    asked: list[str] = []

    def fate(verb: str, ctx: Context) -> str:
        if verb != "update" or ctx.name in asked:
            return held.fate(verb, ctx)
        asked.append(ctx.name)
        held.landings.append(held.now + 30.0)
        return "late"

    world.provider.fate = fate
    world.update("s", {name: thing(a="old") for name in names})
    while len(asked) < len(names):
        world.step()
    world.update("s", {name: thing(a="new") for name in names})
    held.pass_time(30.0)
    assert {one.properties["a"] for one in world.provider.things.values()} == {"old"}
    traversal = world.stack().traversal
    held.pass_time(CORRECTED_SECONDS)
    world.verify({name: thing(a="new") for name in names})
    assert world.stack().traversal <= traversal + 3


def test_a_late_update_of_a_failed_stack_is_corrected_by_its_next_update(
    world: Simulator, held: HeldRequests
) -> None:
    hold_next(held, "update", 30.0)
    world.update("s", {"one": thing(a="old")})
    world.step(), world.step()
    world.update("s", {"one": thing(a="new"), "two": thing("one", type="Sim::Rigid", a="0")})
    fate = world.provider.fate
    world.provider.fate = lambda verb, ctx: "refused" if ctx.name == "two" else fate(verb, ctx)
    held.pass_time(CORRECTED_SECONDS)
    assert (world.stack().status, the_thing(world).properties["a"]) == ("FAILED", "old")
    world.provider.fate = held.fate
    world.update("s", {"one": thing(a="new")})
    held.pass_time(STEP_SECONDS)
    world.verify({"one": thing(a="new")})


@pytest.mark.parametrize("first", range(0, 50, 10))
def test_a_minute_after_the_last_late_request_every_value_is_the_newest(world: Simulator, first: int) -> None:
    for seed in range(first, first + 10):
        live(world, seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_late_requests_leave_no_older_value_in_any_sequence(world: Simulator, first: int) -> None:
    for seed in range(first, first + 100):
        live(world, seed)
