"""Any requests in any order at any moment, workers dying anywhere, messages and leases lost, a provider that
fails in every way: when all is at rest, the world is as the last accepted template says.

Each sequence comes from a single number. After all activity: the provider has exactly the things of the
template in effect (after a failure with rollback, the last complete template), nothing was created twice,
nothing
leaked, nothing was done out of order or twice at once, nothing is left open; and failures are repaired by
asking again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.errors import Conflict, NotSupported
from tests.scenarios import templates
from tests.scenarios.faults import CALM, Faults
from tests.scenarios.simulator import Simulator
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

STACK_EVENTS = """
SELECT id, action, status FROM event
WHERE stack_id = :id AND id > :seen AND resource_type = 'OS::Heat::Stack' AND physical_id IS NOT NULL
ORDER BY id
"""


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


class Life:
    """The requests of a user to a stack, and the state that must result."""

    def __init__(self, world: Simulator, dice: random.Random) -> None:
        self.world, self.dice = world, dice
        self.last: Drafts = {}  # the template asked for last
        self.wanted: Drafts = {}  # the template in effect
        self.good: Drafts = {}  # the template of the last complete traversal
        self.seen = 0  # the id of the last event of the stack that was read
        self.told: list[str] = []  # for the reader of a failure
        self.depth = 0  # of the stacks in it

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

    # Events.

    def ask(self) -> None:
        """Ask for something at random."""
        self.look()
        if self.is_gone():
            self.create()
            return
        match self.dice.random():
            case chance if chance < 0.55:
                self.update()
            case chance if chance < 0.62:
                self.retry()
            case chance if chance < 0.72:
                self.act("cancel_update")
            case chance if chance < 0.79:
                self.act("cancel_without_rollback")
            case chance if chance < 0.88:
                self.act(self.dice.choice(["check", "suspend", "resume"]))
            case _:
                self.delete()

    def create(self) -> None:
        self.last = self.wanted = templates.first(self.dice, self.depth)
        self.good = {}
        self.told.append("create")
        self.world.create("s", **self.request(), disable_rollback=self.dice.random() < 0.6)

    def update(self) -> None:
        if self.world.stack().action == "SUSPEND":
            with pytest.raises(NotSupported, match="when it is suspended"):
                self.world.update("s", **self.request())
            return
        base = self.dice.choice([self.last, self.wanted, self.good])
        self.last = self.wanted = templates.another(base, self.dice, self.depth)
        self.told.append("update")
        self.world.update("s", **self.request(), disable_rollback=self.dice.random() < 0.6)

    def retry(self) -> None:
        """Repeat the last request."""
        if self.world.stack().action not in ("DELETE", "SUSPEND"):
            self.told.append("retry")
            self.world.patch("s")

    def act(self, action: str) -> None:
        before = self.world.stack()
        try:
            self.world.act("s", action, wait=self.dice.random() < 0.5)
        except (NotSupported, Conflict):
            if action.startswith("cancel"):
                assert (before.action, before.status) != ("UPDATE", "IN_PROGRESS")
            else:
                assert before.status == "IN_PROGRESS"
            return
        self.told.append(action)
        if action == "cancel_update":
            self.wanted = self.good

    def request(self) -> dict[str, Any]:
        """Return the desired state as a request."""
        return {"resources": templates.snippets(self.wanted), "files": templates.files(self.wanted)}

    def delete(self) -> None:
        self.told.append("delete")
        self.world.delete("s")

    # Invariants.

    def is_gone(self) -> bool:
        return self.world.stack().deleted_at is not None

    def look(self) -> None:
        """Read the results since the last look: a queued action hides the result of the action before it."""
        for event in self.world.rows(STACK_EVENTS, id=self.world.stack().id, seen=self.seen):
            self.seen = event.id
            if event.action == "ROLLBACK":
                self.wanted = self.good
            if event.status == "COMPLETE" and event.action in ("CREATE", "UPDATE", "ROLLBACK"):
                self.good = self.wanted

    def settle(self) -> None:
        """Wait until all is at rest, and verify; then repair failed and marked resources."""
        self.world.user = None
        stack = self.at_rest()
        if stack.action == "SUSPEND":
            self.world.act("s", "resume")
            stack = self.at_rest()
        if stack.status == "FAILED" and stack.action == "DELETE":
            self.world.delete("s")
            stack = self.at_rest()
        if self.is_to_be_put_right(stack):
            self.world.update("s", **self.request())
            stack = self.at_rest()
        assert stack.status == "COMPLETE", stack.status_reason
        self.world.verify(**({"resources": {}} if stack.action == "DELETE" else self.request()))
        self.world.user = self.ask

    def is_to_be_put_right(self, stack: Any) -> bool:
        return stack.status == "FAILED" or stack.action in ("CHECK", "RESUME")

    def at_rest(self) -> Any:
        """Return the stack when nothing moves any more."""
        self.world.rest()
        self.look()
        self.world.sound()
        stack = self.world.stack()
        self.told.append(f"[{stack.action}_{stack.status}]")
        return stack


def live(world: Simulator, seed: int, kind: type[Life] = Life) -> None:
    """Run a sequence."""
    world.reset(seed)
    life = kind(world, random.Random(f"life {seed}"))
    try:
        life.live()
    except BaseException as error:
        error.add_note(f"seed {seed}: {' '.join(life.told)}")
        raise


@pytest.mark.parametrize("action", ["suspend", "resume"])
def test_the_result_of_an_update_counts_after_a_queued_action(world: Simulator, action: str):
    world.reset(0)
    life = Life(world, random.Random("queued action"))
    life.create()
    life.at_rest()
    life.update()
    updated = life.wanted
    world.act("s", action, wait=True)
    life.at_rest()
    assert (world.stack().action, life.good) == (action.upper(), updated)


@pytest.mark.parametrize("seed", range(5))
def test_the_world_is_as_the_last_template_says(world: Simulator, seed: int):
    live(world, seed)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(30))
def test_the_world_is_as_the_last_template_says_every_time(world: Simulator, hundred: int):
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        live(world, seed)
