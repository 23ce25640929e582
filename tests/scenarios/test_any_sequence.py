"""Any requests in any order at any moment, workers dying anywhere, messages and leases lost, a provider that
fails in every way: when all is at rest, the world is as the last accepted template says.

Each sequence comes from one number. When nothing moves any more: the provider has exactly what the template
that counts wants (after a failure with rollback that is the last good one), nothing was made twice, nothing
leaked, nothing was done out of order or twice at once, nothing is left open; and what failed is put right by
asking again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from orchestrator.errors import NotSupported
from tests.scenarios import templates
from tests.scenarios.simulator import CALM, Faults, Simulator
from tests.scenarios.templates import Drafts

RETRIED = {"busy": 0.03, "lost": 0.02, "silent": 0.02, "late": 0.02, "broken": 0.02}
DEADLY = {"killed": 0.02, "killed late": 0.02, "killed after": 0.02}
FINAL = {"refused": 0.02, "dead": 0.02}
WEATHER = (
    CALM,
    Faults(repeat=0.2, lose=0.1),
    Faults(switch=0.15, repeat=0.1, age=0.1),
    Faults(crash=0.02, calls=DEADLY, lose=0.1),
    Faults(switch=0.1, calls=RETRIED),
    Faults(switch=0.1, calls=FINAL),
    Faults(crash=0.01, switch=0.1, lose=0.1, repeat=0.1, calls={**RETRIED, **DEADLY, **FINAL}),
)


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """One installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


class Life:
    """What a user does with one stack, and what must come of it."""

    def __init__(self, world: Simulator, dice: random.Random) -> None:
        self.world, self.dice = world, dice
        self.last: Drafts = {}  # the template asked for last
        self.wanted: Drafts = {}  # the one that counts
        self.good: Drafts = {}  # the one that was carried out last
        self.told: list[str] = []  # for whoever reads a failure

    def live(self) -> None:
        """Ask for this and that, and look from time to time."""
        self.create()
        self.world.user = self.ask
        for _ in range(self.dice.randint(2, 6)):
            self.world.run(self.dice.choice([0, 3, 10, 30]), self.dice.choice(WEATHER))
            if self.dice.random() < 0.25:
                self.settle()
            self.ask()
        self.world.run(self.dice.choice([0, 10, 30]), self.dice.choice(WEATHER))
        self.settle()
        if not self.is_gone():
            self.delete()
            self.world.run(self.dice.choice([0, 10, 30]), self.dice.choice(WEATHER))
            self.settle()

    # What happens.

    def ask(self) -> None:
        """Ask for something at random."""
        self.look()
        if self.is_gone():
            self.create()
            return
        match self.dice.random():
            case chance if chance < 0.6:
                self.update()
            case chance if chance < 0.7:
                self.retry()
            case chance if chance < 0.8:
                self.cancel("cancel_update")
            case chance if chance < 0.88:
                self.cancel("cancel_without_rollback")
            case _:
                self.delete()

    def create(self) -> None:
        self.last = self.wanted = templates.first(self.dice)
        self.good = {}
        self.told.append("create")
        self.world.create("s", templates.snippets(self.wanted), disable_rollback=self.dice.random() < 0.6)

    def update(self) -> None:
        base = self.dice.choice([self.last, self.wanted, self.good])
        self.last = self.wanted = templates.another(base, self.dice)
        self.told.append("update")
        self.world.update("s", templates.snippets(self.wanted), disable_rollback=self.dice.random() < 0.6)

    def retry(self) -> None:
        """Ask once more for what the stack was last asked to be."""
        if self.world.stack().action != "DELETE":
            self.told.append("retry")
            self.world.patch("s")

    def cancel(self, how: str) -> None:
        before = self.world.stack()
        try:
            self.world.act("s", how)
        except NotSupported:
            assert (before.action, before.status) not in {("UPDATE", "IN_PROGRESS")}
            return
        self.told.append(how)
        if how == "cancel_update":
            self.wanted = self.good

    def delete(self) -> None:
        self.told.append("delete")
        self.world.delete("s")

    # What must be so.

    def is_gone(self) -> bool:
        return self.world.stack().deleted_at is not None

    def look(self) -> None:
        """See what has become of what was asked for."""
        stack = self.world.stack()
        if stack.action == "ROLLBACK":
            self.wanted = self.good
        if stack.status == "COMPLETE" and stack.action != "DELETE":
            self.good = self.wanted

    def settle(self) -> None:
        """Let everything come to rest and look at the world."""
        self.world.user = None
        self.world.rest()
        self.look()
        stack = self.world.stack()
        self.told.append(f"[{stack.action}_{stack.status}]")
        if stack.status == "FAILED":
            self.world.sound()
            if stack.action == "DELETE":
                self.world.delete("s")
            else:
                self.world.update("s", templates.snippets(self.wanted))
            self.world.rest()
            self.look()
            stack = self.world.stack()
        assert stack.status == "COMPLETE", stack.status_reason
        self.world.verify({} if stack.action == "DELETE" else templates.snippets(self.wanted))
        self.world.user = self.ask


def live(world: Simulator, seed: int) -> None:
    """Live through one sequence."""
    world.reset(seed)
    life = Life(world, random.Random(f"life {seed}"))
    try:
        life.live()
    except BaseException as error:
        error.add_note(f"seed {seed}: {' '.join(life.told)}")
        raise


@pytest.mark.parametrize("seed", range(30))
def test_the_world_is_as_the_last_template_says(world: Simulator, seed: int):
    live(world, seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(30))
def test_the_world_is_as_the_last_template_says_every_time(world: Simulator, hundred: int):
    for seed in range(100 * (hundred + 1), 100 * (hundred + 2)):
        live(world, seed)
