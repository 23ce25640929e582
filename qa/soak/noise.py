"""Outages of services, things that never become ready, changes that are carried out late, and users whose
healthy things must survive all of them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from qa.soak.templates import revalued, sparse, steady
from qa.soak.users import Api, UserStack
from tests.plugins.thing_fixture import ThingServer

SERVICES = ("service-0", "service-1", "service-2")
READY_SECONDS = 5.0  # limit after which a thing that is not ready is deleted and created again
# A short maximum pause between attempts: many attempts and kills in each outage.
CONSTANTS = {"retry_max_seconds": 5.0}
SETTINGS = {"THING_READY_SECONDS": str(READY_SECONDS)}


@dataclass(slots=True)
class Noise:
    """Random outages, each of a single service; about half of the time there is an outage."""

    things: ThingServer
    dice: random.Random
    max_seconds: float  # of an outage
    stuck: float  # fraction of the things that never become ready
    held: float = 0.0  # fraction of the changes that are carried out late
    outages: int = 0
    _ends: dict[str, float] = field(default_factory=dict)

    def run_until(self, done: Callable[[], bool]) -> None:
        """Start outages until `done`; then end all of them."""
        self._apply()
        while not done():
            if not self.max_seconds:
                time.sleep(0.2)
                continue
            seconds = self.dice.uniform(0.0, self.max_seconds)
            self._ends[self.dice.choice(SERVICES)] = time.time() + seconds
            self.outages += 1
            self._apply()
            pause = time.monotonic() + self.dice.uniform(0.0, self.max_seconds)
            while time.monotonic() < pause and not done():
                time.sleep(0.2)
        self._ends, self.stuck, self.held = {}, 0.0, 0.0
        self._apply()

    def _apply(self) -> None:
        self.things.set_noise(self._ends, self.stuck, self.held)


@dataclass(slots=True)
class SteadyUser:
    """Stacks whose updates change values in place, so that no ready thing may ever be deleted."""

    api: Api
    dice: random.Random
    pause_seconds: float
    requests: dict[str, int] = field(default_factory=dict)
    stacks: list[UserStack] = field(default_factory=list)

    def run_until(self, done: Callable[[], bool], count: int = 2) -> None:
        """Create stacks and send requests to them until `done`; the last request is an update."""
        for number in range(count):
            stack = UserStack(self.api, f"steady{number}", steady=True)
            self.stacks.append(stack)
            stack.create(steady())
        while not done():
            self._ask(self.dice.choice(self.stacks))
            time.sleep(self.dice.expovariate(1 / self.pause_seconds))
        for stack in self.stacks:
            stack.update(revalued(self.dice, stack.last.resources))

    def _ask(self, stack: UserStack) -> None:
        chance = self.dice.random()
        if chance < 0.4:
            self._count("steady update", stack.update(revalued(self.dice, stack.last.resources)))
        elif chance < 0.6:
            for resources in sparse(self.dice, stack.last.resources):
                self._count("steady sparse update", stack.update(resources))
        elif chance < 0.8:
            stack.repeat(converge=chance < 0.7)
            self._count("steady converge" if chance < 0.7 else "steady repeat")
        else:
            self._count("steady check", stack.act("check"))

    def _count(self, kind: str, accepted: bool = True) -> None:
        self.requests[kind] = self.requests.get(kind, 0) + accepted
