"""Write the outcomes of a batch of visits, and release their dependents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from orchestrator.engine.check.outcome import Failed, failure_reason
from orchestrator.engine.check.visit import ControlVisit, ResourceVisit, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import LimitExceeded
from orchestrator.logs import logger
from orchestrator.operations import stack_completion
from orchestrator.operations.reconcile.nested import child_transitions
from orchestrator.operations.reconcile.nested.child_transitions import TransitionContext
from orchestrator.operations.reconcile.pending import (
    Drop,
    Partition,
    Pause,
    Pending,
    Transition,
    Write,
    partition,
)
from orchestrator.operations.reconcile.resource_visits import (
    BatchContext,
    pending_outcome,
    row_of,
    visit_resource,
)
from orchestrator.operations.resource_context import late_requests
from orchestrator.operations.resource_context.state import ResourceState, StepResult, load_state
from orchestrator.operations.runtime import dispatch_window
from orchestrator.store.nodes import hooks as store_hooks
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.outcome_builder import Next, OutcomeStatement

WAKE_NEWER: Final = frozenset({Next.BLOCKED, Next.EARLY})  # statements that do so themselves

log = logger()


class Written(NamedTuple):
    """Result of a write: messages to send, visits that were too late, and stacks that have failed."""

    messages: list[CheckMessage]
    late: list[Visit]
    failing: set[int]


class OutcomeWriter(NamedTuple):
    """Writes the results of a batch: all its visits belong to the same tree of stacks."""

    batch: BatchContext
    traversal: int
    root_id: int
    root: str
    in_child_stacks: bool

    @classmethod
    def of(cls, batch: BatchContext, first: Visit) -> OutcomeWriter:
        """Return the writer for a batch with this first visit."""
        stack = first.stack
        root = batch.worker.stacks.root_of(stack)
        return cls(batch, first.traversal, stack.root_id, root, stack.id != stack.root_id)

    def write(self, results: Sequence[Pending]) -> list[CheckMessage]:
        """Write all results; return the messages to send."""
        pending = partition(results)
        messages = list(pending.messages)
        if pending.transitions:
            sent, deferred = self._apply_transitions(pending.transitions)
            messages += sent
            pending = partition([*results, *deferred])
        drops = list(pending.drops)
        failing = {visit.stack.id for visit in drops}
        for written in self._write_all(pending):
            messages += written.messages
            drops += written.late
            failing |= written.failing
        if drops:
            messages += self._drop([visit.node_id for visit in drops])
        if pending.separate:
            messages += self._separate([visit.node_id for visit in pending.separate])
        for stack_id in failing:
            messages += stack_completion.drain(self.batch.worker.database, stack_id, self.traversal)
        return messages

    def _write_all(self, pending: Partition) -> Iterable[Written]:
        for statement, items in pending.writes.items():
            yield self._write(statement, items)
        if pending.pauses:
            yield self._pause(pending.pauses)
        if pending.joins and self.batch.lease is not None:
            yield Written(self._settle(pending.joins, self.batch.lease), [], set())

    def _write(self, statement: OutcomeStatement, items: Sequence[Write]) -> Written:
        """Write the outcomes of a statement."""
        batch, db = self.batch, self.batch.db
        rows = [item.row for item in items]
        settled = child_transitions.write_with_side_effects(
            db,
            items,
            lambda: repository.write_outcome(db, statement, rows, batch.lease, self.root, self._budget()),
        )
        messages, late = self._released(settled), list[Visit]()
        for item in items:
            if item.row["resource_id"] not in settled.held:
                late.append(item.visit)
                if batch.lease is not None:
                    self._record_late(item.visit, item.state, item.row)
        # A newer traversal may have started during a provider's call.
        if batch.lease is not None and statement.next not in WAKE_NEWER:
            messages += self._wake_newer(item.visit for item in items)
        fails = statement.halts
        return Written(messages, late, {item.visit.stack.id for item in items if fails or item.visit.halted})

    def _apply_transitions(
        self, transitions: Sequence[Transition]
    ) -> tuple[list[CheckMessage], list[Pending]]:
        """Apply transitions of child stacks; return messages, and the results of repeated visits."""
        batch, messages, deferred = self.batch, list[CheckMessage](), list[Pending]()
        context = TransitionContext(batch.db, partial(row_of, batch), batch.lease, self.root)
        todo = list(transitions)
        while todo:
            visit, result = todo.pop(0)
            try:
                sent = child_transitions.apply_child_transition(context, visit, result)
            except child_transitions.LeaseLost:
                deferred.append(Drop(visit))
            except LimitExceeded as error:
                reason = failure_reason(error.heat_type, visit.resource.name, str(error))
                failed = StepResult(Failed(reason), load_state(visit, batch.worker.cipher))
                deferred.append(pending_outcome(batch, visit, failed))
            except child_transitions.ChildChanged:
                again = self._visit_again(visit)
                if isinstance(again, Transition):
                    todo.append(again)
                elif again is not None:
                    deferred.append(again)
            else:
                messages += sent
                batch.worker.windows.enqueued(self.root_id, len(sent), 0)
        return messages, deferred

    def _visit_again(self, visit: ResourceVisit) -> Pending | None:
        """Repeat the visit to a resource whose child has changed since it was read."""
        batch = self.batch
        if batch.lease is not None:
            fresh = repository.read_claimed(batch.db, [visit.node_id], batch.lease)
        else:
            fresh, _ = repository.read_queued(batch.db, [visit.node_id], visit.traversal)
        match fresh:
            case [ResourceVisit() as revisited]:
                return visit_resource(batch, revisited)
            case _:
                return Drop(visit)

    def _pause(self, pauses: Sequence[Pause]) -> Written:
        """Pause nodes at their hooks."""
        batch, late = self.batch, list[Visit]()
        for pause in pauses:
            visit, hook, state, row = pause
            if state is None:
                if not store_hooks.pause_before(batch.db, visit, hook, batch.lease):
                    late.append(visit)
            elif not self._pause_after(pause):
                late.append(visit)
                if batch.lease is not None:
                    self._record_late(visit, state, row)
        messages = [] if batch.lease is None else self._wake_newer(pause.visit for pause in pauses)
        return Written(messages, late, {pause.visit.stack.id for pause in pauses if pause.visit.halted})

    def _pause_after(self, pause: Pause) -> bool:
        db, row = self.batch.db, pause.row

        def write() -> repository.Settled:
            paused = store_hooks.pause_after(db, row, pause.hook, self.batch.lease)
            return repository.Settled([], frozenset({row["resource_id"]} if paused else ()))

        return bool(child_transitions.write_with_side_effects(db, [pause], write).held)

    def _settle(self, joins: Sequence[ControlVisit], lease: int) -> list[CheckMessage]:
        ids = [visit.node_id for visit in joins]
        return self._released(repository.settle_nodes(self.batch.db, ids, lease, self.root, self._budget()))

    def _drop(self, ids: Sequence[int]) -> list[CheckMessage]:
        batch = self.batch
        if batch.lease is None:
            repository.drop_unclaimed(batch.db, ids)
            return []
        return self._released(repository.drop(batch.db, ids, batch.lease, self.root))

    def _separate(self, ids: Sequence[int]) -> list[CheckMessage]:
        batch = self.batch
        if batch.lease is None:
            return []
        messages = repository.separate(batch.db, ids, batch.lease, self.root).messages
        batch.worker.windows.enqueued(self.root_id, len(messages), 0)
        return messages

    def _released(self, settled: repository.Settled) -> list[CheckMessage]:
        """Return the messages for released dependents; nodes without work are settled at once."""
        batch, messages = self.batch, list[CheckMessage]()
        if settled.clean:
            messages += self._released(
                repository.settle_clean(batch.db, settled.clean, self.root, self._budget())
            )
        released = settled.messages
        if self.in_child_stacks:
            released = stack_completion.end_children(batch.db, released, self.root)
        batch.worker.windows.enqueued(self.root_id, len(released), settled.not_enqueued)
        return messages + released

    def _wake_newer(self, visits: Iterable[Visit]) -> list[CheckMessage]:
        ids = [visit.node_id for visit in visits]
        return repository.wake_newer_traversals(self.batch.db, ids, self.root)

    def _budget(self) -> int:
        return self.batch.worker.windows.budget(self.root_id)

    def _record_late(self, visit: ResourceVisit, state: ResourceState, row: Mapping[str, Any]) -> None:
        """Record what a visit has done under a lost lease: its requests, and the object that it has created;
        an external resource is not ours.
        """
        resource = visit.resource
        if row.get("traversal") is not None:  # no request was sent
            return
        log.warning("lease_lost", resource=resource.name, stack=visit.stack.uuid)
        type_ = self.batch.worker.types.get(resource.resource_type)
        if type_ is not None:
            late_requests.record_late_outcome(self.batch.db, resource, state, type_)
        created = state.action != "CHECK" and state.physical_id != resource.physical_id
        if state.physical_id is not None and created:
            repository.record_orphan(
                self.batch.db, visit, f"{resource.uuid}-{state.attempt}", state.physical_id
            )

    def refill(self, ended: int) -> list[CheckMessage]:
        """Count the ended visits in the dispatch window, and refill it when needed."""
        worker = self.batch.worker
        worker.windows.completed(self.root_id, ended)
        if not worker.windows.needs_refill(self.root_id):
            return []
        refilled = repository.refill_window(self.batch.db, self.root_id, self.root, dispatch_window.SIZE)
        worker.windows.refilled(self.root_id, refilled.outstanding, len(refilled.messages))
        return refilled.messages
