"""Steps of a nested stack's resource: request the transitions of its child, and judge the child's status.

No provider is called and nothing is awaited. A transition of the child is returned as a `ChildTransition`,
which `child_transitions.py` performs in the transaction that lets the resource's node wait. The end of the
child wakes the node, and the next visit reads the result (docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from orchestrator.engine.check.change import Ask, Update, decide_change
from orchestrator.engine.check.child_status import (
    ADOPTED_KEY,
    child_status,
    is_outdated,
    split_request,
    with_request,
)
from orchestrator.engine.check.decide import (
    Adopt,
    Compare,
    Create,
    Delete,
    DropRow,
    InvalidState,
    Keep,
    Observe,
    ReissueUpdate,
    RunAction,
    Step,
)
from orchestrator.engine.check.outcome import (
    ChildTransition,
    Deleted,
    Failed,
    Replaced,
    Unchanged,
    Unhealthy,
)
from orchestrator.operations.reconcile import execution
from orchestrator.operations.reconcile.comparison import comparison, type_changed, with_definition
from orchestrator.operations.reconcile.desired_state import apply_definition
from orchestrator.operations.reconcile.nested.actions import delete_child, run_child_action
from orchestrator.operations.reconcile.nested.advance import CANCELLED, CHILD_GONE, advance
from orchestrator.operations.reconcile.nested.operation import (
    NestedOperation,
    child_failed,
    failed,
    wait_for_child,
)
from orchestrator.operations.reconcile.update_steps import carry_out
from orchestrator.operations.resource_context.operation import ResourceOperation, is_current
from orchestrator.operations.resource_context.state import StepResult
from orchestrator.resources.groups.scaling_group import ScalingGroup
from orchestrator.store.signals.watchers import CHILD_FINISHED


def execute_nested(nested: NestedOperation, step: Step, retries_left: int) -> StepResult:
    """Run a step; the child's request is stored with the data of the type again."""
    if isinstance(nested.resource_type, ScalingGroup) and nested.operation.resource.op is not None:
        nested.operation.state.refresh_signal = nested.operation.services.cipher.seal({CHILD_FINISHED: None})
    result = execution.execute(nested.operation, step, retries_left, partial(_run_step, nested))
    result.state.data = with_request(split_request(result.state.data)[1], nested.request)
    return result


def _run_step(
    nested: NestedOperation,
    operation: ResourceOperation,
    step: Step,
    retries_left: int,  # noqa: ARG001 - a child is never tried again
) -> StepResult:
    state = operation.state
    match step:
        case Create() | Compare():
            return _compare(nested)
        case Observe() | ReissueUpdate():
            return _follow_operation(nested)
        case Delete():
            return delete_child(nested)
        case DropRow(retained=True) if operation.visit.stack.retain and nested.child is not None:
            return delete_child(nested)  # only the rows: the child's resources are retained as well
        case DropRow(retained=retained):
            state.action = "DELETE"
            detached = nested.child.id if retained and nested.child is not None else None
            return StepResult(Deleted(silent=not retained, detached_child=detached), state)
        case RunAction(action=action):
            result = run_child_action(nested, action)
            if action == "CHECK" and isinstance(result.outcome, Failed):  # the check of the stack continues
                return result._replace(outcome=Unhealthy(result.outcome.reason))
            return result
        case Adopt():
            return _adopt(nested)
        case InvalidState():
            return execution.run_local_step(operation, step)
    return StepResult(Unchanged(), state)


