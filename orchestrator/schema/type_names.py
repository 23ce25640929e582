"""The names of types as a template's author knows them."""

from __future__ import annotations

from collections.abc import Mapping


def type_name(value: object) -> str:
    """Return the type of a value in YAML, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case Mapping():
            return "a map"
    return "a list"


def as_written(value: object) -> str:
    """Return a value as a message shows it; a boolean is written as in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
