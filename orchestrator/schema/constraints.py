"""The six constraints of parameters and properties (docs/internals/hot-language.md §4.3).

A constraint is data: it checks a value that is already converted to its type, and can be converted back into
its template item. Messages are Heat's, byte-identical; a `description` replaces them.

Types are those of parameters (string, number, boolean, comma_delimited_list, json) and of properties (string,
integer, number, boolean, list, map, any).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.schema.custom import custom_check
from orchestrator.schema.safe_regex import PatternsTooExpensive, matcher
from orchestrator.schema.type_names import type_name

Number = int | float

JSON_INTEGERS: Final = range(-(2**63), 2**64)  # the integers that every JSON implementation represents
NUMERIC: Final = frozenset({"number", "integer"})
SIZED: Final = frozenset({"string", "list", "map", "comma_delimited_list", "json"})
LISTED: Final = frozenset({"string", "number", "integer", "boolean", "list", "comma_delimited_list"})
TEXT: Final = frozenset({"string"})
BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("t", "true", "on", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "off", "n", "no", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Length:
    """The number of characters, items or keys: `min` and `max` inclusive, None for no bound."""

    min: int | None = None
    max: int | None = None
    description: str = ""
    types: ClassVar[frozenset[str]] = SIZED

    def check(self, value: Any, type: str) -> str | None:  # noqa: ARG002 - all constraints have the same signature
        """Return the fault in `value`, None if it is valid."""
        try:
            size = len(value)
        except TypeError:  # a JSON value may be a number, and a template may lack quotes
            return f"expected a string, a list or a map, got {type_name(value)}"
        if _within(size, self.min, self.max):
            return None
        return self.description or f"length ({size}) is out of range ({_limits(self.min, self.max)})"

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("length", _bounds(self.min, self.max), self.description)


@dataclass(frozen=True, slots=True)
class Range:
    """A number between `min` and `max` inclusive, None for no bound."""

    min: Number | None = None
    max: Number | None = None
    description: str = ""
    types: ClassVar[frozenset[str]] = NUMERIC

    def check(self, value: object, type: str) -> str | None:  # noqa: ARG002
        """Return the fault in `value`, None if it is valid."""
        if _within(value, self.min, self.max):
            return None
        return self.description or f"{value} is out of range ({_limits(self.min, self.max)})"

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("range", _bounds(self.min, self.max), self.description)


@dataclass(frozen=True, slots=True)
class Modulo:
    """A number that leaves `offset` when divided by `step`."""

    step: Number
    offset: Number
    description: str = ""
    types: ClassVar[frozenset[str]] = NUMERIC

    def check(self, value: Any, type: str) -> str | None:  # noqa: ARG002
        """Return the fault in `value`, None if it is valid."""
        if value % self.step == self.offset:
            return None
        return self.description or f"{value} is not a multiple of {self.step} with an offset of {self.offset}"

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("modulo", {"step": self.step, "offset": self.offset}, self.description)


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """An element of `values`; for a list, every item."""

    values: tuple[Any, ...]
    description: str = ""
    types: ClassVar[frozenset[str]] = LISTED

    def check(self, value: object, type: str) -> str | None:
        """Return the fault in `value`, None if it is valid."""
        if type == "string" and value in self.values:
            return None
        try:
            if isinstance(value, (list, tuple)):
                is_allowed = all(item in self.values for item in value)
            else:
                allowed = [_as(type, item) for item in self.values]
                is_allowed = _as(type, value) in allowed
        except ValueError as error:
            return str(error)
        if is_allowed:
            return None
        return self.description or f"{json.dumps(value)} is not an allowed value {json.dumps(self.values)}"

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("allowed_values", list(self.values), self.description)


@dataclass(frozen=True, slots=True)
class AllowedPattern:
    """A text that the regular expression `pattern` matches as a whole."""

    pattern: str
    description: str = ""
    types: ClassVar[frozenset[str]] = TEXT

    def check(self, value: object, type: str) -> str | None:  # noqa: ARG002
        """Return the fault in `value`, None if it is valid."""
        if not isinstance(value, str):
            return f"expected a string, got {type_name(value)}"
        try:
            if matcher(self.pattern).matches(value):
                return None
        except PatternsTooExpensive as error:
            return str(error)
        return self.description or f'"{value}" does not match pattern "{self.pattern}"'

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("allowed_pattern", self.pattern, self.description)


@dataclass(frozen=True, slots=True)
class Custom:
    """A check registered as `name` (`custom.py`)."""

    name: str
    description: str = ""
    types: ClassVar[frozenset[str]] = LISTED

    def check(self, value: object, type: str) -> str | None:  # noqa: ARG002
        """Return the fault in `value`, None if it is valid."""
        fault = custom_check(self.name, value)
        return None if fault is None else self.description or fault

    def to_hot(self) -> JsonObject:
        """Return the item as a template writes it."""
        return _item("custom_constraint", self.name, self.description)


Constraint = Length | Range | Modulo | AllowedValues | AllowedPattern | Custom

# The names of constraints in Heat's messages, where they differ from the class name.
_NAMES: Final[Mapping[type[Constraint], str]] = {Custom: "CustomConstraint"}


def constraint_from_hot(item: Any, *, modulo: bool = True) -> Constraint:
    """Read an item of a parameter's `constraints`; `misplaced` checks whether it suits the parameter's type.

    Without `modulo` that key is accepted and ignored, as in the older versions.

    Raises:
        ValueError: the item is malformed; the message is Heat's.
    """
    _only(item, {*_READERS, "description"}, "parameter constraints")
    name = next((key for key in _READERS if key in item and (modulo or key != "modulo")), None)
    if name is None:
        raise ValueError("No constraint expressed")
    description = item.get("description")
    return _READERS[name](item[name], "" if description is None else str(description))


def misplaced(constraint: Constraint, type: str) -> str | None:
    """Return Heat's message if a constraint does not apply to values of `type`, None if it does."""
    if type in constraint.types:
        return None
    name = _NAMES.get(constraint.__class__, constraint.__class__.__name__)
    return f"{name} constraint invalid for {type}"


