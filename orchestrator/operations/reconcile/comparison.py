"""The facts for `decide_change`: the recorded state, the definition, and the provider's answers."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.check import hooks
from orchestrator.engine.check.change import (
    NO_NAMES,
    Ask,
    Comparison,
    Decision,
    Desired,
    Forbidden,
    Recorded,
    Replace,
    Update,
)
from orchestrator.engine.check.property_diff import (
    as_stored,
    changed_properties,
    needs_other_type,
    with_drift,
)
from orchestrator.json_types import JsonMapping
from orchestrator.operations.reconcile.step_outcomes import find_object
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import DesiredResource, ResourceState
from orchestrator.resources.base import NOTHING_TYPE, Observation
from orchestrator.store.observation.verdicts import drifted_properties


def desired_type(operation: ResourceOperation) -> str:
    """Return the name of the type that manages the definition."""
    definition = operation.visit.definition
    assert definition is not None
    name: str = definition.body.get("runs_as") or definition.body["type"]
    return name


def type_changed(operation: ResourceOperation) -> bool:
    """Whether the definition is of another type by now."""
    return needs_other_type(operation.resource.resource_type, desired_type(operation))


def comparison(operation: ResourceOperation, before: ResourceState) -> Comparison:
    """Return the facts that need neither evaluation nor observation."""
    visit, resource = operation.visit, operation.resource
    desired = Desired(resource.resource_type)
    if visit.definition is not None:
        name = desired_type(operation)
        shadowed = name == NOTHING_TYPE and visit.definition.body["type"] != NOTHING_TYPE
        desired = Desired(name, shadowed)
    return Comparison(
        Recorded(
            resource.name,
            resource.type,
            resource.resource_type,
            resource.action,
            resource.status,
            before.physical_id,
            before.properties,
            before.metadata,
            resource.marked_unhealthy,
            resource.suspect,
            recoverable=resource.mark is not None and resource.mark.action == "recover",
        ),
        desired,
        operation.resource_type,
        converge=visit.stack.converge,
        restricted=hooks.restricted(visit) if visit.hooks else NO_NAMES,
        restoring=visit.stack.action == "RESTORE",
    )


def with_definition(case: Comparison, state: ResourceState, evaluated: DesiredResource) -> Comparison:
    """Return the comparison with the evaluated definition."""
    desired = case.desired._replace(
        properties=as_stored(state.properties), metadata=state.metadata, external_id=evaluated.external_id
    )
    return case._replace(desired=desired)


def with_fact(operation: ResourceOperation, case: Comparison, ask: Ask, before: ResourceState) -> Comparison:
    """Return the comparison with the fact that was asked for."""
    state, type_, evidence = operation.state, operation.resource_type, case.evidence
    physical_id = state.physical_id or ""
    match ask.fact:
        case "health":
            context = operation.context(operation.resource.action, 0.0)
            healthy = operation.calls.run(type_.is_healthy_after_failure, context, physical_id)
            return case._replace(evidence=evidence._replace(healthy=healthy))
        case "observation":
            observation = _refresh(operation, before, case.desired.properties or {}, _marked(operation))
            recorded = case.recorded._replace(properties=before.properties)
            return case._replace(recorded=recorded, evidence=evidence._replace(observation=observation))
        case "feasibility":
            must_replace = operation.calls.run(
                type_.must_replace, operation.context("UPDATE", 0.0), physical_id, state.properties
            )
            return case._replace(evidence=evidence._replace(feasible=not must_replace))
    raise AssertionError(ask)


def with_known_drift(
    operation: ResourceOperation, case: Comparison, decision: Decision, before: ResourceState
) -> Comparison:
    """Return the comparison with an observation, if the definition changes properties that others have
    changed before: the object may be as desired already.
    """
    if not isinstance(decision, Update | Replace | Forbidden) or not operation.resource_type.calls_out:
        return case
    desired = case.desired.properties
    if desired is None or case.evidence.observation is not None or case.recorded.status != "COMPLETE":
        return case
    changed = changed_properties(operation.resource_type, before.properties, desired)
    if not changed or before.physical_id is None:
        return case
    names = changed & drifted_properties(operation.services.stored_context.db, operation.resource.id)
    if not names:
        return case
    observation = _refresh(operation, before, desired, names)
    recorded = case.recorded._replace(properties=before.properties)
    return case._replace(recorded=recorded, evidence=case.evidence._replace(observation=observation))


def _marked(operation: ResourceOperation) -> frozenset[str] | None:
    """Return the properties that a repair has to correct; None: those that can be updated."""
    mark = operation.resource.mark
    return None if mark is None else mark.properties or None


def _refresh(
    operation: ResourceOperation, before: ResourceState, after: JsonMapping, only: frozenset[str] | None
) -> Observation:
    """Observe the resource, so that changes made by others count as differences: of `only` some properties,
    or of those that can be updated. The object of a failed create is searched by its token.
    """
    type_ = operation.resource_type
    if before.physical_id is None:
        if not find_object(operation, operation.context("CREATE", 0.0)):
            return Observation(exists=False)
        before.physical_id = operation.state.physical_id
    context = replace(operation.context("CHECK", 0.0), properties=before.properties)
    observation = operation.observe(context, before.physical_id)
    if observation.exists and not observation.error:
        if observation.ready:
            operation.record(observation)
        recorded = before.properties
        before.properties = with_drift(
            type_, before.properties, after, observation, only, type_.chosen(context)
        )
        before.corrected = before.properties != recorded
    return observation
