"""Preview a create, without side effects (docs/internals/rest-api.md §5.5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import OrchestratorError
from orchestrator.json_types import JsonMapping
from orchestrator.operations import resource_quota
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.outputs import Output
from orchestrator.operations.request_body import StackRequest
from orchestrator.operations.size_budget import charge, size_budget
from orchestrator.operations.stacks.new_stack import read_new_stack
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
from orchestrator.template.functions.time_budget import time_budget
from orchestrator.template.parameters import MASK, ParameterValues

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


def preview_create(context: OperationContext, body: Body) -> CreatePreview:
    """Return the stack that a create or an adopt would make.

    Raises:
        InvalidRequest, InvalidTemplate, LimitExceeded, NotSupported, StackExists: it would be refused.
    """
    request = read_new_stack(context, body).request
    validated = validate_request(context, request, stack_uuid="None")
    resource_quota.require_room(context, len(validated.template.resources))
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
    secret = reached(resource_type.translation, resolved.secrets)
    written = body.get("properties") or {}
    translated = {rule.path[0] for rule in resource_type.translation}

    def shown(name: str) -> Any:
        if name not in secret:
            return properties.get(name)
        in_place = not resolved.sealed and name in written and name not in translated
        return _without_secrets(view, written[name], properties.get(name)) if in_place else MASK

    path = f"{place}.{keywords.metadata}"
    metadata = _without_secrets(view, body.get("metadata"), _value(view, body.get("metadata"), path))
    visible = {name: shown(name) for name in {**resource_type.properties, **properties}}
    charge(visible, metadata)
    inside = (
        _child(context, definition, whole, resource_type, properties, resolved.secrets)
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
    )


def _child(
    context: OperationContext,
    definition: ResourceDefinition,
    whole: HypotheticalChild,
    resource_type: NestedType,
    properties: JsonMapping,
    secret: Collection[str],
) -> HypotheticalChild | None:
    """Return the child stack that a resource would have. Values of resources that do not exist are null in
    it if they are only parts of properties, such as of the definition of members.
    """
    known = hypothetical_child_of(context, definition, whole, resource_type)
    written = definition.body.get("properties") or {}
    if known is not None or any(properties.get(name) is None for name in written):
        return known
    parent = ParentResource(definition.name, properties, (), secret, UNKNOWN)
    name = f"{whole.name}-{definition.name}"
    return build_hypothetical_child(context, whole.kinds, resource_type, parent, name=name)


def _value(view: StackDefinition, written: object, path: str) -> Any:
    """Return a value, null if it depends on a resource that does not exist."""
    try:
        return view.resolve(written, path)
    except OrchestratorError:
        return None


def _without_secrets(view: StackDefinition, written: object, value: object) -> Any:
    """Return a value with its secret parts masked; `written` is its text in the template."""
    view.used_secret = False
    _value(view, written, "")
    if not view.used_secret:
        return value
    if isinstance(written, Mapping) and isinstance(value, Mapping) and not _is_function(view, written):
        return {
            name: _without_secrets(view, written[name], item) if name in written else item
            for name, item in value.items()
        }
    if isinstance(written, list) and isinstance(value, list) and len(written) == len(value):
        return [_without_secrets(view, item, part) for item, part in zip(written, value, strict=True)]
    return MASK


def _is_function(view: StackDefinition, written: JsonMapping) -> bool:
    return len(written) == 1 and next(iter(written)) in format_named(view.version).callable
