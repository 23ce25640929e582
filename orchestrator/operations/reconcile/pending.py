"""The results of visits that are still to be written to the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from orchestrator.engine.check.visit import ControlVisit, ResourceVisit, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.json_types import JsonObject
from orchestrator.operations.resource_context.state import ResourceState, StepResult
from orchestrator.store.nodes.outcome_builder import OutcomeStatement


class Write(NamedTuple):
    """An outcome, with the statement that writes it."""

    visit: ResourceVisit
    state: ResourceState
    row: JsonObject
    statement: OutcomeStatement


class Transition(NamedTuple):
    """A transition of a child stack, together with the wait of its resource's node."""

    visit: ResourceVisit
    result: StepResult


class Pause(NamedTuple):
    """A pause at a hook: without `state` before the step, otherwise after it."""

    visit: ResourceVisit
    hook: str
    state: ResourceState | None
    row: JsonObject


class Drop(NamedTuple):
    """A node whose traversal is over, or whose lease is lost."""

    visit: Visit


class Separate(NamedTuple):
    """A visit that is not answered by a shared list: it is released for its own task (adr/0022)."""

    visit: Visit


class Restart(NamedTuple):
    """A node whose traversal was replaced by a new one of the same action, with its messages."""

    visit: Visit
    messages: Sequence[CheckMessage]


class Join(NamedTuple):
    """A node without work, to be settled."""

    visit: ControlVisit


class NeedsLease(NamedTuple):
    """A visit that must be repeated with a lease."""

    visit: ControlVisit


class Enqueue(NamedTuple):
    """A plan or finish node that wrote its own outcome."""

    messages: Sequence[CheckMessage]


Pending = Write | Transition | Pause | Drop | Separate | Restart | Join | NeedsLease | Enqueue


class Partition(NamedTuple):
    """Pending results by their sort; outcomes also by statement, in the order of the visits."""

    writes: Mapping[OutcomeStatement, list[Write]]
    transitions: Sequence[Transition]
    pauses: Sequence[Pause]
    drops: Sequence[Visit]
    separate: Sequence[Visit]
    joins: Sequence[ControlVisit]
    needing_lease: Sequence[ControlVisit]
    messages: Sequence[CheckMessage]


def partition(results: Iterable[Pending]) -> Partition:
    """Return the pending results by their sort."""
    writes: dict[OutcomeStatement, list[Write]] = {}
    transitions: list[Transition] = []
    pauses: list[Pause] = []
    drops: list[Visit] = []
    separate: list[Visit] = []
    joins: list[ControlVisit] = []
    needing_lease: list[ControlVisit] = []
    messages: list[CheckMessage] = []
    for result in results:
        match result:
            case Write():
                writes.setdefault(result.statement, []).append(result)
            case Transition():
                transitions.append(result)
            case Pause():
                pauses.append(result)
            case Drop():
                drops.append(result.visit)
            case Separate():
                separate.append(result.visit)
            case Restart():
                drops.append(result.visit)
                messages += result.messages
            case Join():
                joins.append(result.visit)
            case NeedsLease():
                needing_lease.append(result.visit)
            case Enqueue():
                messages += result.messages
    return Partition(writes, transitions, pauses, drops, separate, joins, needing_lease, messages)
