"""`POST /validate`: what is wrong with a template, or what it asks for (spec/rest-api.md §10.1)."""

from __future__ import annotations

from typing import Any

from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request import read_request
from orchestrator.operations.vetting import vet
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Custom, Length, Modulo, Range
from orchestrator.template.parameters import ParameterSchema

TYPES = {
    "string": "String",
    "number": "Number",
    "comma_delimited_list": "CommaDelimitedList",
    "json": "Json",
    "boolean": "Boolean",
}


def validate(context: OperationContext, body: Body, *, overlook: bool = False) -> dict[str, Any]:
    """Return a template's parameters and environment as clients print them; values need not be given.

    `overlook` lets types pass that are known and not available.

    Raises:
        InvalidTemplate: with every fault found.
    """
    request = read_request(body.read(), named=False)
    vetted = vet(context, request, stack_uuid="None", strict=False, overlook=overlook)
    template, values = vetted.template, vetted.values
    result: dict[str, Any] = {
        "Description": template.description,
        "Parameters": {
            schema.name: _parameter(schema, values.get(schema.name))
            for schema in template.parameters.values()
        },
        "Environment": vetted.environment.to_json(),
    }
    if template.parameter_groups:
        result["ParameterGroups"] = list(template.parameter_groups)
    if vetted.warnings:
        result["warnings"] = [
            {
                "code": w.code,
                "message": w.message,
                "path": w.path,
                "line": w.line,
                "column": w.column,
                "hint": w.hint,
            }
            for w in vetted.warnings
        ]
    return result


def _parameter(schema: ParameterSchema, value: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "Type": TYPES[schema.type],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label,
    }
    if schema.default is not None:
        shown["Default"] = schema.default
    if value is not None:
        shown["Value"] = "******" if schema.hidden else value
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