def _compare(nested: NestedOperation) -> StepResult:
    """Compare the resource with its definition, and update the child unless it is up to date."""
    operation, child = nested.operation, nested.child
    state, resource = operation.state, operation.resource
    before = replace(state)
    case = comparison(operation, before)._replace(converge=False, nested=True)
    decision = decide_change(case)
    if not isinstance(decision, Ask):  # of another type now: not evaluated
        return carry_out(operation, decision, before, None)
    desired = apply_definition(operation)
    if desired.external_id is not None:
        message = f"external_id is not supported for {resource.type}, which is a stack"
        return failed(nested, "NotSupported", message)._replace(state=before)
    if child is None or child.gone:
        state.action = "CREATE" if resource.action == "INIT" else "UPDATE"
        return advance(nested, 0)
    decision = decide_change(with_definition(case, state, desired))
    if not isinstance(decision, Keep | Update):
        return carry_out(operation, decision, before, desired)
    if isinstance(decision, Keep) and resource.status == "COMPLETE" and _is_up_to_date(nested):
        return StepResult(Unchanged(), state)
    state.action = "UPDATE"
    unchanged = isinstance(decision, Keep) and resource.status == "COMPLETE" and _is_repair(nested)
    return advance(nested, 0, unchanged=unchanged)


def _is_repair(nested: NestedOperation) -> bool:
    """Whether the definition and the request are as before: only resources in the child are visited."""
    visit = nested.operation.visit
    return (
        visit.stack.action == "UPDATE"
        and not visit.stack.converge
        and visit.definition is not None
        and nested.operation.resource.definition_id == visit.definition.id
    )


def _is_up_to_date(nested: NestedOperation) -> bool:
    """Whether the child is as requested, from the same definition."""
    visit, child = nested.operation.visit, nested.child
    return (
        not visit.stack.converge
        and visit.stack.action != "RESTORE"
        and visit.definition is not None
        and nested.operation.resource.definition_id == visit.definition.id
        and child is not None
        and not child.stale
        and child_status(child, nested.request) == "done"
    )


def _adopt(nested: NestedOperation) -> StepResult:
    """Let the child adopt the existing resources: it is created by an adoption."""
    operation, state = nested.operation, nested.operation.state
    sealed, cipher = operation.resource.sealed, operation.services.cipher
    opened = cipher.open(sealed.encode()) if sealed else {}
    metadata, adopted = state.metadata, state.data.get(ADOPTED_KEY) or {}
    state.action = "ADOPT"
    requested = False
    try:
        apply_definition(operation)
        state.metadata = metadata or state.metadata
        # The row is encrypted for its input. Only secrets of the definition, and secret input, remain.
        state.secrets = state.desired_secrets
        state.secret = state.secrets is None or bool(state.secrets)
        if opened.get("secret", opened):
            state.hide(None)
        state.data = {key: value for key, value in state.data.items() if key != ADOPTED_KEY}
        result = advance(nested, 0, adopted)
        requested = isinstance(result.outcome, ChildTransition)
    finally:
        if not requested:  # the next attempt needs the same input
            state.data = {**state.data, ADOPTED_KEY: adopted}
            state.hide(None)
    return result


def _follow_operation(nested: NestedOperation) -> StepResult:
    """Follow an open operation; after a change of the definition, continue with the current definition."""
    operation, visit = nested.operation, nested.operation.visit
    state = operation.state
    if visit.definition is None or visit.act is not None or visit.halted or is_current(operation):
        return _evaluate_child(nested, nested.request.turn if nested.request else 0)
    if type_changed(operation):
        return StepResult(Replaced(), state)
    apply_definition(operation)
    return advance(nested, 0)


def _evaluate_child(nested: NestedOperation, turn: int) -> StepResult:
    """Judge the child by the request of an earlier visit."""
    child, visit = nested.child, nested.operation.visit
    ending = visit.halted or visit.act is not None
    if not ending and is_outdated(child, nested.request, visit.traversal):
        return advance(nested, 0)
    match child_status(child, nested.request):
        case "none" | "done" if nested.request is None:
            return advance(nested, 0)
        case "running":
            return wait_for_child(nested, turn)
        case "done":
            return advance(nested, turn + 1)
        case "failed":
            assert child is not None
            return child_failed(nested, child)
        case "none":
            return failed(nested, "NotFound", CHILD_GONE)
    if ending:
        return failed(nested, "Error", CANCELLED.format(nested.operation.state.action))
    return advance(nested, 0)
