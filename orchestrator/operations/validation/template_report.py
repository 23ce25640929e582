"""`POST /validate`: the faults of a template, or a description of it (docs/internals/rest-api.md §10.1)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.errors import InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.operations.request_body import read_request
from orchestrator.operations.size_budget import charge, size_budget
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.operations.validation.hypothetical_child import (
    NEVER_CREATED_ID,
    HypotheticalChild,
    hypothetical_child_of,
)
from orchestrator.operations.validation.request import validate_request
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.template_type import TemplateType
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.parameters import MASK, ParameterSchema, ParameterValues
from orchestrator.template.resource_registry_entries import TEMPLATE_ENDINGS
from orchestrator.template.template import Template

MAX_DESCRIBED_TEMPLATES: Final = 1_000  # templates described in a response
TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}


@size_budget("the description of the template")
def validate(
    context: OperationContext,
    body: Body,
    *,
    overlook: bool = False,
    show_nested: bool = False,
    with_warnings: bool = False,
) -> JsonObject:
    """Return a template's parameters and environment as clients print them; values need not be given.

    `overlook` accepts known but unavailable types; `show_nested` adds the parameters of nested templates,
    `with_warnings` adds warnings, and the errors for which a create with these values would be refused.

    Raises:
        InvalidTemplate: with every fault.
    """
    request = read_request(body.read(), PausingFetcher(context.settings), named=False)
    vetted = validate_request(
        context, request, stack_uuid="None", strict=False, overlook=overlook, lookups=with_warnings
    )
    template, environment = vetted.template, vetted.environment
    schemas, defaults = template.parameters, environment.parameter_defaults
    result = _described(template.description, schemas, environment.parameters, defaults)
    result["Environment"] = _shown(environment, vetted.values.hidden | vetted.kinds.hidden, template)
    if template.parameter_groups:
        result["ParameterGroups"] = list(template.parameter_groups)
    if show_nested:
        whole = HypotheticalChild(request.stack_name, NEVER_CREATED_ID, template, vetted.values, vetted.kinds)
        nested = NestedTemplateReport(context, vetted.files).of(whole)
        if nested:
            result["NestedParameters"] = nested
    if with_warnings:
        refused = [replace(fault, severity="error") for fault in vetted.warnings if fault.refused]
        result["errors"] = shown_faults(refused)
        result["warnings"] = shown_faults([fault for fault in vetted.warnings if not fault.refused])
    return result


class NestedTemplateReport:
    """Describes nested templates at all levels, up to a maximum number."""

    def __init__(self, context: OperationContext, files: Mapping[str, str]) -> None:
        """`files`: of the request."""
        self.context, self.files = context, files
        self.remaining = MAX_DESCRIBED_TEMPLATES

    def of(self, whole: HypotheticalChild, *, most: int | None = None) -> JsonObject:
        """Return the parameters of nested stacks by resource; if given, only of the first `most`."""
        report, kinds = {}, whole.kinds
        for definition in islice(whole.template.resources.values(), most):
            resource_type = kinds.of(definition)
            if (
                not isinstance(resource_type, NestedType)
                or self.remaining <= 0
                or kinds.depth >= kinds.max_depth
            ):
                continue
            self.remaining -= 1
            if isinstance(resource_type, TemplateType):
                view = HypotheticalStack(whole.template, whole.values, self.files)
                report[definition.name] = self._template(
                    definition, resource_type, view, kinds.child(resource_type)
                )
            elif described := self._sample_values(definition, resource_type, whole):
                report[definition.name] = described
        return report

    def _template(
        self,
        definition: ResourceDefinition,
        resource_type: TemplateType,
        view: HypotheticalStack,
        kinds: TypeResolver,
    ) -> JsonObject:
        """Describe a resource whose type is a template."""
        nested, schemas = resource_type.template, resource_type.template.parameters
        resolved = Resolved(definition.body, view, resource_type, definition.name, definition.name)
        supplied = {
            name: value
            for name, value in resolved.values.items()
            if name in schemas and value is not None and knows_all(value)
        }
        secret = resolved.secrets
        defaults = resource_type.environment.parameter_defaults
        try:
            values = ParameterValues.build(schemas, supplied, defaults, {}, missing_ok=True)
        except InvalidTemplate:  # a value that does not fit the parameter; reported as a warning
            values = ParameterValues.build(schemas, {}, defaults, {}, missing_ok=True)
        values = ParameterValues(dict(values), values.hidden | secret, values.missing)
        template = nested.define(values)[0]
        inside = HypotheticalChild(definition.name, NEVER_CREATED_ID, template, values, kinds)
        return self._described(definition, inside, supplied, secret)

    def _sample_values(
        self, definition: ResourceDefinition, resource_type: NestedType, whole: HypotheticalChild
    ) -> JsonObject:
        """Describe a resource whose properties determine its template; return {} if they are unknown.

        A group is shown with a single member, as in Heat, whatever its size.
        """
        inside = hypothetical_child_of(self.context, definition, whole, resource_type)
        if inside is None:
            return {}
        charge(inside.template.description)
        if isinstance(resource_type, GroupType):
            below = self.of(inside, most=1)
            described = {"Type": definition.type, **_described(inside.template.description, {}, {}, {})}
            return {**described, "NestedParameters": below} if below else described
        hidden = inside.values.hidden
        supplied = {
            name: value for name, value in inside.kinds.environment.parameters.items() if value is not None
        }
        return self._described(definition, inside, supplied, hidden)

    def _described(
        self,
        definition: ResourceDefinition,
        inside: HypotheticalChild,
        supplied: JsonMapping,
        secret: Collection[str],
    ) -> JsonObject:
        template, defaults = inside.template, inside.kinds.environment.parameter_defaults
        described = _described(template.description, template.parameters, supplied, defaults, secret)
        if template.parameter_groups:
            described["ParameterGroups"] = list(template.parameter_groups)
        charge(described)
        if below := self.of(inside):
            described["NestedParameters"] = below
        return {"Type": definition.type, **described}


def _shown(environment: Environment, hidden: Collection[str], template: Template) -> JsonObject:
    """Return the user's environment with masked values of hidden parameters.

    A type that is the name of a template is listed in the registry under its own name as soon as it is used.
    """
    shown = environment.to_json()
    del shown["encrypted_param_names"]  # concerns storage only
    used = {
        resource.type for resource in template.resources.values() if resource.type.endswith(TEMPLATE_ENDINGS)
    }
    shown["resource_registry"] = {**{name: name for name in sorted(used)}, **shown["resource_registry"]}
    masked = {*hidden, *environment.encrypted_param_names}
    for section in ("parameters", "parameter_defaults"):
        values = shown[section]
        shown[section] = {name: MASK if name in masked else value for name, value in values.items()}
    return shown


def _described(
    description: str,
    schemas: Mapping[str, ParameterSchema],
    supplied: JsonMapping,
    defaults: JsonMapping,
    secret: Collection[str] = (),
) -> JsonObject:
    parameters = {
        name: _parameter(schema, supplied.get(name), defaults.get(name), name in secret)
        for name, schema in schemas.items()
    }
    return {"Description": description, "Parameters": parameters}


def _parameter(schema: ParameterSchema, value: object, default: object, secret: bool) -> JsonObject:
    """Return a parameter with its `value` and the environment's `default`, each None if not given.

    A `secret` value is masked; so are value and default of a hidden parameter.
    """
    shown: JsonObject = {
        "Type": TYPES[schema.type],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label,
    }
    if default is None:
        default = schema.default  # not masked: it is readable in the template
    elif schema.hidden:
        default = MASK
    if default is not None:
        shown["Default"] = default
    if value is not None:
        shown["Value"] = MASK if schema.hidden or secret else value
    if schema.tags:
        shown["Tags"] = list(schema.tags)
    for constraint in schema.constraints:
        match constraint:
            case Length(min=low, max=high):
                shown |= _bounds("MinLength", low, "MaxLength", high)
            case Range(min=low, max=high):
                shown |= _bounds("MinValue", low, "MaxValue", high)
            case Modulo(step=step, offset=offset):
                shown |= {"Step": step, "Offset": offset}
            case AllowedValues(values=allowed):
                shown["AllowedValues"] = list(allowed)
            case AllowedPattern(pattern=pattern):
                shown["AllowedPattern"] = pattern
            case Custom(name=name):
                shown["CustomConstraint"] = name
        if constraint.description:
            shown["ConstraintDescription"] = constraint.description
    return shown


def _bounds(low_key: str, low: float | None, high_key: str, high: float | None) -> JsonObject:
    return {key: bound for key, bound in ((low_key, low), (high_key, high)) if bound is not None}
