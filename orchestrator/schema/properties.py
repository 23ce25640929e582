"""The properties of a resource: their declaration, and the conversion of given values.

`convert` is called in every check: it makes a single pass over the declared properties, and builds paths and
messages only for faults. Rules and messages are those of docs/internals/hot-language.md §8.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.errors import did_you_mean
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.schema.constraints import Constraint, Custom, misplaced, whole
from orchestrator.schema.type_names import type_name

TYPES: Final = ("string", "integer", "number", "boolean", "map", "list", "any")

_NEVER: Final = object()  # is no value


@dataclass(frozen=True, slots=True)
class Property:
    """An input of a type.

    `type` is one of string, integer, number, boolean, map, list, any. `schema` describes the members: a
    mapping of names to properties for a map, a Property for the items of a list.

    A change is applied in place if the property is `update_allowed`, rejected if it is `immutable`, and
    replaces the resource otherwise. A property that is not `implemented` is recognized but rejected; a
    `hidden` property is accepted but not shown; `deprecated` names the replacement in a warning. A `lax`
    property belongs to a template resource: its map may be a JSON text or a list, and its list a text such as
    ``a,b``. The value of a property that is `theirs` may be changed by others at any time: it is never drift.

    `default_value` is the converted default.

    Raises:
        ValueError: contradictory declarations, or an invalid default.
    """

    type: str
    doc: str = ""
    default: Any = None
    required: bool = False
    update_allowed: bool = False
    immutable: bool = False
    hidden: bool = False
    constraints: tuple[Constraint, ...] = ()
    schema: Mapping[str, Property] | Property | None = None
    implemented: bool = True
    deprecated: str = ""
    lax: bool = False
    theirs: bool = False
    default_value: Any = field(init=False, repr=False, compare=False, default=None)
    # The class of values that need no conversion, the common case; None if every value needs it.
    exact: object = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        """Check the declaration, and precompute the fields that `convert` uses."""
        _declared(self)
        if not self.constraints and self.schema is None and self.implemented:
            object.__setattr__(self, "exact", _EXACT.get(self.type))
        if self.default is not None:
            object.__setattr__(self, "default_value", _default(self))


@dataclass(frozen=True, slots=True)
class PropertyFault:
    """A fault in given properties.

    `path` is the path in Heat's message (a missing or unknown name is the fault of its section), `where` the
    nearest path in the template; both continue the `path` given to `convert`.
    """

    code: str  # "unknown-property", "missing-property", "unimplemented-property", "wrong-value", …
    message: str
    path: str
    where: str
    hint: str = ""


def convert(
    schema: Mapping[str, Property],
    values: JsonMapping,
    *,
    path: str = "",
    unknown: object = _NEVER,
    any_properties: bool = False,
) -> tuple[JsonObject, list[PropertyFault]]:
    """Return the converted `values`, and all faults in them.

    An absent or null property gets its default; a null property without a default gets the zero of its type
    (``""``, 0, false, ``{}``, ``[]``); an absent property without a default stays absent. With
    `any_properties`, undeclared names are returned unchanged.

    In validation, `unknown` marks a value that does not exist yet, at any depth of `values`. It violates no
    rule, and its container is omitted from the result; the rest of the container is checked nevertheless.
    """
    result: JsonObject = {}
    faults: list[PropertyFault] = []
    if any_properties:
        result.update((name, value) for name, value in values.items() if name not in schema)
    else:
        faults.extend(_unknown(name, schema, path) for name in values if name not in schema)
    for name, prop in schema.items():
        if name in values:
            value = values[name]
            if value.__class__ is prop.exact:
                result[name] = value
                continue
            if not prop.implemented:
                message = f"Property {name} not implemented yet"
                place = join(path, name)
                faults.append(PropertyFault("unimplemented-property", message, path, place))
            try:
                value = _value(prop, value, (path, name), faults, unknown)
            except ValueError as error:
                place = join(path, name)
                faults.append(PropertyFault("wrong-value", str(error), place, place))
            else:
                if value is not unknown:
                    result[name] = value
        elif prop.default is not None:
            result[name] = prop.default_value
        elif prop.required:
            message = f"Property {name} not assigned"
            faults.append(PropertyFault("missing-property", message, path, path))
    return result, faults


def deprecations(
    schema: Mapping[str, Property], values: JsonMapping, *, path: str = ""
) -> list[PropertyFault]:
    """Return a warning for each deprecated property in use, including members."""
    warnings: list[PropertyFault] = []
    for name, prop in schema.items():
        value = values.get(name)
        if value is None:
            continue
        place = join(path, name)
        if prop.deprecated:
            message = f"Property {name} is deprecated: {prop.deprecated}"
            warnings.append(PropertyFault("deprecated-property", message, place, place))
        items: Sequence[tuple[Any, str]] = [(value, place)]
        members = prop.schema
        if isinstance(members, Property):
            entries = value if isinstance(value, list | tuple) else ()
            items, members = (
                [(item, join(place, index)) for index, item in enumerate(entries)],
                members.schema,
            )
        if isinstance(members, Mapping):
            for item, where in items:
                if isinstance(item, Mapping):
                    warnings += deprecations(members, item, path=where)
    return warnings


def immutable_changes(schema: Mapping[str, Property], before: JsonMapping, after: JsonMapping) -> list[str]:
    """Return the names of the immutable properties that differ, sorted; coming and going are changes too."""
    return sorted(
        name for name, prop in schema.items() if prop.immutable and before.get(name) != after.get(name)
    )


def immutable_message(names: Sequence[str], resource: str, type_name: str) -> str:
    """Return Heat's message for a change found by `immutable_changes`."""
    return f"Update to properties {', '.join(names)} of {resource} ({type_name}) is not supported."


