"""After any sequence of operations, the status, `why`, the diff and the history agree on whether the stack
has reached its desired revision (operations/adr/0009).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.engine.states import TEMPLATE_ACTIONS
from orchestrator.errors import Conflict, NotSupported
from orchestrator.operations.context import Body
from orchestrator.operations.diagnosis.explain import summarize
from orchestrator.operations.snapshots import snapshots
from orchestrator.store.stacks import blockers, history
from orchestrator.store.stacks import stacks as stored_stacks
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.stacks.test_any_sequence import Life, live

NOT_REACHED = "It has not reached revision"


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


def assert_agreement(world: Simulator) -> None:
    """Compare everything that users read about the revision of the newest stack."""
    newest = world.rows(
        "SELECT uuid::text AS uuid FROM stack WHERE owner_id IS NULL ORDER BY id DESC LIMIT 1"
    )
    stack = stored_stacks.find(world.database, "p1", newest[0].uuid)
    assert stack is not None
    revisions = list(history.list_revisions(world.database, stack))
    [desired] = [row for row in revisions if row.is_desired]
    good = [row for row in revisions if row.is_last_good]
    why = summarize(stack, blockers.standing(world.database, stack), 3_600)
    shown = (stack.state, desired.number, desired.outcome, [row.number for row in good], why.text)
    assert desired == revisions[0], shown
    if stack.action == "DELETE":
        assert not stack.reached, shown
        return
    assert stack.reached == (good == [desired]) == (desired.outcome == "complete"), shown
    running = stack.in_progress and stack.action in TEMPLATE_ACTIONS
    assert (desired.outcome is None) == running, shown  # never superseded
    assert (f"{NOT_REACHED} {desired.number}" in why.text) == (not stack.reached and not running), shown
    if stack.status == "COMPLETE" and stack.action in TEMPLATE_ACTIONS:
        assert stack.reached, shown
    if stack.status == "FAILED" and stack.action in TEMPLATE_ACTIONS:
        assert not stack.reached, shown


class ReadLife(Life):
    """A user who reads about the stack before and after each request, and also takes snapshots."""

    def ask(self) -> None:
        assert_agreement(self.world)
        if self.dice.random() < 0.1:
            self.snapshot()
        else:
            super().ask()
        assert_agreement(self.world)

    def snapshot(self) -> None:
        body, wait = Body(b"{}"), self.dice.random() < 0.5
        try:
            taken = snapshots.take(self.world.context, self.world.stack_row("s"), body, wait=wait)
        except (NotSupported, Conflict, AssertionError):
            return
        self.told.append("snapshot")
        self.world.messages += taken.messages

    def at_rest(self) -> Any:
        stack = super().at_rest()
        assert_agreement(self.world)
        return stack

    def is_to_be_put_right(self, stack: Any) -> bool:
        return super().is_to_be_put_right(stack) or stack.action == "SNAPSHOT"


@pytest.mark.parametrize("seed", range(3))
def test_all_answers_agree_in_any_sequence(world: Simulator, seed: int):
    live(world, 5_000 + seed, ReadLife)


@pytest.mark.long
@pytest.mark.parametrize("hundred", range(10))
def test_all_answers_agree_in_many_sequences(world: Simulator, hundred: int):
    for seed in range(100 * hundred, 100 * (hundred + 1)):
        live(world, 10_000 + seed, ReadLife)


@pytest.mark.parametrize("action", ["check", "suspend", "resume", "snapshot"])
def test_an_action_after_a_failed_update_does_not_hide_the_failure(world: Simulator, action: str):
    world.reset(1)
    uuid = world.create("s", {"a": thing(a="1"), "b": thing("a", a="1")})
    world.rest()
    world.provider.fate = lambda verb, ctx: "refused" if (verb, ctx.name) == ("update", "b") else "done"
    world.update("s", {"a": thing(a="2"), "b": thing("a", a="2")}, disable_rollback=True)
    world.rest()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert_agreement(world)
    if action == "snapshot":
        world.messages += snapshots.take(world.context, world.stack_row("s"), Body(b"{}")).messages
    else:
        world.act("s", action)
    world.rest()
    assert_agreement(world)
    stack = world.stack_row("s")
    assert not stack.reached
    text = summarize(stack, blockers.standing(world.database, stack), 3_600).text
    assert f"{NOT_REACHED} 2: the last was 1" in text
    assert [row.outcome for row in history.list_revisions(world.database, stack)] == ["failed", "complete"]
    if action == "check":
        assert world.state(uuid) == "UPDATE_FAILED"
