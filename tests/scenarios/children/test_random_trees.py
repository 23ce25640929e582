"""Like `test_any_sequence.py`, with nested stacks, up to three deep, and users who also change the children
themselves: when all is at rest, the whole tree is as the root's last accepted template says.

No stack is left that no resource stands for, none moves any more, and no thing is made before, or removed
under, a dependent in a different stack of the tree.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.errors import Conflict, NotFound, NotSupported
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from tests.scenarios import templates
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_any_sequence import WEATHER, Life, live

OVERDUE = """
UPDATE stack SET action_started_at = now() - interval '2 hours' WHERE id = :id AND status = 'IN_PROGRESS'
"""


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    """An installation for all sequences."""
    made = Simulator(new_database())
    yield made
    made.close()


class TreeLife(Life):
    """The requests of users of a tree."""

    def __init__(self, world: Simulator, dice: random.Random) -> None:
        super().__init__(world, dice)
        self.depth = 2

    def ask(self) -> None:
        chance = self.dice.random()
        children = self.world.children()
        if chance < 0.1 and not self.is_gone():
            self.run_out()
        elif chance < 0.15 and not self.is_gone():
            self.look()
            self.snapshot()
        elif chance < 0.3 and children and self.meddles:
            self.meddle(self.dice.choice(children))
        else:
            super().ask()

    @property
    def meddles(self) -> bool:
        return False

    def run_out(self) -> None:
        """The time of a stack is up."""
        ids = [stack.id for stack in [self.world.stack(), *self.world.children()]]
        self.told.append("time's up")
        with self.world.database.engine.begin() as connection:
            connection.execute(text(OVERDUE), {"id": self.dice.choice(ids)})

    def snapshot(self) -> None:
        try:
            taken = snapshots.take(
                self.world.context, self.world.stack_row("s"), Body(b"{}"), wait=self.dice.random() < 0.5
            )
        except (NotSupported, Conflict):
            return
        self.told.append("snapshot")
        self.world.messages += taken.messages

    def meddle(self, child: Any) -> None:
        """Let a user do something with a stack in the stack."""

    def is_to_be_put_right(self, stack: Any) -> bool:
        return super().is_to_be_put_right(stack) or stack.action == "SNAPSHOT"

    def settle(self) -> None:
        super().settle()
        if self.is_gone():
            assert self.world.provider.copies == {}


class MeddledLife(TreeLife):
    """The same with users who also change the children."""

    meddled = False  # since the tree was last put right

    @property
    def meddles(self) -> bool:
        return True

    def meddle(self, child: Any) -> None:
        self.world.meddled = self.meddled = True
        deed = self.dice.choice(["patch", "update", "delete", "mark", "check", "suspend", "resume", "stop"])
        self.told.append(f"{deed} {child.name[:8]}")
        try:
            self.do(deed, child)
        except (NotSupported, Conflict, NotFound) as error:
            self.told.append(f"({type(error).__name__})")

    def do(self, deed: str, child: Any) -> None:
        world, dice = self.world, self.dice
        match deed:
            case "patch":
                world.patch(child.uuid, parameters={"P": dice.choice("789")})
            case "update":
                other = templates.first(dice)
                rollback = dice.random() < 0.5
                world.update(child.uuid, templates.snippets(other), disable_rollback=not rollback)
            case "delete":
                world.delete(child.uuid)
            case "mark":
                rows = world.rows("SELECT name FROM resource WHERE stack_id = :id ORDER BY id", id=child.id)
                if rows:
                    world.mark(child.uuid, dice.choice(rows).name)
            case "stop":
                world.act(child.uuid, dice.choice(["cancel_update", "cancel_without_rollback"]))
            case _:
                world.act(child.uuid, deed, wait=dice.random() < 0.5)

    def is_to_be_put_right(self, stack: Any) -> bool:
        reported = self.meddled and stack.action != "DELETE"
        self.meddled = False
        return reported or super().is_to_be_put_right(stack)


class EndedLife(MeddledLife):
    """A tree that is stopped anywhere, also before most of it began, and is then deleted."""

    def live(self) -> None:
        self.create()
        self.world.run(self.dice.choice([0, 1, 3, 10]), self.dice.choice(WEATHER))
        if self.dice.random() < 0.3:
            self.update()
        for _ in range(self.dice.randint(1, 4)):
            self.world.run(self.dice.choice([0, 1, 3, 10]), self.dice.choice(WEATHER))
            self.stop()
        self.delete()
        stack = self.at_rest()
        assert (stack.action, stack.status) == ("DELETE", "COMPLETE"), stack.status_reason
        self.world.verify(resources={})
        assert self.world.provider.copies == {}

    def stop(self) -> None:
        """Mark resources, stop the operation, or start another action."""
        children = self.world.children()
        if children and self.dice.random() < 0.2:
            self.meddle(self.dice.choice(children))
        elif self.dice.random() < 0.5:
            self.mark()
        else:
            self.act(
                self.dice.choice(["cancel_without_rollback", "cancel_update", "suspend", "resume", "check"])
            )
        if self.dice.random() < 0.3:
            self.snapshot()

    def mark(self) -> None:
        rows = self.world.rows(
            "SELECT name FROM resource WHERE stack_id = :id ORDER BY id", id=self.world.stack().id
        )
        names = sorted({row.name for row in rows})
        if names:
            name = self.dice.choice(names)
            self.told.append(f"mark {name}")
            try:
                self.world.mark("s", name)
            except (NotSupported, Conflict, NotFound) as error:
                self.told.append(f"({type(error).__name__})")


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_stopped_anywhere_is_deleted(world: Simulator, seed: int):
    live(world, seed, EndedLife)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_as_the_last_template_says(world: Simulator, seed: int):
    live(world, seed, TreeLife)


@pytest.mark.parametrize("seed", range(3))
def test_the_tree_matches_the_last_template_despite_direct_changes(world: Simulator, seed: int):
    live(world, seed, MeddledLife)


@pytest.mark.long
@pytest.mark.parametrize("fifty", range(30))
def test_the_tree_is_as_the_last_template_says_every_time(world: Simulator, fifty: int):
    for seed in range(50 * fifty, 50 * (fifty + 1)):
        live(world, seed, TreeLife)
        live(world, seed, MeddledLife)
        live(world, seed, EndedLife)
