"""Descriptions of resource types for the API: list, schemas, generated templates (docs/internals/rest-api.md
§10.2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.errors import InvalidRequest, InvalidValue, NotFound, NotSupported
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.template_type import STACK_ID
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Constraint, Length, Range

SUPPORT_STATUSES: Final = ("UNKNOWN", "SUPPORTED", "DEPRECATED", "UNSUPPORTED", "HIDDEN")

_SHOW: Final = Attribute("Detailed information about resource.", type="map")

# A property's type as the type of the parameter that feeds it.
_HOT_TYPES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "map": "json",
    "list": "comma_delimited_list",
    "any": "json",
}
_CFN_TYPES: Final = {
    "string": "String",
    "number": "Number",
    "boolean": "Boolean",
    "json": "Json",
    "comma_delimited_list": "CommaDelimitedList",
}


def list_types(
    types: Mapping[str, ResourceType],
    *,
    support_status: str | None = None,
    name: str | None = None,
    version: str | None = None,
    with_description: bool = False,
) -> list[Any]:
    """Return the sorted names, or `{"resource_type", "description"}` of each; hidden types are omitted.

    `name` is a regular expression matched from the start; a malformed expression matches nothing.

    Raises:
        InvalidValue: no such support status.
    """
    if support_status is not None and support_status not in SUPPORT_STATUSES:
        raise InvalidValue(f"Invalid support status and should be one of {SUPPORT_STATUSES}")
    try:
        pattern = re.compile(name or "")
    except re.error:
        return []
    kinds = [
        (known, kind)
        for known, kind in types.items()
        if not kind.hidden
        and pattern.match(known)
        and support_status in (None, kind.support_status)
        and version in (None, kind.support_version)
    ]
    if not with_description:
        return [known for known, _ in kinds]
    return [{"resource_type": known, "description": _doc(kind)} for known, kind in kinds]


def type_schema(
    types: Mapping[str, ResourceType], name: str, *, with_description: bool = False
) -> dict[str, Any]:
    """Return the properties and attributes of a type as JSON.

    Raises:
        NotFound: no such type.
        NotSupported: the type is hidden.
    """
    kind = _visible(types, name)
    schema: dict[str, Any] = {
        "resource_type": name,
        "properties": {key: property_schema(prop) for key, prop in _shown(kind).items()},
        "attributes": {key: _attribute_schema(attribute) for key, attribute in _attributes(kind).items()},
        "support_status": {
            "status": kind.support_status,
            "message": kind.support_message,
            "version": kind.support_version,
            "previous_status": None,
        },
    }
    if with_description:
        schema["description"] = _doc(kind)
    return schema


def property_schema(prop: Property) -> dict[str, Any]:
    """Return a property as JSON; the key ``*`` describes the items of a list."""
    schema: dict[str, Any] = {
        "type": prop.type,
        "required": prop.required,
        "update_allowed": prop.update_allowed,
        "immutable": prop.immutable,
    }
    if prop.doc:
        schema["description"] = prop.doc
    if prop.default is not None:
        schema["default"] = prop.default
    if prop.constraints:
        schema["constraints"] = [constraint.to_hot() for constraint in prop.constraints]
    if isinstance(prop.schema, Property):
        schema["schema"] = {"*": property_schema(prop.schema)}
    elif prop.schema is not None:
        schema["schema"] = {key: property_schema(member) for key, member in prop.schema.items()}
    return schema


def type_template(types: Mapping[str, ResourceType], name: str, template_type: str = "cfn") -> dict[str, Any]:
    """Return a template with a single resource of the type: properties as parameters, attributes as outputs.

    Raises:
        NotFound: no such type.
        NotSupported: the type is hidden.
        InvalidRequest: `template_type` is neither hot nor cfn.
    """
    if template_type not in ("hot", "cfn"):
        raise InvalidRequest(f'Template type is not supported: {template_type}, should be "hot" or "cfn"')
    kind = _visible(types, name)
    logical, shown = name.rpartition("::")[2], _shown(kind)
    make = _hot if template_type == "hot" else _cfn
    return make(kind, name, logical, shown)


def _hot(kind: ResourceType, name: str, logical: str, shown: Mapping[str, Property]) -> dict[str, Any]:
    return {
        "heat_template_version": "2016-10-14",
        "description": f"Initial template of {logical}",
        "parameters": {key: _hot_parameter(prop) for key, prop in shown.items()},
        "resources": {
            logical: {"type": name, "properties": {key: {"get_param": key} for key in shown}},
        },
        "outputs": {
            key: {"description": attribute.doc, "value": {"get_attr": [logical, key]}}
            for key, attribute in _attributes(kind).items()
        }
        | {STACK_ID: {"value": {"get_resource": logical}}},
    }


def _cfn(kind: ResourceType, name: str, logical: str, shown: Mapping[str, Property]) -> dict[str, Any]:
    def fed(key: str, prop: Property) -> dict[str, Any]:
        reference = {"Ref": key}
        return {"Fn::Split": [",", reference]} if prop.type == "list" else reference

    return {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Description": f"Initial template of {logical}",
        "Parameters": {key: _cfn_parameter(prop) for key, prop in shown.items()},
        "Resources": {
            logical: {"Type": name, "Properties": {key: fed(key, prop) for key, prop in shown.items()}},
        },
        "Outputs": {
            key: {"Description": attribute.doc, "Value": {"Fn::GetAtt": [logical, key]}}
            for key, attribute in _attributes(kind).items()
        }
        | {STACK_ID: {"Value": {"Ref": logical}}},
    }


def _hot_parameter(prop: Property) -> dict[str, Any]:
    parameter: dict[str, Any] = {"type": _HOT_TYPES[prop.type]}
    if prop.doc:
        parameter["description"] = prop.doc
    if prop.default is not None:
        parameter["default"] = prop.default
    if prop.constraints:
        parameter["constraints"] = [constraint.to_hot() for constraint in prop.constraints]
    return parameter


def _cfn_parameter(prop: Property) -> dict[str, Any]:
    parameter: dict[str, Any] = {"Type": _CFN_TYPES[_HOT_TYPES[prop.type]]}
    if prop.doc:
        parameter["Description"] = prop.doc
    if prop.default is not None:
        parameter["Default"] = prop.default
    if prop.type == "boolean":
        parameter["AllowedValues"] = ["True", "true", "False", "false"]
    for constraint in prop.constraints:
        parameter |= _cfn_constraint(constraint)
    return parameter


def _cfn_constraint(constraint: Constraint) -> dict[str, Any]:
    found: dict[str, Any]
    match constraint:
        case Length(low, high):
            found = {"MinLength": low, "MaxLength": high}
        case Range(low, high):
            found = {"MinValue": low, "MaxValue": high}
        case AllowedValues(values):
            found = {"AllowedValues": list(values)}
        case AllowedPattern(pattern):
            found = {"AllowedPattern": pattern}
        case _:  # has no CloudFormation equivalent
            found = {}
    return {key: value for key, value in found.items() if value is not None}


def _shown(kind: ResourceType) -> dict[str, Property]:
    """Return the properties that a template can set."""
    return {key: prop for key, prop in kind.properties.items() if prop.implemented and not prop.hidden}


def _attributes(kind: ResourceType) -> dict[str, Attribute]:
    return {**kind.attributes, "show": _SHOW}


def _attribute_schema(attribute: Attribute) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": attribute.doc}
    if attribute.type != "any":
        schema["type"] = attribute.type
    return schema


def _visible(types: Mapping[str, ResourceType], name: str) -> ResourceType:
    kind = types.get(name)
    if kind is None:
        raise NotFound("Resource Type", name)
    if kind.hidden:
        raise NotSupported(name)
    return kind


def _doc(kind: ResourceType) -> str:
    return kind.doc or next(iter((kind.__doc__ or "").strip().splitlines()), "")
