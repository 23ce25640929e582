"""Functions on lists and maps (docs/internals/hot-language.md §5.3): `map_merge`, `map_replace`,
`list_concat`, `list_concat_unique`, `filter`, `contains`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from orchestrator.json_types import JsonObject
from orchestrator.template.functions.registry import References
from orchestrator.template.functions.resolved_argument import shown, whole_function
from orchestrator.template.yaml_scalars import key_text

MAX_COMPARISONS: Final = 20_000_000  # pairs of items that cannot be hashed; some seconds

MERGE_FORM: Final = (
    'Incorrect arguments to "map_merge" should be: "map_merge" : [ { "key1": "val1" }, { "key2": "val2" } ]'
)
REPLACE_EXAMPLE: Final = (
    '"map_replace" : [ { "key1": "val1" }, {"keys": {"key1": "key2"}, "values": {"val1": "val2"}}]'
)
REPLACE_FORM: Final = f'Incorrect arguments to "map_replace" should be: {REPLACE_EXAMPLE}'
REPLACE_NOT_MAPS: Final = (
    f'Incorrect arguments: to "map_replace", arguments must be a list of maps. Example:  {REPLACE_EXAMPLE}'
)
FILTER_NOT_A_LIST: Final = 'Argument to "filter" must be a list'
CONTAINS_FORM: Final = (
    'Incorrect arguments to "contains" should be: "contains" : [ "value1", [ "value1", "value2"]]'
)
CONTAINS_COUNT: Final = 'Arguments to "contains" must be of the form: [value1, [value1, value2]]'


@whole_function("map_merge", since="2016-04-08")
def map_merge(maps: object) -> JsonObject:
    """``{map_merge: [{a: 1}, {a: 2, b: 3}]}`` gives ``{a: 2, b: 3}``; null merges nothing."""
    if not isinstance(maps, (list, str)):
        raise TypeError(MERGE_FORM)
    merged: JsonObject = {}
    for item in maps:
        if item is None:
            continue
        if not isinstance(item, Mapping):
            raise TypeError(
                f"Incorrect arguments: Items to merge must be maps. {shown(repr(item))} is type {type(item)} "
                "instead of a dict"
            )
        merged.update(item)
    return merged


@whole_function("map_replace", since="2016-10-14")
def map_replace(args: object) -> dict[Any, Any]:
    """``{map_replace: [{a: x}, {keys: {a: b}, values: {x: y}}]}`` gives ``{b: y}``."""
    if not isinstance(args, list):
        raise TypeError(REPLACE_FORM)
    if not all(item is None or isinstance(item, Mapping) for item in args[:2]):
        raise TypeError(REPLACE_NOT_MAPS)
    if len(args) != 2:
        raise TypeError(REPLACE_FORM)
    source, replacements = args[0] or {}, args[1] or {}
    if not replacements.keys() <= {"keys", "values"}:
        raise ValueError(REPLACE_FORM)
    keys, values = ({} if (item := replacements.get(name)) is None else item for name in ("keys", "values"))
    if not isinstance(keys, Mapping) or not isinstance(values, Mapping):
        raise TypeError(REPLACE_NOT_MAPS)
    made: dict[Any, Any] = {}
    for key, value in source.items():
        name = key if keys.get(key) is None else keys[key]
        name = key_text(name) if is_hashable(name) else name
        if name != key and name in source:
            raise ValueError(f"key replacement {name} collides with a key in the input map")
        if name in made:
            raise ValueError(f"key replacement {name} collides with a key in the output map")
        made[name] = values.get(value, value) if is_hashable(value) else value
    return made


def is_hashable(value: object) -> bool:
    """Whether a resolved value can be a key: it is neither a map nor a list."""
    return not isinstance(value, (dict, list))


def _lists(name: str, args: object) -> list[list[Any]]:
    if not isinstance(args, list):
        raise TypeError(
            f'Incorrect arguments to "{name}" should be: "{name}" : '
            "[ [ <value 1>, <value 2> ], [ <value 3>, <value 4> ] ]"
        )
    lists = []
    for item in args:
        if item is not None and not isinstance(item, list):
            raise TypeError(
                f"Incorrect arguments: Items to concat must be lists. {shown(json.dumps(args))} "
                f"contains an item that is not a list: {shown(json.dumps(item))}"
            )
        lists.append(item or [])
    return lists


@whole_function("list_concat", since="2017-09-01")
def list_concat(args: object) -> list[Any]:
    """``{list_concat: [[a], [b, a]]}`` gives ``[a, b, a]``; null adds nothing."""
    return [item for items in _lists("list_concat", args) for item in items]


@whole_function("list_concat_unique", since="2017-09-01")
def list_concat_unique(args: object) -> list[Any]:
    """``{list_concat_unique: [[a], [b, a]]}`` gives ``[a, b]``: the first of equal items."""
    distinct = EqualitySet(())
    unique = []
    for items in _lists("list_concat_unique", args):
        for item in items:
            if item not in distinct:
                distinct.add(item)
                unique.append(item)
    return unique


class EqualitySet:
    """A collection for equality look-ups: by hash for hashable items, by comparison for the rest."""

    def __init__(self, items: Iterable[Any]) -> None:
        """Start with some."""
        self._hashed: set[Any] = set()
        self._unhashable: list[Any] = []
        self._compared = 0
        for item in items:
            self.add(item)

    def add(self, item: object) -> None:
        """Add an item."""
        if is_hashable(item):
            self._hashed.add(item)
        else:
            self._unhashable.append(item)

    def __contains__(self, item: object) -> bool:
        """Return whether the collection contains `item`.

        Raises:
            ValueError: too many comparisons.
        """
        if is_hashable(item):
            return item in self._hashed
        self._compared += len(self._unhashable)
        if self._compared > MAX_COMPARISONS:
            raise ValueError(f"list comparison exceeds {MAX_COMPARISONS} elements")
        return item in self._unhashable


def _check_filter(args: object, references: References) -> None:  # noqa: ARG001
    if not isinstance(args, list):
        raise TypeError(FILTER_NOT_A_LIST)
    if len(args) != 2:
        raise ValueError(
            '"filter" expected 2 arguments of the form [values, sequence] '
            f"but got {len(args)} arguments instead"
        )


@whole_function("filter", since="2017-02-24", check=_check_filter)
def filter_(args: Any) -> Any:
    """``{filter: [[a], [a, b, a]]}`` gives ``[b]``; without values nothing is removed."""
    values, items = args
    if not items:
        return items
    if not isinstance(items, list):
        raise TypeError('"filter" only works with lists')
    if not values:
        return items
    if not isinstance(values, list):
        raise TypeError('"filter" filters a list of values')
    unwanted = EqualitySet(values)
    return [item for item in items if item not in unwanted]


def _check_contains(args: object, references: References) -> None:  # noqa: ARG001
    if not isinstance(args, list) or not args:
        raise ValueError(CONTAINS_FORM)
    if len(args) != 2:
        raise ValueError(CONTAINS_COUNT)


@whole_function("contains", since="2017-09-01", check=_check_contains)
def contains(args: Any) -> bool:
    """``{contains: [a, [a, b]]}``: whether a list has an item, or a text another text inside it."""
    value, items = args
    if not isinstance(items, (list, str)):
        raise TypeError('Second argument to "contains" should be a sequence.')
    return value in items
