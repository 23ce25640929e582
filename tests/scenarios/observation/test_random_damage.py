"""Like `test_any_sequence.py` and `test_random_trees.py`, with things that others damage at any moment: they
are removed, in error, or changed. They are observed from time to time, and repaired automatically.

When all is at rest, the world is as the last accepted template says: no damage is left, and a repair has made
nothing twice, leaked nothing, and done nothing out of order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from orchestrator.store.observation import groups
from tests.scenarios.children.test_random_trees import MeddledLife, TreeLife
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_any_sequence import Life, live

NEVER = 86_400.0  # seconds between two rounds, unless a test asks for them
FAULTS = ("lost", "lost", "dead", "a", "!a")
MAX_ROUNDS = 20  # until no damage is left
HEAL = """
INSERT INTO observation_rule (uuid, project_id, kind, mode, type, resource, created_by)
VALUES (gen_random_uuid(), 'p1', 'policy', 'heal', '', '', 'u')
"""
OBSERVE = "UPDATE observation_group SET due_at = now(), enqueued_at = NULL"
DECIDE_AGAIN = "UPDATE repair SET due_at = now() WHERE due_at IS NOT NULL"
END_DOUBTS = "UPDATE circuit_breaker SET answered_at = answered_at - interval '1 minute'"
FORGET_ATTEMPTS = """
UPDATE repair SET started_at = started_at - interval '2 days', ended_at = ended_at - interval '2 days'
WHERE status <> 'started'
"""


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    names = ("observation_interval_seconds", "observation_min_interval_seconds")
    intervals = dict.fromkeys((*names, "observation_single_interval_seconds"), NEVER)
    made = Simulator(new_database(), **intervals)
    yield made
    made.close()


class DamagedLife(Life):
    """The requests of a user whose things others damage."""

    def __init__(self, world: Simulator, dice: random.Random) -> None:
        super().__init__(world, dice)
        self.execute(HEAL)

    def ask(self) -> None:
        match self.dice.random():
            case chance if chance < 0.25:
                self.damage()
            case chance if chance < 0.4:
                self.told.append("observe")
                self.observe()
            case _:
                super().ask()

    def damage(self) -> None:
        provider = self.world.provider
        if provider.things:
            id_, fault = self.dice.choice(sorted(provider.things)), self.dice.choice(FAULTS)
            self.told.append(f"{id_}: {fault}")
            provider.damage(id_, fault)

    def observe(self) -> None:
        """Make all rounds and decisions due: much time has passed."""
        groups.start_discoveries(
            self.world.database.check_connection(durable=True), self.world.settings.region_name, 0.0
        )
        for statement in (OBSERVE, FORGET_ATTEMPTS, DECIDE_AGAIN, END_DOUBTS):
            self.execute(statement)

    def execute(self, statement: str) -> None:
        with self.world.database.engine.begin() as connection:
            connection.execute(text(statement))

    def settle(self) -> None:
        self.world.user = None
        self.put_right()
        super().settle()

    def put_right(self) -> None:
        """Observe and repair until no damage is left; the user repeats failed requests."""
        for _ in range(MAX_ROUNDS):
            stack = self.at_rest()
            if stack.action == "SUSPEND":
                self.world.act("s", "resume")
            elif stack.action == "DELETE":
                return
            elif self.is_to_be_put_right(stack):
                self.world.update("s", **self.request())
            else:
                self.observe()
                stack = self.at_rest()
                left = self.world.rows("SELECT name, verdict FROM resource_verdict")
                if stack.status == "COMPLETE" and not left:
                    return
        repairs = self.world.rows("SELECT name, action, status, reason FROM repair ORDER BY id")
        raise AssertionError(f"damage is left: {stack.action} {stack.status} {repairs}")


class DamagedTree(DamagedLife, TreeLife):
    """The same with nested stacks."""


class DamagedMeddledTree(DamagedLife, MeddledLife):
    """The same with users who also change the children."""


@pytest.mark.parametrize("seed", range(1))
def test_damage_is_repaired_between_any_requests(world: Simulator, seed: int):
    live(world, seed, DamagedLife)


@pytest.mark.parametrize("seed", range(2))
def test_damage_in_nested_stacks_is_repaired_between_any_requests(world: Simulator, seed: int):
    live(world, seed, DamagedTree)


@pytest.mark.long
@pytest.mark.parametrize("fifty", range(20))
def test_damage_is_repaired_every_time(world: Simulator, fifty: int):
    for seed in range(50 * fifty, 50 * (fifty + 1)):
        live(world, seed, DamagedLife)
        live(world, seed, DamagedTree)
        live(world, seed, DamagedMeddledTree)
