"""From every state every operation leads where the spec says, or is refused with a reason and changes
nothing; an update or a delete leads out of each, out of SUSPEND after a resume
(docs/internals/engine-semantics.md §1, docs/internals/rest-api.md §6).

The table is generated: each action and status of a stack, each request, each for a
single stack and for a parent stack whose child is in that state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.engine.states import STACK_ACTIONS, STATUSES
from orchestrator.errors import ActionInProgress, NotFound, NotSupported, OrchestratorError
from tests.scenarios.provider import thing
from tests.scenarios.simulator import Simulator
from tests.scenarios.trees import CHILD, nested
from tests.scenarios.trees import text as template

Resources = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """The template of the create, of the update, and of the repeated update."""

    expected: Resources
    changed: Resources
    other: Resources
    failing: frozenset[str]  # the things that fail where anything does
    last: str  # the last thing that the change is about
    files: Mapping[str, str]

    def after(self, state: str) -> Resources:
        """Return the last request to a stack in a state."""
        return self.changed if state.partition("_")[0] in ("UPDATE", *SET) else self.expected


FLAT = Shape(
    {"a": thing(a="1"), "b": thing("a")},
    {"a": thing(a="2"), "b": thing("a")},
    {"a": thing(a="3"), "b": thing("a"), "c": thing("b")},
    frozenset("abc"),
    "a",
    {},
)
TREE = Shape(
    {"a": thing(a="1"), "t": nested("a", value="1")},
    {"a": thing(a="2"), "t": nested("a", value="2")},
    {"a": thing(a="3"), "t": nested("a", value="3"), "c": thing("t")},
    frozenset("b"),
    "b",
    {CHILD: template({"b": thing(a={"get_param": "value"})})},
)
SHAPES = pytest.mark.parametrize("shape", [FLAT, TREE], ids=["flat", "tree"])
OPERATIONS = (
    "update",
    "patch",
    "delete",
    "cancel_update",
    "cancel_without_rollback",
    "check",
    "suspend",
    "resume",
)
# Set by a change of the action: separate tests reach these states, this test covers the requests from there.
SET = ("ADOPT", "SNAPSHOT", "RESTORE")
EVENTS = "UPDATE event SET action = :a WHERE resource_type = 'OS::Heat::Stack' AND action = 'UPDATE'"
STATES = [
    pytest.param(f"{action}_{status}", marks=[pytest.mark.long] if action in SET else [])
    for action in STACK_ACTIONS
    for status in STATUSES
]


@pytest.fixture(scope="module")
def world(new_database: Callable[[], str]) -> Iterator[Simulator]:
    made = Simulator(new_database())
    yield made
    made.close()


def drive_to(world: Simulator, state: str, shape: Shape) -> str:
    """Bring a new stack to a state; return its uuid."""
    action, _, status = state.partition("_")
    world.reset(1)
    if action == "CREATE":
        if status == "FAILED":
            world.provider.fate = lambda verb, ctx: "dead" if (verb, ctx.name) == ("create", "b") else "done"
        uuid = world.create("s", shape.expected, files=shape.files)
    else:
        uuid = world.create("s", shape.expected, files=shape.files)
        world.rest()
        if status == "FAILED":
            world.provider.fate = lambda verb, ctx: (
                "refused" if ctx.name in shape.failing and verb not in ("create", "find") else "done"
            )
        begin(world, action, shape)
    if status != "IN_PROGRESS":
        world.rest()
    if action in SET:
        with world.database.engine.begin() as connection:
            connection.execute(text("UPDATE stack SET action = :a"), {"a": action})
            connection.execute(text(EVENTS), {"a": action})
    world.provider.fate = world.fate
    assert world.state(uuid) == state
    return uuid


def begin(world: Simulator, action: str, shape: Shape) -> None:
    match action:
        case "DELETE":
            world.delete("s")
        case "CHECK" | "SUSPEND" | "RESUME":
            if action == "RESUME":
                fate, world.provider.fate = world.provider.fate, world.fate
                world.act("s", "suspend")
                world.rest()
                world.provider.fate = fate
            world.act("s", action.lower())
        case "ROLLBACK":
            fate, world.provider.fate = world.provider.fate, world.fate
            world.update("s", shape.changed, files=shape.files)
            world.go("finish", until=lambda: shape.last in world.done("update"))
            world.act("s", "cancel_update")
            world.provider.fate = fate
        case _:
            world.update("s", shape.changed, files=shape.files)


def ask(world: Simulator, uuid: str, operation: str, shape: Shape) -> None:
    match operation:
        case "update":
            world.update(uuid, shape.other, files=shape.files)
        case "patch":
            world.patch(uuid)
        case "delete":
            world.delete(uuid)
        case _:
            world.act(uuid, operation)


def expected(state: str, operation: str) -> str | type[OrchestratorError]:
    """Return the final state, or the error of a refusal."""
    action = state.partition("_")[0]
    if state == "DELETE_COMPLETE":
        return NotFound
    match operation:
        case "update" | "patch":
            return NotSupported if action == "SUSPEND" else "UPDATE_COMPLETE"
        case "delete":
            return "DELETE_COMPLETE"
        case "cancel_update":
            return "ROLLBACK_COMPLETE" if state == "UPDATE_IN_PROGRESS" else NotSupported
        case "cancel_without_rollback":
            return (
                f"{action}_FAILED" if state in ("UPDATE_IN_PROGRESS", "CREATE_IN_PROGRESS") else NotSupported
            )
        case _:
            if operation == "check" and (state.endswith("IN_PROGRESS") or missed(state)):
                return f"{action}_"  # the resources are observed, and the operation continues
            if operation != "check" and state.endswith("IN_PROGRESS") and action != operation.upper():
                return ActionInProgress
            return f"{operation.upper()}_"  # separate tests cover its effect on failed resources


def missed(state: str) -> bool:
    """Whether a stack in this state has not reached its desired revision."""
    action, _, status = state.partition("_")
    if state == "CREATE_FAILED":  # it was never complete: as in Heat, the check fails
        return False
    return action == "DELETE" or (status == "FAILED" and action in ("UPDATE", "ROLLBACK", *SET))


def everything(world: Simulator) -> list[Any]:
    """Return all that a refusal must leave as it is."""
    tables = ("stack", "revision", "resource", "graph_node", "event", "content", "resource_definition")
    return [tuple(row) for table in tables for row in world.rows(f"SELECT * FROM {table} t ORDER BY t::text")]


@SHAPES
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("state", STATES)
def test_every_operation_in_every_state(world: Simulator, state: str, operation: str, shape: Shape):
    uuid = drive_to(world, state, shape)
    outcome = expected(state, operation)
    if not isinstance(outcome, str):
        before = everything(world)
        with pytest.raises(outcome, match=r"\w+"):
            ask(world, uuid, operation, shape)
        assert everything(world) == before
        return
    ask(world, uuid, operation, shape)
    world.rest()
    assert world.state(uuid).startswith(outcome)
    world.sound()
    if outcome == "UPDATE_COMPLETE":
        world.verify(shape.other if operation == "update" else shape.after(state), shape.files)


@SHAPES
@pytest.mark.parametrize("status", STATUSES)
def test_a_suspended_stack_is_resumed_before_it_is_updated(world: Simulator, status: str, shape: Shape):
    uuid = drive_to(world, f"SUSPEND_{status}", shape)
    world.act("s", "resume", wait=True)
    world.rest()
    world.update("s", shape.other, files=shape.files)
    world.rest()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.verify(shape.other, shape.files)
