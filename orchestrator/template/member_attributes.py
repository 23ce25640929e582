"""Attribute values of a group's members, with paths applied to each member.

`get_attr` applies a path into a group's attribute to each member: ``[group, networks, private]`` is a list of
the members' values. A group's attribute is stored as one of two marks, which are removed wherever the value
is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.json_types import JsonMapping, JsonObject

EACH: Final = "::each"  # a value per member, as a list or by name
MEMBER: Final = "::member"  # a member: its reference id, and its attributes for longer paths


def mark_each(values: Sequence[Any] | JsonMapping) -> JsonObject:
    """Return the mark for a value per member."""
    return {EACH: values}


def mark_member(reference: object, attributes: JsonMapping) -> JsonObject:
    """Return the mark for a member."""
    return {MEMBER: [reference, attributes]}


def attribute_at(value: Any, path: Sequence[Any]) -> Any:
    """Return the value at `path`; for several members, a path that does not exist in a member is null.

    Raises:
        LookupError, TypeError, ValueError: the path does not exist.
    """
    for place, key in enumerate(path):
        if is_mark(value):
            return _through(value, path[place:])
        if not isinstance(value, (Mapping, Sequence)):
            raise TypeError("not a map or list")
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise TypeError("not a key")
        value = value[int(key)] if isinstance(value, Sequence) else value[key]
    return unmarked(value)


def unmarked(value: Any) -> Any:
    """Return the value of a mark, or an unmarked value unchanged."""
    if not is_mark(value):
        return value
    if MEMBER in value:
        return value[MEMBER][0]
    inner = value[EACH]
    if isinstance(inner, Mapping):
        return {name: _unmarked_member(item) for name, item in inner.items()}
    return [_unmarked_member(item) for item in inner]


def _unmarked_member(item: Any) -> Any:
    """Return the value of a member, which may be all its attributes: those of a nested group are marks."""
    if item.__class__ is dict and not is_mark(item):
        return {name: unmarked(value) for name, value in item.items()}
    return unmarked(item)


def _through(mark: JsonMapping, path: Sequence[object]) -> Any:
    if MEMBER in mark:
        return attribute_at(mark[MEMBER][1], path)
    inner = mark[EACH]
    if isinstance(inner, Mapping):
        return {name: _reached(item, path) for name, item in inner.items()}
    return [_reached(item, path) for item in inner]


def _reached(value: object, path: Sequence[object]) -> Any:
    try:
        return attribute_at(value, path)
    except (LookupError, TypeError, ValueError):
        return None


def is_mark(value: object) -> bool:
    """Whether a value has several members, or is a member."""
    return value.__class__ is dict and len(value) == 1 and (EACH in value or MEMBER in value)
