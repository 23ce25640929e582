"""A visit to a nested stack's resource: its child, and the context of its type."""

from __future__ import annotations

from dataclasses import dataclass, replace

from orchestrator.engine.check.child_status import (
    ChildRequest,
    ChildState,
    ChildStep,
    flattened,
    split_request,
)
from orchestrator.engine.check.outcome import ChildTransition, Failed, failure_reason
from orchestrator.engine.validation.secret_places import secrets_of
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.planning.attribute_uses import attribute_keys
from orchestrator.operations.reconcile.desired_state import definition_view
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult, in_progress_event_written
from orchestrator.resources.base import Context, read_update_policy
from orchestrator.resources.nested_type import NestedType
from orchestrator.store.nodes.repository import CheckConnection
from orchestrator.store.traversals import child_reads
from orchestrator.template.function_view import ParentResourceProxy

MAX_SHOWN_CAUSES = 10  # failures of a child's resources in the reason of its parent's resource


@dataclass(frozen=True, slots=True)
class NestedOperation:
    """An operation on a child stack: `request` is the transition that was requested of `child` before."""

    operation: ResourceOperation
    resource_type: NestedType
    db: CheckConnection
    loader: ChildStackLoader
    child: ChildState | None
    request: ChildRequest | None


def nested_operation(
    operation: ResourceOperation, resource_type: NestedType, db: CheckConnection, loader: ChildStackLoader
) -> NestedOperation:
    """Read the child; its request is split from the data of the type."""
    fresh = operation.resource.attempt == 0  # no child was ever requested
    child = None if fresh else child_reads.state(db, operation.resource.id)
    request, operation.state.data = split_request(operation.state.data)
    return NestedOperation(operation, resource_type, db, loader, child, request)


def transition(nested: NestedOperation, step: ChildStep) -> StepResult:
    """Return the result that requests a transition of the child and waits for its end."""
    operation, state = nested.operation, nested.operation.state
    state.attempt = max(state.attempt, 1)
    started = not in_progress_event_written(operation.visit, state)
    state.op = "CREATE" if state.action == "ADOPT" else state.action
    return StepResult(ChildTransition(step), state, started)


def wait_for_child(nested: NestedOperation, turn: int) -> StepResult:
    """Return the result that waits for the end of the child's traversal."""
    return transition(nested, ChildStep("wait", nested.child, turn=turn))


def failed(nested: NestedOperation, error_type: str, message: str) -> StepResult:
    """Return a failure of the resource itself."""
    operation = nested.operation
    return StepResult(Failed(failure_reason(error_type, operation.resource.name, message)), operation.state)


def child_failed(nested: NestedOperation, child: ChildState) -> StepResult:
    """Return the failure of the child, with the failures of its resources."""
    operation, name = nested.operation, nested.operation.resource.name
    causes = child_reads.causes(nested.db, child)
    if child.action == "CHECK":  # each begins with the resource's path, which the text repeats
        causes = [cause.partition(": ")[2] or cause for cause in causes]
    reasons = [flattened(cause, name) for cause in causes]
    if not reasons:
        reasons = [failure_reason("Error", name, child.reason)]
    omitted = len(reasons) - MAX_SHOWN_CAUSES
    shown = "; ".join(reasons[:MAX_SHOWN_CAUSES]) + (f"; and {omitted} more" if omitted > 0 else "")
    return StepResult(Failed(shown, tuple(reasons) if len(reasons) > 1 else ()), operation.state)


def parent_proxy(nested: NestedOperation) -> ParentResourceProxy:
    """Return the parent's resource as the child's functions see it
    (docs/internals/hot-language.md §5.1).
    """
    operation = nested.operation
    definition, state = operation.visit.definition, operation.state
    assert definition is not None
    body, view = definition.body, definition_view(operation)
    policy = body.get("update_policy")
    if policy:
        policy = view.resolve(policy, f"resources.{operation.resource.name}.update_policy")
    return ParentResourceProxy(
        state.metadata,
        str(body.get("deletion_policy") or "Delete").capitalize(),
        policy,
        secret=state.is_secret(state.metadata, output=True) or view.used_secret,
    )


def nested_context(nested: NestedOperation) -> Context:
    """Return the context of the nested type.

    Raises:
        InvalidTemplate: with all errors of the update policy.
    """
    operation, state = nested.operation, nested.operation.state
    action = "CREATE" if state.action == "ADOPT" else state.action
    context = operation.context(action)
    definition = operation.visit.definition
    keys = attribute_keys(definition.body if definition else None)
    return replace(context, data=state.data, update_policy=_update_policy(nested), attribute_paths=keys)


def _update_policy(nested: NestedOperation) -> JsonMapping:
    """Return the update policy with its defaults."""
    operation = nested.operation
    definition = operation.visit.definition
    policies = definition.body.get("update_policy") if definition else None
    if not policies:
        return {}
    place = f"resources.{operation.resource.name}.update_policy"
    view = definition_view(operation)
    policy = view.resolve(policies, place) or {}
    if view.used_secret:
        operation.state.hide(secrets_of(view, policies, policy))
    read, faults = read_update_policy(nested.resource_type, policy, path=place)
    if faults:
        raise InvalidTemplate(
            [Diagnostic(fault.code, f"{fault.path}: {fault.message}", fault.where) for fault in faults]
        )
    return read
