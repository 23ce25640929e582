"""Preview a create, without side effects (docs/internals/rest-api.md §5.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.engine.validation.secret_places import secrets_of
from orchestrator.errors import OrchestratorError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.outputs import Output
from orchestrator.operations.quotas.room import RESOURCES
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.size_budget import charge, size_budget
from orchestrator.operations.stacks.new_stack import read_new_stack
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.operations.validation.hypothetical_child import (
    NEVER_CREATED_ID,
    HypotheticalChild,
    ParentResource,
    build_hypothetical_child,
    hypothetical_child_of,
)
from orchestrator.operations.validation.request import ValidatedRequest, validate_request
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.schema.translation import reached
from orchestrator.template.definition import OutputDefinition, ResourceDefinition, StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import UNKNOWN, ResourceProxy
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.parameters import MASK, ParameterValues
from orchestrator.template.secret_values import NO_SECRETS

EXPRESSIONS_SECONDS = 20.0  # time budget for all expressions of a preview


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource that would be created, with values that require no existing resource."""

    name: str
    type: str
    description: str
    required_by: Sequence[str]
    properties: JsonMapping  # null if it depends on a resource that does not exist; masked if secret
    attributes: Sequence[str]  # names
    metadata: Any
    nested: Nested | None = None  # its child stack
    unknown: Sequence[str] = ()  # properties with a value of a resource that does not exist


@dataclass(frozen=True, slots=True)
class Nested:
    """The child stack that a resource would have."""

    name: str
    resources: Sequence[PlannedResource]


@dataclass(frozen=True, slots=True)
class CreatePreview:
    """A stack that would be created."""

    name: str
    description: str
    parameters: Mapping[str, str]
    outputs: Sequence[Output]
    resources: Sequence[PlannedResource]
    disable_rollback: bool
    timeout_mins: int | None
    tags: Sequence[str]
    warnings: Sequence[JsonObject] = ()


def preview_create(context: OperationContext, body: Body) -> CreatePreview:
    """Return the stack that a create or an adopt would make.

    Raises:
        InvalidRequest, InvalidTemplate, LimitExceeded, NotSupported, StackExists: it would be refused.
    """
    request = read_new_stack(context, body).request
    validated = validate_request(context, request, stack_uuid="None")
    context.require_room(RESOURCES, len(validated.template.resources), reserve=False)
    return _shown(context, request, validated)


@size_budget("the preview")
@time_budget(EXPRESSIONS_SECONDS)
def _shown(context: OperationContext, request: StackRequest, validated: ValidatedRequest) -> CreatePreview:
    template = validated.template
    whole = HypotheticalChild(
        request.stack_name, NEVER_CREATED_ID, template, validated.values, validated.kinds
    )
    view = _view(whole)
    return CreatePreview(
        request.stack_name,
        template.description,
        validated.values.public(template.parameters),
        [_output(view, output) for output in template.outputs.values()],
        planned_resources(context, whole),
        request.disable_rollback,
        request.timeout_mins,
        request.tags,
        shown_faults(validated.warnings),
    )


def _output(view: StackDefinition, output: OutputDefinition) -> Output:
    value = _value(view, output.value, f"outputs.{output.name}.value")
    charge(value)
    return Output(output.name, output.description, value)


def planned_resources(context: OperationContext, whole: HypotheticalChild) -> list[PlannedResource]:
    """Return the resources that would be created in a stack, including nested resources."""
    template, view = whole.template, _view(whole)
    required_by: dict[str, list[str]] = {name: [] for name in template.resources}
    for name, definition in template.resources.items():
        for required in definition.requires:
            if required in required_by:  # otherwise an undecided condition may omit it
                required_by[required].append(name)
    return [
        _planned_resource(context, item, whole, view, required_by[item.name])
        for item in template.resources.values()
    ]


