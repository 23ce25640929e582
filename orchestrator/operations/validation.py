"""`POST /validate`: what is wrong with a template, or what it asks for (spec/rest-api.md §10.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from orchestrator.engine.kinds import Kinds
from orchestrator.engine.validate import Unmade
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import fetcher
from orchestrator.operations.request import read_request
from orchestrator.operations.vetting import vet
from orchestrator.resources.template_type import TemplateType
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.functions.whole import knows_all
from orchestrator.template.parameters import MASK, ParameterSchema, ParameterValues
from orchestrator.template.template import Template

MOST_NESTED: Final = 1_000  # templates described in one answer
SHOWN: Final = ("code", "message", "path", "line", "column", "file", "excerpt", "hint", "severity")
TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}


def validate(
    context: OperationContext, body: Body, *, overlook: bool = False, show_nested: bool = False
) -> dict[str, Any]:
    """Return a template's parameters and environment as clients print them; values need not be given.

    `overlook` lets types pass that are known and not available; `show_nested` adds the parameters of the
    templates that resources stand for.

    Raises:
        InvalidTemplate: with every fault found.
    """
    request = read_request(body.read(), fetcher(context.settings), named=False)
    vetted = vet(context, request, stack_uuid="None", strict=False, overlook=overlook)
    template, environment = vetted.template, vetted.environment
    schemas, defaults = template.parameters, environment.parameter_defaults
    result = _described(template.description, schemas, environment.parameters, defaults)
    result["Environment"] = _shown(environment, vetted.values.hidden | vetted.kinds.hidden)
    if template.parameter_groups:
        result["ParameterGroups"] = list(template.parameter_groups)
    if show_nested:
        nested = Nesting(vetted.files).of(template, vetted.values, vetted.kinds)
        if nested:
            result["NestedParameters"] = nested
    if vetted.warnings:
        result["warnings"] = [
            {key: getattr(warning, key) for key in SHOWN if getattr(warning, key) is not None}
            for warning in vetted.warnings
        ]
    return result


class Nesting:
    """Describes the templates nested in one, down to the last, as far as their number is bounded."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """`files` came with the request."""
        self.files = files
        self.left = MOST_NESTED

    def of(self, template: Template, values: ParameterValues, kinds: Kinds) -> dict[str, Any]:
        """Return the parameters of what is nested in a template, by resource."""
        found = {}
        for definition in template.resources.values():
            kind = kinds.of(definition)
            if isinstance(kind, TemplateType) and self.left > 0 and kinds.depth < kinds.max_depth:
                self.left -= 1
                view = Unmade(template, values, self.files)
                found[definition.name] = self._one(definition, kind, view, kinds.child(kind))
        return found

    def _one(
        self, definition: ResourceDefinition, kind: TemplateType, view: Unmade, kinds: Kinds
    ) -> dict[str, Any]:
        nested, schemas = kind.template, kind.template.parameters
        known = [one for one in self._known(definition, view) if one[0] in schemas]
        supplied = {name: value for name, value, _ in known}
        secret = {name for name, _, secret in known if secret}
        defaults = kind.environment.parameter_defaults
        try:
            values = ParameterValues.build(schemas, supplied, defaults, {}, missing_ok=True)
        except InvalidTemplate:  # a value that the parameter cannot have, which is warned of
            values = ParameterValues.build(schemas, {}, defaults, {}, missing_ok=True)
        values = ParameterValues(dict(values), values.hidden | secret, values.missing)
        template = nested.define(values)[0]
        described = _described(template.description, schemas, supplied, defaults, secret)
        if template.parameter_groups:
            described["ParameterGroups"] = list(template.parameter_groups)
        if below := self.of(template, values, kinds):
            described["NestedParameters"] = below
        return {"Type": definition.type, **described}

    def _known(self, definition: ResourceDefinition, view: Unmade) -> Iterator[tuple[str, Any, bool]]:
        """Yield the properties whose value is known, and whether anything secret went into it."""
        for name, written in (definition.body.get("properties") or {}).items():
            view.touched_secret = False
            try:
                value = view.resolve(written)
            except InvalidTemplate:
                continue
            if value is not None and knows_all(value):
                yield name, value, view.touched_secret


def _shown(environment: Environment, hidden: Collection[str]) -> dict[str, Any]:
    """Return the environment, the values of hidden parameters masked."""
    shown = environment.to_json()
    masked = {*hidden, *environment.encrypted_param_names}
    for section in ("parameters", "parameter_defaults"):
        values = shown[section]
        shown[section] = {name: MASK if name in masked else value for name, value in values.items()}
    return shown


def _described(
    description: str,
    schemas: Mapping[str, ParameterSchema],
    supplied: Mapping[str, Any],
    defaults: Mapping[str, Any],
    secret: Collection[str] = (),
) -> dict[str, Any]:
    parameters = {
        name: _parameter(schema, supplied.get(name), defaults.get(name), name in secret)
        for name, schema in schemas.items()
    }
    return {"Description": description, "Parameters": parameters}


def _parameter(schema: ParameterSchema, value: Any, default: Any, secret: bool) -> dict[str, Any]:
    """Return a parameter with the `value` given for it and the environment's `default`, None without; a
    `secret` value is masked, and both are where the parameter is hidden.
    """
    shown: dict[str, Any] = {
        "Type": TYPES[schema.type],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label,
    }
    if default is None:
        default = schema.default  # which anybody can read in the template
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


def _bounds(low_key: str, low: float | None, high_key: str, high: float | None) -> dict[str, Any]:
    return {key: bound for key, bound in ((low_key, low), (high_key, high)) if bound is not None}
