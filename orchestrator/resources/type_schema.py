"""Descriptions of resource types for the API: list, schemas, generated templates (docs/internals/rest-api.md
§10.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.errors import InvalidRequest, InvalidValue, NotFound, NotSupported
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.template_type import STACK_ID
from orchestrator.schema.constraints import AllowedPattern, AllowedValues, Constraint, Length, Range
from orchestrator.schema.safe_regex import PatternsTooExpensive, matcher, matching_budget

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

    `name` is a regular expression matched from the start; a malformed expression matches nothing, and so does
    one that cannot be matched in bounded time.

    Raises:
        InvalidValue: no such support status, or a pattern that needs too many steps.
    """
    if support_status is not None and support_status not in SUPPORT_STATUSES:
        raise InvalidValue(f"Invalid support status and should be one of {SUPPORT_STATUSES}")
    try:
        pattern = matcher(name or "")
        with matching_budget():
            named = {type_name for type_name in types if pattern.starts(type_name)}
    except PatternsTooExpensive as error:
        raise InvalidValue(f"name: {error}") from error
    except ValueError:
        return []
    kinds = [
        (type_name, resource_type)
        for type_name, resource_type in types.items()
        if not resource_type.hidden
        and type_name in named
        and support_status in (None, resource_type.support_status)
        and version in (None, resource_type.support_version)
    ]
    if not with_description:
        return [type_name for type_name, _ in kinds]
    return [
        {"resource_type": type_name, "description": _doc(resource_type)} for type_name, resource_type in kinds
    ]


def type_schema(
    types: Mapping[str, ResourceType], name: str, *, with_description: bool = False
) -> JsonObject:
    """Return the properties and attributes of a type as JSON.

    Raises:
        NotFound: no such type.
        NotSupported: the type is hidden.
    """
    resource_type = _visible(types, name)
    schema: JsonObject = {
        "resource_type": name,
        "properties": {key: property_schema(prop) for key, prop in _shown(resource_type).items()},
        "attributes": {
            key: _attribute_schema(attribute) for key, attribute in _attributes(resource_type).items()
        },
        "support_status": {
            "status": resource_type.support_status,
            "message": resource_type.support_message,
            "version": resource_type.support_version,
            "previous_status": None,
        },
    }
    if with_description:
        schema["description"] = _doc(resource_type)
    return schema


def property_schema(prop: Property) -> JsonObject:
    """Return a property as JSON; the key ``*`` describes the items of a list."""
    schema: JsonObject = {
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


def type_template(types: Mapping[str, ResourceType], name: str, template_type: str = "cfn") -> JsonObject:
    """Return a template with a single resource of the type: properties as parameters, attributes as outputs.

    Raises:
        NotFound: no such type.
        NotSupported: the type is hidden.
        InvalidRequest: `template_type` is neither hot nor cfn.
    """
    if template_type not in ("hot", "cfn"):
        raise InvalidRequest(f'Template type is not supported: {template_type}, should be "hot" or "cfn"')
    resource_type = _visible(types, name)
    logical, shown = name.rpartition("::")[2], _shown(resource_type)
    make = _hot if template_type == "hot" else _cfn
    return make(resource_type, name, logical, shown)


def _hot(resource_type: ResourceType, name: str, logical: str, shown: Mapping[str, Property]) -> JsonObject:
    return {
        "heat_template_version": "2016-10-14",
        "description": f"Initial template of {logical}",
        "parameters": {key: _hot_parameter(prop) for key, prop in shown.items()},
        "resources": {
            logical: {"type": name, "properties": {key: {"get_param": key} for key in shown}},
        },
        "outputs": {
            key: {"description": attribute.doc, "value": {"get_attr": [logical, key]}}
            for key, attribute in _attributes(resource_type).items()
        }
        | {STACK_ID: {"value": {"get_resource": logical}}},
    }


def _cfn(resource_type: ResourceType, name: str, logical: str, shown: Mapping[str, Property]) -> JsonObject:
    def fed(key: str, prop: Property) -> JsonObject:
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
            for key, attribute in _attributes(resource_type).items()
        }
        | {STACK_ID: {"Value": {"Ref": logical}}},
    }


def _hot_parameter(prop: Property) -> JsonObject:
    parameter: JsonObject = {"type": _HOT_TYPES[prop.type]}
    if prop.doc:
        parameter["description"] = prop.doc
    if prop.default is not None:
        parameter["default"] = prop.default
    if prop.constraints:
        parameter["constraints"] = [constraint.to_hot() for constraint in prop.constraints]
    return parameter


def _cfn_parameter(prop: Property) -> JsonObject:
    parameter: JsonObject = {"Type": _CFN_TYPES[_HOT_TYPES[prop.type]]}
    if prop.doc:
        parameter["Description"] = prop.doc
    if prop.default is not None:
        parameter["Default"] = prop.default
    if prop.type == "boolean":
        parameter["AllowedValues"] = ["True", "true", "False", "false"]
    for constraint in prop.constraints:
        parameter |= _cfn_constraint(constraint)
    return parameter


def _cfn_constraint(constraint: Constraint) -> JsonObject:
    result: JsonObject
    match constraint:
        case Length(low, high):
            result = {"MinLength": low, "MaxLength": high}
        case Range(low, high):
            result = {"MinValue": low, "MaxValue": high}
        case AllowedValues(values):
            result = {"AllowedValues": list(values)}
        case AllowedPattern(pattern):
            result = {"AllowedPattern": pattern}
        case _:  # has no CloudFormation equivalent
            result = {}
    return {key: value for key, value in result.items() if value is not None}


def _shown(resource_type: ResourceType) -> dict[str, Property]:
    """Return the properties that a template can set."""
    return {
        key: prop for key, prop in resource_type.properties.items() if prop.implemented and not prop.hidden
    }


def _attributes(resource_type: ResourceType) -> dict[str, Attribute]:
    return {**resource_type.attributes, "show": _SHOW}


def _attribute_schema(attribute: Attribute) -> JsonObject:
    schema: JsonObject = {"description": attribute.doc}
    if attribute.type != "any":
        schema["type"] = attribute.type
    return schema


def _visible(types: Mapping[str, ResourceType], name: str) -> ResourceType:
    resource_type = types.get(name)
    if resource_type is None:
        raise NotFound("Resource Type", name)
    if resource_type.hidden:
        raise NotSupported(name)
    return resource_type


def _doc(resource_type: ResourceType) -> str:
    return resource_type.doc or next(iter((resource_type.__doc__ or "").strip().splitlines()), "")
