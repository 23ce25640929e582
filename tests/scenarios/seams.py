"""Named points of the protocol at which a scenario can act.

A test names a point (`world.before("claim", …)`), never the function behind it. `POINTS` is the only place
that maps the names to functions of the product. It holds the functions themselves, so that renaming a
function needs a single edit here, which the type checker and the import both demand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.operations import queued_actions
from orchestrator.operations.reconcile.nested import child_transitions
from orchestrator.operations.stacks import create_delete, update
from orchestrator.resources.builtin.wait_condition import WaitCondition
from orchestrator.store.connections.prepared import PreparedConnection
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.outcome_builder import OutcomeStatement
from orchestrator.store.planning import bulk_writer, group_diff, small_plans
from orchestrator.store.signals import ingest, queue, watchers
from orchestrator.store.traversals import child_completion, completion

Details = Mapping[str, Any]


def _begin_details(db: repository.CheckConnection, *_: Any) -> Details:
    [setting] = db.execute("SHOW synchronous_commit").fetchone() or ("",)
    return {"synchronous_commit": setting}


def _outcome_details(_db: Any, statement: OutcomeStatement, rows: Any, *_: Any) -> Details:
    return {"outcome": statement.name, "resource": rows[0].get("name")}


def _child_details(_db: Any, _visit: Any, done: Any, *_: Any) -> Details:
    return {"verb": done.outcome.step.verb}


def _slice_details(_db: Any, target: bulk_writer.PlanTarget) -> Details:
    return {"traversal": target.traversal}


def _copied_details(_db: Any, target: bulk_writer.PlanTarget, rows: Any) -> Details:
    return {
        "traversal": target.traversal,
        "count": len(rows),
        "cleanup": any(row.kind == "cleanup" for row in rows),
    }


def _small_plan_details(
    _db: Any, statement: str, _plan: Any, _finish: int, _feeders: int, rows: Any, *_: Any
) -> Details:
    return {"nodes": len(rows), "delete": statement == small_plans.WRITE_DELETE}


def _statement_details(_self: Any, statement: str, _values: Any) -> Details:
    return {"wakes_watchers": statement is queue.NOTIFY_WATCHERS}


def _no_details(*_args: Any, **_options: Any) -> Details:
    return {}


@dataclass(frozen=True)
class Point:
    """A function of the product, and the details of a call that tests may select by."""

    owner: Any
    function: Callable[..., Any]
    details: Callable[..., Details] = _no_details

    @property
    def name(self) -> str:
        return self.function.__name__


POINTS: Mapping[str, Point] = {
    # A visit to a node (docs/internals/protocol.md).
    "claim": Point(repository, repository.claim),
    "read_queued": Point(repository, repository.read_queued),
    "read_claimed": Point(repository, repository.read_claimed),
    "begin": Point(repository, repository.begin, _begin_details),
    "write_outcome": Point(repository, repository.write_outcome, _outcome_details),
    "settle_nodes": Point(repository, repository.settle_nodes),
    "drop": Point(repository, repository.drop),
    "refill_window": Point(repository, repository.refill_window),
    # Stacks and their children.
    "child_transition": Point(child_transitions, child_transitions.apply_child_transition, _child_details),
    "complete_stack": Point(completion, completion.complete),
    "complete_child": Point(child_completion, child_completion.complete_child),
    "start_queued": Point(queued_actions, queued_actions.start_or_drop),
    "validate_create": Point(create_delete, create_delete.validate_request),
    "validate_update": Point(update, update.validate_request),
    # Plans.
    "plan_slice": Point(bulk_writer, bulk_writer.slice_of, _slice_details),
    "copy_nodes": Point(bulk_writer, bulk_writer.copy_nodes, _copied_details),
    "read_finish_node": Point(bulk_writer, bulk_writer.finish_node),
    "read_deposed": Point(bulk_writer, bulk_writer.unplanned_deposed),
    "changed_members": Point(group_diff, group_diff.changed_members),
    "read_small_delete": Point(small_plans, small_plans.read_for_delete),
    "write_small_plan": Point(small_plans, small_plans.write, _small_plan_details),
    # Signals.
    "accept_signals": Point(ingest, ingest.accept),
    "claim_signals": Point(queue, queue.claim),
    "register_watcher": Point(watchers, watchers.register_watcher),
    "observe_wait_condition": Point(WaitCondition, WaitCondition.observe),
    # Any prepared statement.
    "statement": Point(PreparedConnection, PreparedConnection.fetched, _statement_details),
}


@dataclass
class _Hook:
    action: Callable[[Details, Any], object]
    when: Details
    times: float

    def run(self, details: Details, result: Any = None) -> None:
        if self.times and all(details.get(key) == value for key, value in self.when.items()):
            self.times -= 1  # before the action, which may pass the same point
            self.action(details, result)


@dataclass
class _Hooks:
    before: list[_Hook] = field(default_factory=list)
    after: list[_Hook] = field(default_factory=list)


class Seams:
    """The hooks of a test, and the functions that they replace for its duration."""

    def __init__(self) -> None:
        self._hooks: dict[str, _Hooks] = {}
        self._originals: dict[str, Any] = {}

    def before(self, point: str, action: Callable[[], object], *, times: float = 1, **when: Any) -> None:
        """Run `action` before the next `times` calls at a point whose details equal `when`."""
        self._at(point).before.append(_Hook(lambda *_: action(), when, times))

    def after(self, point: str, action: Callable[[], object], *, times: float = 1, **when: Any) -> None:
        """Run `action` after the next `times` such calls; for a context manager, after it was left."""
        self._at(point).after.append(_Hook(lambda *_: action(), when, times))

    def record(self, point: str, detail: str = "", **when: Any) -> list[Any]:
        """Return a list that collects a detail of every call from now on, or without a name all details."""
        calls: list[Any] = []
        take = _Hook(lambda result, _: calls.append(result[detail] if detail else result), when, float("inf"))
        self._at(point).before.append(take)
        return calls

    def results(self, point: str, **when: Any) -> list[Any]:
        """Return a list that collects the results of every call from now on."""
        actual: list[Any] = []
        self._at(point).after.append(_Hook(lambda _, result: actual.append(result), when, float("inf")))
        return actual

    def remove(self) -> None:
        """Restore all functions."""
        for point, original in self._originals.items():
            setattr(POINTS[point].owner, POINTS[point].name, original)
        self._originals.clear()
        self._hooks.clear()

    def _at(self, name: str) -> _Hooks:
        if name not in self._hooks:
            point, hooks = POINTS[name], _Hooks()
            self._hooks[name] = hooks
            self._originals[name] = vars(point.owner)[point.name]
            setattr(point.owner, point.name, _watched(self._originals[name], point, hooks))
        return self._hooks[name]


def _watched(function: Callable[..., Any], point: Point, hooks: _Hooks) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if hooks.before or hooks.after:
            args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)
        details = point.details(*args, **options)
        for hook in list(hooks.before):
            hook.run(details)
        result = function(*args, **options)
        if isinstance(result, AbstractContextManager):
            return _left(result, details, hooks)
        for hook in list(hooks.after):
            hook.run(details, result)
        return result

    return call


@contextmanager
def _left(manager: AbstractContextManager[Any], details: Details, hooks: _Hooks) -> Iterator[Any]:
    with manager as value:
        yield value
    for hook in list(hooks.after):
        hook.run(details)