def join(path: str, key: str | int) -> str:
    """Return the dotted path of a member: ``a.b`` of a map, ``a[0]`` of a list."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _unknown(name: str, schema: Mapping[str, Property], path: str) -> PropertyFault:
    hint = did_you_mean(name, (candidate for candidate, prop in schema.items() if not prop.hidden))
    return PropertyFault("unknown-property", f"Unknown Property {name}", path, join(path, name), hint)


def _value(
    prop: Property, value: object, place: tuple[str, str | int], faults: list[PropertyFault], unknown: object
) -> Any:
    """Return the converted value, or `unknown` if it is or contains an unknown value.

    `place` is the container's path and the key in it. Faults of members are added to `faults`.

    Raises:
        ValueError: the value itself is invalid.
    """
    value = _converted(prop, value, place, faults, unknown)
    if value is not unknown:
        for constraint in prop.constraints:
            fault = constraint.check(value, prop.type)
            if fault is not None:
                raise ValueError(fault)
    return value


def _converted(
    prop: Property, value: object, place: tuple[str, str | int], faults: list[PropertyFault], unknown: object
) -> Any:
    """Return the converted value, before checking its own constraints."""
    type_ = prop.type
    if value is unknown:
        return unknown
    if value is None:
        value = prop.default_value if prop.default is not None else _ZEROS[type_]
    elif type_ == "string" and value.__class__ is str:
        pass  # by far the most
    elif prop.lax and type_ in _LAX:
        if _holds(value, unknown):
            return unknown
        value = _LAX[type_](value)
    elif type_ != "any":
        value = _CONVERTERS[type_](value)
    if prop.schema is not None:
        return _members(prop.schema, value, join(*place), faults, unknown)
    return unknown if _holds(value, unknown) else value


def _members(
    schema: Mapping[str, Property] | Property,
    value: Any,
    path: str,
    faults: list[PropertyFault],
    unknown: object,
) -> Any:
    if not isinstance(schema, Property):
        members, member_faults = convert(schema, value, path=path, unknown=unknown)
        faults.extend(member_faults)
        return unknown if _holds(value, unknown) else members
    items = []
    for index, item in enumerate(value):
        try:
            items.append(_value(schema, item, (path, index), faults, unknown))
        except ValueError as error:
            place = join(path, index)
            faults.append(PropertyFault("wrong-value", str(error), place, place))
    return unknown if any(item is unknown for item in items) else items


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _holds(value: object, unknown: object) -> bool:
    """Whether `unknown` is `value` or is anywhere inside it."""
    if unknown is _NEVER or value.__class__ in _SCALARS:
        return False
    if isinstance(value, Mapping):
        return any(_holds(member, unknown) for member in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(item, unknown) for item in value)
    return value is unknown


def _string(value: object) -> str:
    if isinstance(value, str | int):  # a bool is an int, and is text as Python writes it
        return str(value)
    raise ValueError(f"Value must be a string; got {value!r}")


def _integer(value: Any) -> int:
    try:
        number = int(value)
    except ValueError:
        raise ValueError(f"Value '{value}' is not an integer") from None
    except TypeError:
        raise ValueError(f"expected an integer, got {type_name(value)}") from None
    except OverflowError:
        raise ValueError(f"Value '{value}' is not an integer") from None
    return whole(number)


def _number(value: Any) -> int | float:
    if isinstance(value, int | float):
        number: int | float = value
    else:
        try:
            number = int(value)
        except TypeError:
            raise ValueError(f"expected a number, got {type_name(value)}") from None
        except ValueError:
            number = _float(value)
    if isinstance(number, float) and not math.isfinite(number):  # not representable as JSON
        raise ValueError(f"Value '{value}' is not a number")
    return whole(number) if isinstance(number, int) else number


def _float(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"Value '{value}' is not a number") from None


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = value.lower() if isinstance(value, str) else value
    if text == "true" and isinstance(text, str):
        return True
    if text == "false" and isinstance(text, str):
        return False
    raise ValueError(f'"{text}" is not a valid boolean')


def _map(value: object) -> JsonMapping:
    if isinstance(value, Mapping):
        return value
    raise ValueError(f'"{value}" is not a map')


def _list(value: object) -> Sequence[Any]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return value
    raise ValueError(f'"{value!r}" is not a list')


def _lax_map(value: object) -> JsonMapping | str:
    if isinstance(value, str):
        return value  # the parameter it is meant for reads it
    return json.dumps(value) if isinstance(value, list | tuple) else _map(value)


def _lax_list(value: object) -> Sequence[Any]:
    if isinstance(value, str):
        return value.split(",") if value else []
    return _list(value)


def _declared(prop: Property) -> None:
    if prop.type not in TYPES:
        raise ValueError(f"Invalid type ({prop.type})")
    if prop.immutable and prop.update_allowed:
        raise ValueError("Options UpdateAllowed and Immutable cannot both be True")
    if prop.schema is not None and prop.type != ("list" if isinstance(prop.schema, Property) else "map"):
        raise ValueError(f"{prop.type} has no members of that kind")
    for constraint in prop.constraints:
        misplacement = misplaced(constraint, prop.type)
        if misplacement is not None:
            raise ValueError(misplacement)


def _default(prop: Property) -> Any:
    """Return the converted default; its members have their own defaults."""
    faults: list[PropertyFault] = []
    try:
        value = _converted(prop, prop.default, ("", "default"), faults, _NEVER)
    except ValueError as error:
        raise ValueError(f"default: {error}") from None
    # Custom constraints may depend on existing objects.
    checkable = [constraint for constraint in prop.constraints if not isinstance(constraint, Custom)]
    broken = [problem for constraint in checkable if (problem := constraint.check(value, prop.type))]
    for problem in [*(fault.message for fault in faults), *broken]:
        raise ValueError(f"default: {problem}")
    return value


_EXACT: Final[Mapping[str, type]] = {"string": str, "integer": int, "boolean": bool}
_CONVERTERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "map": _map,
    "list": _list,
}
_LAX: Final[Mapping[str, Callable[[Any], Any]]] = {"map": _lax_map, "list": _lax_list}
_ZEROS: Final[JsonMapping] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "map": {},
    "list": [],
    "any": None,
}