def _length(body: Any, description: str) -> Length:
    _only(body, {"min", "max"}, "length constraint")
    if body.get("min") is None and body.get("max") is None:
        raise ValueError("A length constraint must have a min value and/or a max value specified.")
    low, high = (_number(body.get(key), "min/max length must be integral") for key in ("min", "max"))
    if isinstance(low, float) or isinstance(high, float):
        raise ValueError("min/max length must be integral")
    return Length(low, high, description)


def _range(body: Any, description: str) -> Range:
    _only(body, {"min", "max"}, "range constraint")
    if body.get("min") is None and body.get("max") is None:
        raise ValueError("A range constraint must have a min value and/or a max value specified.")
    low, high = (_number(body.get(key), "min/max must be numeric") for key in ("min", "max"))
    return Range(low, high, description)


def _modulo(body: Any, description: str) -> Modulo:
    _only(body, {"step", "offset"}, "modulo constraint")
    step, offset = (_number(body.get(key), "step/offset must be integer") for key in ("step", "offset"))
    if step is None or offset is None:
        raise ValueError("A modulo constraint must have a step value and an offset value specified.")
    if step != int(step) or offset != int(offset):
        raise ValueError("step/offset must be integer")
    if step == 0:
        raise ValueError("step cannot be 0.")
    if abs(offset) >= abs(step):
        raise ValueError("offset must be smaller (by absolute value) than step.")
    if step * offset < 0:
        raise ValueError("step and offset must be both positive or both negative.")
    return Modulo(step, offset, description)


def _allowed_values(body: object, description: str) -> AllowedValues:
    if not isinstance(body, (list, tuple)):
        raise ValueError("AllowedValues must be a list")
    return AllowedValues(tuple(body), description)


def _allowed_pattern(body: object, description: str) -> AllowedPattern:
    if not isinstance(body, str):
        raise ValueError("AllowedPattern must be a string")
    matcher(body)
    return AllowedPattern(body, description)


def _custom(body: object, description: str) -> Custom:
    if isinstance(body, (dict, list)):
        raise ValueError("custom_constraint must be the name of a constraint")
    return Custom(str(body), description)


_READERS: Final[Mapping[str, Callable[[Any, str], Constraint]]] = {
    "modulo": _modulo,  # precedence if an item contains several
    "range": _range,
    "length": _length,
    "allowed_values": _allowed_values,
    "allowed_pattern": _allowed_pattern,
    "custom_constraint": _custom,
}


def _only(body: object, allowed: set[str], label: str) -> None:
    if not isinstance(body, Mapping):
        raise ValueError(f"Invalid {label}, expected a mapping")
    for key in body:
        if key not in allowed:
            raise ValueError(f"Invalid key '{key}' for {label}")


def _number(value: object, otherwise: str) -> Number | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                raise ValueError(otherwise) from None
    if not isinstance(value, (int, float)) or value - value != 0:  # inf and nan are no bounds
        raise ValueError(otherwise)
    return value


def _within(number: Any, low: Number | None, high: Number | None) -> bool:
    return (low is None or number >= low) and (high is None or number <= high)


def _limits(low: Number | None, high: Number | None) -> str:
    """Return the bounds as Heat writes them, without the bound that is not set."""
    return ", ".join(f"{name}: {bound}" for name, bound in _bounds(low, high).items())


def _bounds(low: Number | None, high: Number | None) -> dict[str, Number]:
    return {key: bound for key, bound in (("min", low), ("max", high)) if bound is not None}


def _item(key: str, body: object, description: str) -> JsonObject:
    return {key: body, "description": description} if description else {key: body}


def _as(type: str, value: Any) -> Any:
    """Return a value, or an allowed value, in the form for comparison.

    Raises:
        ValueError: not a value of that type; the message is Heat's.
    """
    try:
        match type:
            case "string":
                return str(value)
            case "integer":
                return int(value)
            case "number" if isinstance(value, str):
                try:
                    return int(value)
                except ValueError:
                    return float(value)
            case "boolean" if not isinstance(value, bool):
                return BOOLEANS[str(value).strip().lower()]
            case _:
                return value
    except (ValueError, TypeError, OverflowError, LookupError):
        raise ValueError(f'Value "{value}" is invalid for data type "{type}".') from None


def whole(number: int) -> int:
    """Return a whole number.

    Raises:
        ValueError: 64 bits have no room for it.
    """
    if number not in JSON_INTEGERS:
        raise ValueError(f"{number} does not fit in 64 bits")
    return number
