"""Visit a resource: decide, execute, and prepare the outcome for writing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
from psycopg.types.json import Json

from orchestrator import metrics
from orchestrator.clients.provider_calls import ListBatch
from orchestrator.engine.check import hooks
from orchestrator.engine.check.decide import (
    Abandon,
    Adopt,
    Create,
    DropRow,
    InvalidState,
    Keep,
    Recreate,
    ReissueUpdate,
    Step,
    decide,
)
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
from orchestrator.engine.check.visit import ResourceVisit, replacement_visit
from orchestrator.errors import InvalidTemplate, NotFound, Superseded, WorkerHung
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.operations.children.loader import LazyStackContext
from orchestrator.operations.children.missing_types import UninstalledType
from orchestrator.operations.reconcile.checked_node import CheckedNode, resource_checked
from orchestrator.operations.reconcile.execution import execute, report_aborted
from orchestrator.operations.reconcile.incarnations import OtherIncarnations
from orchestrator.operations.reconcile.nested.operation import nested_operation
from orchestrator.operations.reconcile.nested.steps import execute_nested
from orchestrator.operations.reconcile.outcome_rows import (
    outcome_row,
    outcome_statement,
    ready_columns,
    was_healthy,
)
from orchestrator.operations.reconcile.pending import (
    Drop,
    Pause,
    Pending,
    Restart,
    Separate,
    Transition,
    Write,
)
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import late_requests
from orchestrator.operations.resource_context.early_outputs import misled_dependents
from orchestrator.operations.resource_context.large_values import has_large_values
from orchestrator.operations.resource_context.listed_observations import observe_listed, only_observes
from orchestrator.operations.resource_context.operation import OperationServices, ResourceOperation
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import (
    DesiredResource,
    OperationNotRecorded,
    ResourceState,
    StepResult,
    in_progress_event_written,
    load_state,
)
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.visit_calls import VisitCalls
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.store.connections.damaged_rows import DAMAGED, DAMAGED_ROW, damage
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.maintenance import stalled
from orchestrator.store.nodes import action_sql, replacement_sql, repository

log = logger()

WITHOUT_TYPE = (Abandon, Keep, DropRow, InvalidState)  # steps that change only rows: the type is not used
MAX_LOST_LEASES = 10  # consecutive lost leases: the node itself seems to end its workers


class BatchContext(NamedTuple):
    """Context of a batch of visits under a claim; `lease` is None without a claim."""

    worker: WorkerContext
    db: repository.CheckConnection
    lease: int | None
    services: OperationServices
    checked: list[CheckedNode]  # a summary of each visit, for the dashboard
    together: ListBatch | None = None  # visits that are answered by a shared list only (adr/0022)


def batch_context(
    worker: WorkerContext,
    db: repository.CheckConnection,
    lease: int | None,
    together: ListBatch | None = None,
) -> BatchContext:
    """Return the context of a batch."""
    services = OperationServices(
        worker.cipher,
        worker.settings,
        worker.files,
        StoredStackContext(db, worker.cipher, lease, worker.settings.endpoint),
        partial(_record_start, worker, db, lease),
        partial(_record_step, worker, db, lease),
        partial(_record_snapshot, worker, db),
        OtherIncarnations(worker, db, lease),
        worker.keystone,
    )
    return BatchContext(worker, db, lease, services, [], together)


def visit_resource(batch: BatchContext, visit: ResourceVisit) -> Pending | None:
    """Run the step of a resource; None: nothing to write, the visit is repeated when its lease expires. A
    resource whose rows cannot be read fails (store/adr/0009).
    """
    try:
        return _visit(batch, visit)
    except DAMAGED as error:
        log.exception("resource_damaged", resource=visit.resource.name, stack=visit.stack.uuid)
        return _damaged(batch, visit, damage(error))


def _damaged(batch: BatchContext, visit: ResourceVisit, reason: str) -> Write:
    """Return the failure that writes only the status of a resource, and ends its operation. Its object is
    found by its token when the resource is deleted.
    """
    resource = visit.resource
    reason = failure_reason(DAMAGED_ROW, resource.name, reason)
    begun = "CREATE" if resource.action == "INIT" else visit.act or visit.stack.action
    row: dict[str, Any] = {
        "node_id": visit.node_id,
        "resource_id": resource.id,
        "stack_id": visit.stack.id,
        "name": resource.name,
        "type": resource.type,
        "action": "DELETE" if visit.kind == "cleanup" else begun,
        "status": "FAILED",
        "reason": reason,
        "physical_id": resource.physical_id,
        "started": False,
        "changed": False,
        "unreachable": False,
        "traversal": visit.traversal,
    }
    if batch.lease is None:
        row |= {"continued": resource.op is not None, "status_read": resource.status}
    batch.checked.append(resource_checked(visit, "visit", Failed(reason)))
    statement = action_sql.CHECK_FAILED if visit.act == "CHECK" else action_sql.FAIL_INVALID_STATE
    return Write(visit, ResourceState(), row, statement)


def _visit(batch: BatchContext, visit: ResourceVisit) -> Pending | None:
    resource, worker = visit.resource, batch.worker
    try:
        worker.quarantine.require_released("node", visit.node_id)
        type_ = worker.stacks.type_of(visit)
        step = decide(visit, type_)
    except (NotFound, InvalidTemplate, WorkerHung) as error:
        type_ = UninstalledType(resource.resource_type)
        step = decide(visit, type_)
        if not isinstance(step, WITHOUT_TYPE):
            failed = Failed(failure_reason(error.heat_type, resource.name, str(error)))
            _count(batch, visit, "keep", failed)
            return pending_outcome(batch, visit, StepResult(failed, load_state(visit, worker.cipher)))
    if isinstance(step, Abandon):
        return Drop(visit)
    if batch.together and not only_observes(visit, step):
        return Separate(visit)
    if visit.early_released and isinstance(step, Recreate) and not visit.halted:
        return _plan_again(batch, visit)
    if visit.hooks and (hook := hooks.before(visit, step)):
        return Pause(visit, hook, None, {})
    if visit.lost_leases > MAX_LOST_LEASES:
        failed = Failed(f"Worker went down during resource {resource.op or resource.action}")
        batch.checked.append(resource_checked(visit, "visit", failed))
        return pending_outcome(batch, visit, StepResult(failed, load_state(visit, worker.cipher)))
    try:
        return _run(batch, visit, type_, step)
    except Superseded:
        log.info("lease_lost", resource=resource.name, stack=visit.stack.uuid)
        released = resource.released is not None
        if type_.can_release and (visit.others_hold or released):  # perhaps requested a moment ago
            late_requests.record_late_outcome(batch.db, resource, load_state(visit, worker.cipher), type_)
        return Drop(visit)
    except OperationNotRecorded as error:  # the lease expires, and another visit follows
        log.warning("operation_not_started", resource=resource.name, error=str(error))
        return None


def _plan_again(batch: BatchContext, visit: ResourceVisit) -> Restart:
    """Plan the action again, because dependents were perhaps built with an object that is given up, or with
    values that have changed (adr/0015): in the new traversal they follow the resource.
    """
    log.info("early_dependents_planned_again", resource=visit.resource.name, stack=visit.stack.uuid)
    return Restart(visit, stalled.restart_traversal(batch.db, visit.stack.id, visit.traversal))


def _run(batch: BatchContext, visit: ResourceVisit, type_: ResourceType, step: Step) -> Pending:
    """Execute a step with the definition that belongs to it."""
    worker = batch.worker
    late_requests.record_lost(batch.db, visit.resource, type_)
    observation = _with_operation_inputs(batch, visit, step)
    if observation is not visit and isinstance(type_, NestedType):  # of another template, perhaps
        type_ = worker.stacks.type_of(observation)
    operation = _operation(batch, observation, type_)
    retries_left = worker.settings.action_retry_limit - visit.retry_count
    if batch.together is not None:
        seen = observe_listed(operation, step, batch.together)
        if seen is None:
            return Separate(visit)
        operation.calls.answer(seen)
    with operation.calls:
        result = _execute(batch, operation, step, retries_left)
    if type_.calls_out:
        late_requests.record_unanswered(batch.db, visit.resource, operation._replace(state=result.state))
        result.state.absent = operation.state.absent or operation.calls.absent
    _count(batch, visit, type(step).__name__.lower(), result.outcome)
    if misled_dependents(visit, result.outcome, result.state) and not visit.halted:
        return _plan_again(batch, visit)
    if observation is not visit and isinstance(result.outcome, Ready):
        result = result._replace(outcome=PreviousOperationEnded(result.outcome.observation))
    if isinstance(result.outcome, Replaced):
        replacement = _replace_inline(batch, visit, type_, result.desired)
        if replacement is not None:
            return replacement
    return pending_outcome(batch, visit, result, opened=operation.state.opened)


def _execute(batch: BatchContext, operation: ResourceOperation, step: Step, retries_left: int) -> StepResult:
    type_ = operation.resource_type
    if isinstance(type_, NestedType):
        nested = nested_operation(operation, type_, batch.db, batch.worker.stacks)
        return execute_nested(nested, step, retries_left)
    return report_aborted(operation, execute(operation, step, retries_left))


def _operation(
    batch: BatchContext, visit: ResourceVisit, type_: ResourceType, desired: DesiredResource | None = None
) -> ResourceOperation:
    worker, resource = batch.worker, visit.resource
    state = load_state(visit, worker.cipher)
    software: SoftwareStore = UNCONNECTED
    if type_.needs_lease:  # a local type has no use for it
        software = DeploymentStore.of(
            visit, worker.database, worker.cipher, worker.settings, lambda: state.secrets
        )
    return ResourceOperation(
        visit,
        resource,
        type_,
        state,
        worker.parameters.get(visit.stack),
        software,
        LazyStackContext(worker.stacks, visit),
        batch.services,
        VisitCalls(type_, visit, worker.breakers if type_.calls_out else None),
        desired,
    )


def _with_operation_inputs(batch: BatchContext, visit: ResourceVisit, step: Step) -> ResourceVisit:
    """Return the visit with the definition and parameters of the operation that it completes, or of the
    adoption. The current definition is applied by a later visit, after those to its requirements.
    """
    match step:
        case Adopt():
            assert visit.definition is not None
            if visit.resource.definition_id not in (None, visit.definition.id):
                return repository.read_for_adoption(batch.db, visit)
        case Create() | ReissueUpdate() | Recreate() if visit.act is not None or visit.halted:
            return repository.read_with_operation_inputs(batch.db, visit)
    return visit


def _replace_inline(
    batch: BatchContext, visit: ResourceVisit, replaced_type: ResourceType, desired: DesiredResource | None
) -> Write | None:
    """Create the replacement of a local type in the same visit (adr/0004); None if it needs its own visit,
    without effects here.
    """
    if batch.lease is not None or visit.hooks:
        return None
    new = replacement_visit(visit, str(uuid4()))
    type_ = batch.worker.types.get(new.resource.resource_type)
    if type_ is None or type_.needs_lease or isinstance(type_, NestedType):
        return None
    step = decide(new, type_)
    if not isinstance(step, Create):  # the traversal is over, or an adoption
        return None
    # The same type evaluates the definition to the same values.
    operation = _operation(batch, new, type_, desired if type_ is replaced_type else None)
    result = execute(operation, step, batch.worker.settings.action_retry_limit)
    if not isinstance(result.outcome, Ready) or has_large_values(result.state):
        return None  # large values are counted with the id of their own row
    row = row_of(batch, new, result) | ready_columns(result.outcome.observation)
    row |= {"changed": True, "replacement_uuid": new.resource.uuid, "runs_as": new.resource.runs_as}
    row |= {
        "was_healthy": was_healthy(visit),
        "status_read": visit.resource.status,
    }  # of the replaced resource
    return Write(visit, result.state, row, replacement_sql.SETTLE_INLINE_REPLACEMENT)


def pending_outcome(
    batch: BatchContext, visit: ResourceVisit, result: StepResult, *, opened: bool = False
) -> Write | Transition | Pause:
    """Return a result as it is written; `opened` if the visit recorded the start of an operation."""
    if isinstance(result.outcome, ChildTransition):
        return Transition(visit, result)
    row = row_of(batch, visit, result)
    outcome = hooks.outcome_after_hooks(visit, result.outcome) if visit.hooks else result.outcome
    unrecorded = isinstance(outcome, Replaced) or (visit.resource.op is None and not opened)
    if unrecorded and batch.lease is not None:
        # Without a recorded operation, the planner of a newer traversal has planned from the row as it is.
        row["traversal"] = visit.traversal
    statement, columns = outcome_statement(visit, result, outcome)
    row |= columns
    if visit.hooks:
        row["changed"] = row["changed"] or hooks.CHANGED in visit.hooks
        if hook := hooks.after(visit, outcome, result.state.action):
            return Pause(visit, hook, result.state, row)
    return Write(visit, result.state, row, statement)


def row_of(batch: BatchContext, visit: ResourceVisit, result: StepResult) -> dict[str, Any]:
    """Return the columns of every outcome."""
    return outcome_row(visit, result, batch.worker.cipher, claimed=batch.lease is not None)


def _count(batch: BatchContext, visit: ResourceVisit, step: str, outcome: Outcome) -> None:
    """Count a step in the metrics and log it, at debug level for local types."""
    batch.checked.append(resource_checked(visit, step, outcome))
    name, became = visit.resource.resource_type, type(outcome).__name__.lower()
    metrics.count_visit(name if name in batch.worker.types else metrics.OTHER, step, became)
    write = log.debug if batch.lease is None else log.info
    write("node_checked", type=name, step=step, outcome=became)


def _record_start(
    worker: WorkerContext,
    db: repository.CheckConnection,
    lease: int | None,
    visit: ResourceVisit,
    state: ResourceState,
) -> bool:
    """Record the start of an operation durably; False: the lease is lost."""
    started = not in_progress_event_written(visit, state)
    result = StepResult(Unchanged(), state, started)
    row = outcome_row(visit, result, worker.cipher, claimed=lease is not None)
    row |= {
        "op": "DELETE" if state.action == "DELETE" else state.op or "CREATE",
        "traversal": visit.traversal,
    }
    return _record_intent(db, lease, row, repository.begin)


def _record_step(
    worker: WorkerContext,
    db: repository.CheckConnection,
    lease: int | None,
    visit: ResourceVisit,
    state: ResourceState,
) -> bool:
    """Record the next step of an operation durably; False: the lease is lost, or no operation is open and the
    stack has a newer traversal.
    """
    row = outcome_row(visit, StepResult(Unchanged(), state), worker.cipher, claimed=lease is not None)
    row |= {"step": state.step, "traversal": visit.traversal if state.op is None else None}
    return _record_intent(db, lease, row, repository.begin_step)


def _record_intent(
    db: repository.CheckConnection,
    lease: int | None,
    row: dict[str, Any],
    write: Callable[[repository.CheckConnection, JsonMapping, int], bool],
) -> bool:
    """Record what a request will do, durably, before it is sent; False: the lease is lost."""
    while True:
        called_at = time.monotonic()
        try:
            if lease is None or not write(db, row, lease):
                return False
        except UNREACHABLE:
            raise
        except psycopg.Error as error:
            raise OperationNotRecorded(str(error)) from error
        if time.monotonic() - called_at < lease_keeper.LEASE_SECONDS / 3:
            return True
        row["started"] = False  # so slow that the lease may be lost: check it again


def _record_snapshot(
    worker: WorkerContext,
    db: repository.CheckConnection,
    visit: ResourceVisit,
    state: ResourceState,
    token: str,
    kept: Mapping[str, Any] | None,
) -> tuple[str, Mapping[str, Any] | None]:
    """Record a resource snapshot; return the token of its first request, and its recorded data."""
    cipher = worker.cipher
    values = {"metadata": state.metadata, "data": dict(state.data)}
    row: dict[str, Any] = {
        "token": token,
        "physical_id": state.physical_id,
        "metadata": None if state.secret else Json(values["metadata"]),
        "data": None if state.secret else Json(values["data"]),
        "sealed": cipher.seal(values) if state.secret else None,
        "kept": None if kept is None else cipher.seal(kept),
    }
    first_token, stored = repository.upsert_resource_snapshot(db, visit, row)
    return first_token, None if stored is None else cipher.open(stored)
