"""Parameter declarations in CloudFormation formats (docs/internals/hot-language.md §15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.parameters import ParameterSchema

TYPES: Final[Mapping[str, str]] = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
KEYS: Final = (
    "Type",
    "Default",
    "NoEcho",
    "AllowedValues",
    "AllowedPattern",
    "MaxLength",
    "MinLength",
    "MaxValue",
    "MinValue",
    "Description",
    "ConstraintDescription",
    "Label",
)
# HOT's name of each constraint, and its CloudFormation keys.
_CONSTRAINTS: Final[tuple[tuple[str, str | Mapping[str, str]], ...]] = (
    ("range", {"min": "MinValue", "max": "MaxValue"}),
    ("length", {"min": "MinLength", "max": "MaxLength"}),
    ("allowed_values", "AllowedValues"),
    ("allowed_pattern", "AllowedPattern"),
)


def read_parameter(name: str, body: object, rules: str) -> ParameterSchema:
    """Read a declaration, like `ParameterSchema.from_hot` for HOT.

    Raises:
        InvalidTemplate: lists every fault; paths are relative to the declaration.
    """
    if not isinstance(body, dict):
        message = f"Invalid parameter ({name}), expected a mapping"
        raise InvalidTemplate([Diagnostic("parameter-not-a-map", message, heat_type="InvalidSchemaError")])
    faults = [
        Diagnostic(
            "unknown-key",
            f"Invalid key '{key}' for parameter ({name})",
            str(key),
            heat_type="InvalidSchemaError",
        )
        for key in body
        if key not in KEYS
    ]
    type_name = body.get("Type")
    if type_name is not None and TYPES.get(type_name if isinstance(type_name, str) else "") is None:
        message = f"Invalid type ({type_name})"
        faults.append(Diagnostic("unknown-type", message, "Type", heat_type="InvalidSchemaError"))
    if faults:
        raise InvalidTemplate(faults)
    hot: JsonObject = {
        "type": TYPES[type_name] if type_name is not None else None,
        "default": body.get("Default"),
        "description": body.get("Description"),
        "label": body.get("Label"),
        "hidden": str(body.get("NoEcho", False)).lower() == "true",
        "constraints": _constraints(body),
    }
    try:
        return ParameterSchema.from_hot(name, {k: v for k, v in hot.items() if v is not None}, rules)
    except InvalidTemplate as error:
        raise InvalidTemplate([_renamed(fault, body) for fault in error.diagnostics]) from None


def _constraints(body: JsonMapping) -> list[JsonObject]:
    constraints: list[JsonObject] = []
    for name, keys in _CONSTRAINTS:
        if isinstance(keys, str):
            value = body.get(keys)
        else:
            value = {bound: body[key] for bound, key in keys.items() if body.get(key) is not None} or None
        if value is not None:
            constraints.append({name: value, "description": body.get("ConstraintDescription")})
    return constraints


def _renamed(fault: Diagnostic, body: JsonMapping) -> Diagnostic:
    """Return a fault with its path in the CloudFormation declaration."""
    key, _, index = fault.path.partition("[")
    if key == "constraints":
        name = next(iter(_constraints(body)[int(index[:-1])]))
        keys = dict(_CONSTRAINTS)[name]
        key = keys if isinstance(keys, str) else next(k for k in keys.values() if body.get(k) is not None)
    elif key:
        key = next((k for k in KEYS if k.lower() == key), "NoEcho" if key == "hidden" else "")
    return replace(fault, path=key)
