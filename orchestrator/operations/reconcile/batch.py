"""One claim's visits: each is decided and carried out, and what came of them is written, together where it is
alike.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.json import Json

from orchestrator import metrics
from orchestrator.engine.check import hooks
from orchestrator.engine.check.decide import Abandon, Adopt, Create, Recreate, ReissueUpdate, Step, decide
from orchestrator.engine.check.outcome import (
    ChildTransition,
    Failed,
    Outcome,
    PreviousOperationEnded,
    Ready,
    Replaced,
    Unchanged,
    failure_reason,
)
from orchestrator.engine.check.visit import Visit, replacement_visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import InvalidTemplate, NotFound, Superseded
from orchestrator.logs import logger, set_log_context
from orchestrator.operations import stack_completion
from orchestrator.operations.children.loader import LazyStackContext
from orchestrator.operations.reconcile import child_transitions
from orchestrator.operations.reconcile.checked_node import CheckedNode, resource_checked
from orchestrator.operations.reconcile.nested_step_executor import NestedStepExecutor
from orchestrator.operations.reconcile.outcome_rows import (
    outcome_row,
    outcome_statement,
    ready_columns,
    was_healthy,
)
from orchestrator.operations.reconcile.step_executor import StepExecutor
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import (
    OperationNotRecorded,
    ResourceState,
    StepResult,
    in_progress_event_written,
    load_state,
)
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.nodes import hooks as store_hooks
from orchestrator.store.nodes import replacement_sql, repository
from orchestrator.store.nodes.outcome_builder import OutcomeStatement
from orchestrator.store.planning import small_plans

log = logger()

MAX_LOST_LEASES = 10  # leases in a row: whatever it is that ends the worker, it is this node


_Write = tuple[Visit, ResourceState, dict[str, Any]]


class CheckBatch:
    """One claim's visits, their outcomes grouped by the statement that writes them."""

    def __init__(
        self,
        engine: WorkerContext,
        db: repository.CheckConnection,
        lease: int | None,
        read: small_plans.CreateInputs | None = None,
    ) -> None:
        self.engine, self.db, self.lease, self.read = engine, db, lease, read
        self.checked: list[CheckedNode] = []
        self.surroundings = StoredStackContext(db, engine.cipher, lease, engine.settings.endpoint)
        self.writes: dict[OutcomeStatement, list[_Write]] = {}
        self.rings: list[CheckMessage] = []
        self.left: list[Visit] = []  # that take a claim after all
        self.inner = False  # whether the visits are in child stacks
        self.moves: list[tuple[Visit, StepResult]] = []  # of child stacks
        self.pauses: list[
            tuple[Visit, str, ResourceState | None, dict[str, Any]]
        ] = []  # at a hook; what was done

    def run(self, visits: Sequence[Visit]) -> list[CheckMessage]:
        drops: list[Visit] = []
        joins: list[Visit] = []
        for visit in visits:
            set_log_context(visit.log_context)
            if visit.resource is not None:
                if not self._visit(visit):
                    drops.append(visit)
            elif visit.superseded or (visit.halted and visit.kind != "finish"):
                drops.append(visit)
            elif visit.kind == "plan":
                self._plan(visit)
            elif self.lease is None:
                self._finish_child(visit)
            elif visit.kind in {"join", "cleanup"}:  # a cleanup whose row an older visit removed meanwhile
                joins.append(visit)
            elif visit.kind == "finish":
                self.rings += self._finish(visit, self.lease)
            # its row was lost: the stack stands still, and is planned anew
            # (docs/internals/protocol.md rule 16)
            else:
                drops.append(visit)
            if visit.resource is None:
                metrics.count_visit(visit.kind, "visit", "done")
                self.checked.append(CheckedNode(visit.stack.name, visit.kind, visit.stack.action, "visit"))
        if visits:
            self._write(visits[0], drops, joins)
            self._refill_window(visits[0], len(visits) - len(self.left))
        return self.rings

    def _plan(self, visit: Visit) -> None:
        log.info("plan_started", action=visit.stack.action)
        windows, root_id = self.engine.windows, visit.stack.root_id
        allowance = windows.budget(root_id)
        if self.lease is None:
            small = self.engine.plan.small(self.db, visit, allowance, self.read)
            if small is None:
                self.left.append(visit)
                return
            rings, unrung = small.rings, small.unrung
        else:
            rings, unrung = self.engine.plan(visit, self.lease, allowance), 1  # others may be left
        windows.enqueued(root_id, len(rings), unrung)
        self.rings += rings

    def _finish_child(self, visit: Visit) -> None:
        """End a child's traversal."""
        woken = stack_completion.end_child(self.db, visit.node_id, self.engine.stacks.root_of(visit.stack))
        if woken is None:
            self.left.append(visit)
        else:
            self.rings += woken

    def _finish(self, visit: Visit, lease: int) -> list[CheckMessage]:
        """End the traversal, or go on to what can only be removed now (adr/0002)."""
        if not visit.halted:
            cleaning = self.engine.plan.plan_cleanup(visit, lease)
            if cleaning is not None:
                return cleaning
        return stack_completion.complete_or_drain(self.engine.database, visit, lease)

    def _visit(self, visit: Visit) -> bool:
        """Do one resource's step; False when the visit is over without one."""
        assert visit.resource is not None
        try:
            kind = self.engine.stacks.type_of(visit)
        except (NotFound, InvalidTemplate) as error:
            known = load_state(visit, self.engine.cipher)
            reason = failure_reason(error.heat_type, visit.resource.name, str(error))
            self._count(visit, "keep", Failed(reason))
            self._queue_outcome(visit, StepResult(Failed(reason), known))
            return True
        step = decide(visit, kind)
        if isinstance(step, Abandon):
            return False
        if visit.hooks and (hook := hooks.before(visit, step)):
            self.pauses.append((visit, hook, None, {}))
            return True
        if visit.lost_leases > MAX_LOST_LEASES:
            reason = f"Worker went down during resource {visit.resource.op or visit.resource.action}"
            self.checked.append(resource_checked(visit, "visit", Failed(reason)))
            self._queue_outcome(visit, StepResult(Failed(reason), load_state(visit, self.engine.cipher)))
            return True
        try:
            seen = self._with_operation_inputs(visit, step)
            if seen is not visit and isinstance(kind, NestedType):  # its template may have been another
                kind = self.engine.stacks.type_of(seen)
            plugin = self._plugin(seen, kind)
            done = plugin.execute(step, self.engine.settings.action_retry_limit - visit.retry_count)
            self._count(visit, type(step).__name__.lower(), done.outcome)
            if seen is not visit and isinstance(done.outcome, Ready):
                done = replace(done, outcome=PreviousOperationEnded(done.outcome.observation))
            if not (isinstance(done.outcome, Replaced) and self._replace_inline(visit, plugin)):
                self._queue_outcome(visit, done, begun=plugin.begun)
        except Superseded:
            log.info("lease_lost", resource=visit.resource.name, stack=visit.stack.uuid)
            return False
        except OperationNotRecorded as error:  # the lease runs out, and somebody comes again
            log.warning("operation_not_started", resource=visit.resource.name, error=str(error))
        return True

    def _count(self, visit: Visit, step: str, outcome: Outcome) -> None:
        """Count a resource's step for who watches, and log it: where types call nobody, that line is only
        for who asks for it.
        """
        assert visit.resource is not None
        self.checked.append(resource_checked(visit, step, outcome))
        kind, became = visit.resource.kind, type(outcome).__name__.lower()
        metrics.count_visit(kind if kind in self.engine.types else metrics.OTHER, step, became)
        tell = log.debug if self.lease is None else log.info
        tell("node_checked", type=kind, step=step, outcome=became)

    def _plugin(self, visit: Visit, kind: ResourceType) -> StepExecutor:
        engine = self.engine
        values = engine.parameters.get(visit.stack)
        make = NestedStepExecutor if isinstance(kind, NestedType) else StepExecutor
        software: SoftwareStore = UNCONNECTED
        if kind.needs_lease:  # what calls nobody has no use for it
            software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
        plugin = make(
            visit,
            kind,
            values,
            engine.cipher,
            self._begin,
            engine.files,
            self._keep_copy,
            software,
            self.surroundings,
        )
        plugin.settings, plugin.around = engine.settings, LazyStackContext(engine.stacks, visit)
        return plugin.bind_child(self.db, engine.stacks) if isinstance(plugin, NestedStepExecutor) else plugin

    def _replace_inline(self, visit: Visit, plugin: StepExecutor) -> bool:
        """Make what takes a resource's place at once, where that calls nobody (adr/0004); False when it takes
        a visit of its own, and whatever was made here is nothing.
        """
        if self.lease is not None or visit.hooks:
            return False
        heir = replacement_visit(visit, str(uuid4()))
        assert visit.resource is not None
        assert heir.resource is not None
        kind = self.engine.types.get(heir.resource.kind)
        if kind is None or kind.needs_lease or isinstance(kind, NestedType):
            return False
        step = decide(heir, kind)
        if not isinstance(step, Create):  # the traversal is over, or an adoption
            return False
        maker = self._plugin(heir, kind)
        if kind is plugin.kind:
            maker.wanted = plugin.wanted  # the same of both: no need to evaluate it again
        done = maker.execute(step, self.engine.settings.action_retry_limit)
        if not isinstance(done.outcome, Ready):
            return False
        row = self._row(heir, done) | ready_columns(done.outcome.observation)
        row |= {"changed": True, "heir": heir.resource.uuid, "runs_as": heir.resource.runs_as}
        row |= {"was_fine": was_healthy(visit), "was": visit.resource.status}  # of the one that goes
        self.writes.setdefault(replacement_sql.SETTLE_INLINE_REPLACEMENT, []).append((visit, done.known, row))
        return True

    def _with_operation_inputs(self, visit: Visit, step: Step) -> Visit:
        """Return a visit to what is to be taken over, or was begun and is only to come to its end, with the
        definition and parameters that this was done with.

        What is wanted since then is brought about by another visit, after those to what it requires.
        """
        match step:
            case Adopt():
                assert visit.resource is not None
                assert visit.definition is not None
                if visit.resource.definition_id not in (None, visit.definition.id):
                    return repository.read_for_adoption(self.db, visit)
            case Create() | ReissueUpdate() | Recreate() if visit.act is not None or visit.halted:
                return repository.read_with_operation_inputs(self.db, visit)
        return visit

    def _begin(self, visit: Visit, known: ResourceState) -> bool:
        row = self._row(
            visit, StepResult(Unchanged(), known, started=not in_progress_event_written(visit, known))
        )
        row |= {
            "op": "DELETE" if known.action == "DELETE" else known.op or "CREATE",
            "traversal": visit.traversal,
        }
        while True:
            asked_at = time.monotonic()
            try:
                if self.lease is None or not repository.begin(self.db, [row], self.lease):
                    return False
            except UNREACHABLE:
                raise
            except psycopg.Error as error:
                raise OperationNotRecorded(str(error)) from error
            if time.monotonic() - asked_at < self.engine.settings.lease_seconds / 3:
                return True
            row["started"] = False  # held up for so long that the lease may be another's by now: look again

    def _queue_outcome(self, visit: Visit, done: StepResult, *, begun: bool = False) -> None:
        if isinstance(done.outcome, ChildTransition):
            self.moves.append((visit, done))
            return
        row = self._row(visit, done)
        outcome = hooks.outcome_after_hooks(visit, done.outcome) if visit.hooks else done.outcome
        assert visit.resource is not None
        unseen = isinstance(outcome, Replaced) or (visit.resource.op is None and not begun)
        if unseen and self.lease is not None:
            # No open operation told a newer traversal's planner of it: that one went by the row as it is.
            row["traversal"] = visit.traversal
        statement, more = outcome_statement(visit, done, outcome)
        row |= more
        if visit.hooks:
            row["changed"] = row["changed"] or hooks.CHANGED in visit.hooks
            if hook := hooks.after(visit, outcome, done.known.action):
                self.pauses.append((visit, hook, done.known, row))
                return
        self.writes.setdefault(statement, []).append((visit, done.known, row))

    def _keep_copy(
        self, visit: Visit, known: ResourceState, token: str, kept: Mapping[str, Any] | None
    ) -> tuple[str, Mapping[str, Any] | None]:
        """Note a copy that a snapshot asks for; return its token, and what is known of it."""
        cipher = self.engine.cipher
        values = {"metadata": known.metadata, "data": dict(known.data)}
        row: dict[str, Any] = {
            "token": token,
            "physical_id": known.physical_id,
            "metadata": None if known.secret else Json(values["metadata"]),
            "data": None if known.secret else Json(values["data"]),
            "sealed": cipher.seal(values) if known.secret else None,
            "kept": None if kept is None else cipher.seal(kept),
        }
        asked_with, stored = repository.upsert_resource_snapshot(self.db, visit, row)
        return asked_with, None if stored is None else cipher.open(stored)

    def _row(self, visit: Visit, done: StepResult) -> dict[str, Any]:
        return outcome_row(visit, done, self.engine.cipher, claimed=self.lease is not None)

    def _write(self, first: Visit, drops: list[Visit], joins: list[Visit]) -> None:
        windows, root_id = self.engine.windows, first.stack.root_id
        root = self.engine.stacks.root_of(first.stack)
        self.inner = first.stack.id != root_id
        self._move(drops, root_id, root)
        unwinding = {visit.stack.id for visit in drops}
        for statement, items in self.writes.items():
            rows = [row for _, _, row in items]
            with child_transitions.child_side_effects(self.db, items) as tell:
                result = repository.write_outcome(
                    self.db, statement, rows, self.lease, root, windows.budget(root_id)
                )
                tell(result)
            self._collect_released(root_id, root, result)
            for visit, known, row in items:
                if row["resource_id"] not in result.held:
                    drops.append(visit)
                    if self.lease is not None:
                        self._record_orphan(visit, known, row)
            unwinding |= {visit.stack.id for visit, _, _ in items if visit.halted or statement.halts}
            if (
                self.lease is not None
            ):  # a provider is slow enough for a newer traversal to have come meanwhile
                self.rings += repository.wake_newer_traversals(
                    self.db, [visit.node_id for visit, _, _ in items], root
                )
        if self.pauses:
            drops += self._pause(root)
            unwinding |= {visit.stack.id for visit, *_ in self.pauses if visit.halted}
        if joins and self.lease is not None:
            ids = [visit.node_id for visit in joins]
            allowance = windows.budget(root_id)
            self._collect_released(
                root_id, root, repository.settle_nodes(self.db, ids, self.lease, root, allowance)
            )
        if drops:
            self._drop(root_id, root, [visit.node_id for visit in drops])
        for stack_id in unwinding:
            self.rings += stack_completion.wind_down(self.engine.database, stack_id, first.traversal)

    def _refill_window(self, first: Visit, ended: int) -> None:
        """Take account of the messages that visits have used up, and ring for more when it is time."""
        windows, root_id = self.engine.windows, first.stack.root_id
        windows.completed(root_id, ended)
        if windows.needs_refill(root_id):
            root = self.engine.stacks.root_of(first.stack)
            topped = repository.top_up(self.db, root_id, root, self.engine.settings.dispatch_window)
            windows.refilled(root_id, topped.outstanding, len(topped.rings))
            self.rings += topped.rings

    def _move(self, drops: list[Visit], root_id: int, root: str) -> None:
        """Move the child stacks, each with its resource's wait."""
        again = self.moves
        while again:
            todo, again = again, []
            for visit, done in todo:
                try:
                    rings = child_transitions.apply_child_transition(
                        self.db, visit, done, self._row, self.lease, root
                    )
                except child_transitions.LeaseLost:
                    drops.append(visit)
                except child_transitions.ChildChanged:
                    again += self._look_again(visit, drops)
                else:
                    self.rings += rings
                    self.engine.windows.enqueued(root_id, len(rings), 0)

    def _look_again(self, visit: Visit, drops: list[Visit]) -> list[tuple[Visit, StepResult]]:
        """Visit a resource anew whose child was not as it was seen; return what is to be moved now."""
        held = self.moves
        self.moves = []
        if self.lease is not None:
            fresh = repository.read_claimed(self.db, [visit.node_id], self.lease)
        else:
            fresh, _ = repository.read_queued(self.db, [visit.node_id], visit.traversal)
        if not fresh or not self._visit(fresh[0]):
            drops.append(visit)
        found, self.moves = self.moves, held
        return found

    def _pause(self, root: str) -> list[Visit]:
        """Let nodes wait at their hooks; return those whose traversal is over, or whose lease is lost."""
        left = []
        for visit, hook, known, row in self.pauses:
            if known is None:
                if not store_hooks.pause_before(self.db, visit, hook, self.lease):
                    left.append(visit)
            elif not self._pause_after(visit, hook, known, row):
                left.append(visit)
                if self.lease is not None:
                    self._record_orphan(visit, known, row)
        if self.lease is not None:
            self.rings += repository.wake_newer_traversals(
                self.db, [visit.node_id for visit, *_ in self.pauses], root
            )
        return left

    def _pause_after(self, visit: Visit, hook: str, known: ResourceState, row: dict[str, Any]) -> bool:
        with child_transitions.child_side_effects(self.db, [(visit, known, row)]) as tell:
            paused = store_hooks.pause_after(self.db, row, hook, self.lease)
            tell(repository.Settled([], frozenset({row["resource_id"]} if paused else ())))
        return paused

    def _drop(self, root_id: int, root: str, ids: Sequence[int]) -> None:
        if self.lease is None:
            repository.drop_unclaimed(self.db, ids)
        else:
            self._collect_released(root_id, root, repository.drop(self.db, ids, self.lease, root))

    def _collect_released(self, root_id: int, root: str, result: repository.Settled) -> None:
        if result.clean:
            windows = self.engine.windows
            self._collect_released(
                root_id,
                root,
                repository.settle_clean(self.db, result.clean, root, windows.budget(root_id)),
            )
        rings = stack_completion.end_children(self.db, result.rings, root) if self.inner else result.rings
        self.rings += rings
        self.engine.windows.enqueued(root_id, len(rings), result.unrung)

    def _record_orphan(self, visit: Visit, known: ResourceState, row: Mapping[str, Any]) -> None:
        """Write down what was made under a lease that is no longer ours; what was only taken over is
        another's.
        """
        resource = visit.resource
        assert resource is not None
        if row.get("traversal") is not None:  # nothing was asked for
            return
        log.warning("lease_lost", resource=resource.name, stack=visit.stack.uuid)
        made = known.action != "CHECK" and known.physical_id != resource.physical_id
        if known.physical_id is not None and made:
            repository.record_orphan(self.db, visit, f"{resource.uuid}-{known.attempt}", known.physical_id)