def _view(whole: HypotheticalChild) -> StackDefinition:
    """Return the stack as its functions see it before any resource exists: unknown values are null."""
    template, values = whole.template, whole.values
    uncreated = {name: ResourceProxy.uncreated(name) for name in template.resources}
    filled = ParameterValues({**dict.fromkeys(values.missing), **values}, values.hidden)
    return StackDefinition(
        template.version, filled, uncreated, whole.kinds.files.get, mappings=template.mappings
    )


def _planned_resource(
    context: OperationContext,
    definition: ResourceDefinition,
    whole: HypotheticalChild,
    view: StackDefinition,
    required_by: Sequence[str],
) -> PlannedResource:
    body, resource_type = definition.body, whole.kinds.of(definition)
    if not isinstance(resource_type, ResourceType):  # in a nested stack: reported when that is created
        return PlannedResource(definition.name, definition.type, "", required_by, {}, (), {})
    keywords = format_named(view.version).keywords
    place = f"{keywords.resources}.{definition.name}"
    view.used_secret = False
    resolved = Resolved(body, view, resource_type, place, f"{place}.{keywords.properties}")
    properties, _ = resource_type.read_properties(resolved.values)
    secrets = resolved.secret_values(properties) if resolved.secrets else NO_SECRETS
    names = reached(resource_type.translation, resolved.secrets)

    def shown(name: str) -> Any:
        value = properties.get(name)
        if secrets is None and name in names:
            return MASK
        return value if secrets is None else secrets.masked(value)

    path = f"{place}.{keywords.metadata}"
    metadata = _value(view, body.get("metadata"), path)
    unknown = _unknown_properties(whole, definition, resource_type)
    if metadata:
        hidden = secrets_of(view, body.get("metadata"), metadata)
        metadata = MASK if hidden is None else hidden.masked(metadata)
    visible = {name: shown(name) for name in {**resource_type.properties, **properties}}
    charge(visible, metadata)
    inside = (
        _child(context, definition, whole, resource_type, properties, resolved)
        if isinstance(resource_type, NestedType)
        else None
    )
    return PlannedResource(
        definition.name,
        definition.type,
        str(body.get("description") or ""),
        required_by,
        visible,
        sorted(resource_type.attributes),
        metadata or {},
        None if inside is None else Nested(inside.name, planned_resources(context, inside)),
        unknown,
    )


def _unknown_properties(
    whole: HypotheticalChild, definition: ResourceDefinition, resource_type: ResourceType
) -> Sequence[str]:
    """Return the properties that contain a value of a resource that does not exist yet."""
    view = HypotheticalStack(
        whole.template, whole.values, whole.kinds.files, nested=whole.values.parent is not None
    )
    keywords = format_named(view.version).keywords
    place = f"{keywords.resources}.{definition.name}"
    resolved = Resolved(definition.body, view, resource_type, place, f"{place}.{keywords.properties}")
    return sorted(name for name, value in resolved.values.items() if not knows_all(value))


def _child(
    context: OperationContext,
    definition: ResourceDefinition,
    whole: HypotheticalChild,
    resource_type: NestedType,
    properties: JsonMapping,
    resolved: Resolved,
) -> HypotheticalChild | None:
    """Return the child stack that a resource would have. Values of resources that do not exist are null in
    it if they are only parts of properties, such as of the definition of members.
    """
    known = hypothetical_child_of(context, definition, whole, resource_type)
    written = definition.body.get("properties") or {}
    if known is not None or any(properties.get(name) is None for name in written):
        return known
    parent = ParentResource(
        definition.name,
        properties,
        (),
        resolved.secrets,
        resolved.secret_values(properties) if resolved.secrets else NO_SECRETS,
        UNKNOWN,
    )
    name = f"{whole.name}-{definition.name}"
    return build_hypothetical_child(context, whole.kinds, resource_type, parent, name=name)


def _value(view: StackDefinition, written: object, path: str) -> Any:
    """Return a value, null if it depends on a resource that does not exist."""
    try:
        return view.resolve(written, path)
    except OrchestratorError:
        return None
