"""Updates that overlap and change one or two properties each: dependents are built from the newest outputs.

Updates that change much visit every dependent anyway, and hide a dependent that is left with an old value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios import templates
from tests.scenarios.faults import CALM, Faults
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_any_sequence import RETRIED, Life, live
from tests.scenarios.templates import VALUE, Draft, Drafts

WEATHER = (CALM, CALM, Faults(switch=0.15, repeat=0.1), Faults(switch=0.1, lose=0.1, calls=RETRIED))


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


def chained(value: str, looks: int, **extra: Any) -> Drafts:
    """Return a resource, and one built from its output."""
    above = Draft("Sim::Changeable", "1", looks=0, edges={"a": "attribute"}, **extra)
    return {"a": Draft("Sim::Changeable", value, looks=looks), "b": above}


class SparseLife(Life):
    """Updates of one or two properties, at any moment of the updates before."""

    def create(self) -> None:
        self.last = self.wanted = self._dense()
        self.good = {}
        self.told.append("create")
        self.world.create("s", **self.request(), disable_rollback=self.dice.random() < 0.6)

    def _dense(self) -> Drafts:
        """Return three to five resources, each built from attributes of one or two before it."""
        drafts: Drafts = {}
        for name in templates.NAMES[: self.dice.randint(3, 5)]:
            kind = VALUE if self.dice.random() < 0.2 else "Sim::Changeable"
            draft = Draft(kind, self.dice.choice("123"), looks=self.dice.choice([0, 1, 3]))
            for required in self.dice.sample(list(drafts), min(len(drafts), self.dice.choice([1, 1, 2]))):
                draft.edges[required] = self.dice.choice(["attribute", "attribute", "fixed attribute"])
            drafts[name] = draft
        return drafts

    def update(self) -> None:
        if self.world.stack().action == "SUSPEND":
            super().update()
            return
        base = self.last if self.dice.random() < 0.8 else self.good or self.last
        made = {name: draft.copy() for name, draft in base.items()}
        for _ in range(self.dice.choice([1, 1, 2])):
            draft = made[self.dice.choice(list(made)[: 1 + len(made) // 2])]
            if self.dice.random() < 0.5:
                draft.value = self.dice.choice("123")
            else:
                draft.looks = self.dice.choice([0, 1, 2, 3])
        self.last = self.wanted = made
        self.told.append("update")
        self.world.update("s", **self.request(), disable_rollback=self.dice.random() < 0.6)

    def ask(self) -> None:
        self.look()
        if self.is_gone():
            self.create()
            return
        match self.dice.random():
            case chance if chance < 0.85:
                self.update()
            case chance if chance < 0.93:
                self.act(self.dice.choice(["cancel_update", "cancel_without_rollback"]))
            case _:
                self.retry()

    def live(self) -> None:
        self.create()
        self.world.rest()
        for _ in range(self.dice.randint(2, 3)):
            self.ask()
            self.world.run(self.dice.randint(1, 9), self.dice.choice(WEATHER))
        self.settle()


def test_a_dependent_takes_a_value_that_an_older_update_produced(world: Simulator):
    world.reset(0)
    before, first, second = chained("1", 0), chained("2", 3), chained("2", 1)
    world.create("s", templates.snippets(before))
    world.rest()
    world.update("s", templates.snippets(first))
    world.go(until=lambda: world.provider.things[world.ids()["a"]].properties["a"] == "2")
    world.update("s", templates.snippets(second))
    world.rest()
    assert world.stack().status == "COMPLETE"
    world.verify(templates.snippets(second))


def test_a_dependent_behind_a_join_takes_a_value_that_an_older_update_produced(world: Simulator):
    """A wide join has no inputs to compare."""
    world.reset(1)
    many = {f"n{i}": {"type": VALUE, "properties": {"value": "1"}} for i in range(520)}

    def resources(value: str, looks: int) -> dict[str, Any]:
        made = templates.snippets(chained(value, looks))
        return {**many, "a": made["a"], "b": {**made["b"], "depends_on": list(many)}}

    world.create("s", resources("1", 0))
    world.rest(limit=20_000)
    world.update("s", resources("2", 3))
    world.go(until=lambda: world.provider.things[world.ids()["a"]].properties["a"] == "2")
    world.update("s", resources("2", 1))
    world.rest()
    assert world.stack().status == "COMPLETE"
    [b] = world.rows("SELECT properties ->> 'a' AS a FROM resource WHERE name = 'b'")
    assert b.a == "1-2"


def test_a_dependent_takes_the_value_after_a_cancelled_update(world: Simulator):
    world.reset(2)
    before, first, second = chained("1", 0), chained("2", 3), chained("2", 1)
    world.create("s", templates.snippets(before))
    world.rest()
    world.update("s", templates.snippets(first))
    world.go(until=lambda: world.provider.things[world.ids()["a"]].properties["a"] == "2")
    world.act("s", "cancel_without_rollback")
    world.update("s", templates.snippets(second))
    world.rest()
    assert world.stack().status == "COMPLETE"
    world.verify(templates.snippets(second))


@pytest.mark.parametrize("fifty", range(4))
def test_the_newest_update_wins(world: Simulator, fifty: int):
    for seed in range(50 * fifty, 50 * (fifty + 1)):
        live(world, seed, SparseLife)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(2, 50))
def test_the_newest_update_wins_every_time(world: Simulator, hundred: int):
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        live(world, seed, SparseLife)
