"""Translation rules, applied to given properties before conversion (docs/internals/hot-language.md §8).

They keep old property names valid and replace names by ids. A type declares them in
`ResourceType.translation`. They are applied in that order to the evaluated properties, so that an update
compares translated values.

A path is a property followed by nested members, such as ``("networks", "port")``; for a list on the way, the
rule applies to each item. Null counts as absent. Unknown values (`unknown`) are left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import NotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.schema.properties import PropertyFault, join

Path = tuple[str, ...]
Finder = Callable[[str, str, Any], Any]  # (finder, entity, value) -> the value to use

_NEVER: Final = object()  # is no value


@dataclass(frozen=True, slots=True)
class Add:
    """Add to the list at `path`: `items`, and the value at `source`, converted with `make` if specified."""

    path: Path
    items: tuple[Any, ...] = ()
    source: Path = ()
    make: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Move the value at `source`, an old name of the property, or a literal `value`, to `path`.

    With `sibling` the old name is in the same map as the new name, in each map at `path`. Using both names is
    a fault.
    """

    path: Path
    source: Path = ()
    sibling: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the value at `path`."""

    path: Path


@dataclass(frozen=True, slots=True)
class Resolve:
    """Replace each value at `path`, a name, by an id: `finder` and `entity` select the look-up, or the value
    of the property `entity_of` in place of `entity`.

    Skipped without a provider: a template is validated with names.
    """

    path: Path
    finder: str
    entity: str = ""
    entity_of: str = ""


Rule = Add | Replace | Delete | Resolve


def reached(rules: Sequence[Rule], names: Collection[str]) -> set[str]:
    """Return the properties that may contain values of the properties `names` after a translation."""
    result = set(names)
    for rule in rules:
        if isinstance(rule, Add | Replace) and rule.source and rule.source[0] in result:
            result.add(rule.path[0])
        if isinstance(rule, Replace) and len(rule.path) == 1 and rule.sibling in result:
            result.add(rule.path[0])
    return result


def translate(
    rules: Sequence[Rule],
    values: JsonMapping,
    *,
    path: str = "",
    resolve: Finder | None = None,
    unknown: object = _NEVER,
) -> tuple[JsonMapping, list[PropertyFault]]:
    """Return `values` translated by `rules`, and all faults; `values` itself is not modified.

    Without `resolve` names are not replaced.
    """
    if not rules:
        return values, []
    work = _Translation(_copy(values), path, resolve, unknown)
    for rule in rules:
        match rule:
            case Add():
                work.add(rule)
            case Replace():
                work.replace(rule)
            case Delete():
                for holder, name, _ in work.places(rule.path):
                    holder.pop(name, None)
            case Resolve():
                work.resolve(rule)
    return work.values, work.faults


class _Translation:
    """Values on their way; they are this object's own, down to the last list."""

    def __init__(self, values: Any, path: str, finder: Finder | None, unknown: object) -> None:
        self.values, self.path, self.finder, self.unknown = values, path, finder, unknown
        self.faults: list[PropertyFault] = []

    def places(self, path: Path) -> Iterator[tuple[JsonObject, str, str]]:
        """Yield the maps that may contain the last name of `path`, each with that name and its path."""
        holders: list[tuple[JsonObject, str]] = [(self.values, self.path)]
        for name in path[:-1]:
            holders = [
                inner for holder, place in holders for inner in _maps(holder.get(name), join(place, name))
            ]
        for holder, place in holders:
            yield holder, path[-1], join(place, path[-1])

    def first(self, path: Path) -> Any:
        """Return the value at `path`, None if it does not exist."""
        return next(
            (value for holder, name, _ in self.places(path) if (value := holder.get(name)) is not None), None
        )

    def add(self, rule: Add) -> None:
        added = list(rule.items)
        source = self.first(rule.source) if rule.source else None
        if source is self.unknown:
            added = [source]
        elif source is not None:
            sources = source if isinstance(source, list) else [source]
            added += [rule.make(item) for item in sources] if rule.make else sources
        if not added:
            return
        for holder, name, _ in self.places(rule.path):
            current = holder.get(name)
            if current is None:
                holder[name] = _copy(added)
            elif isinstance(current, list):
                current += _copy(added)

    def replace(self, rule: Replace) -> None:
        literal = not rule.source and not rule.sibling
        replacement = rule.value if literal else self.first(rule.source) if rule.source else None
        if replacement is None and not rule.sibling:
            return
        taken = False
        for holder, name, place in self.places(rule.path):
            new = holder.get(name)
            old = holder.get(rule.sibling) if rule.sibling else replacement
            if old is None:
                continue
            if new is None or literal:
                holder[name] = _copy(old)
            elif new is not self.unknown and old is not self.unknown:
                self._conflict(rule, place)
                continue
            taken = True
            if rule.sibling:
                del holder[rule.sibling]
        if rule.source and taken:
            for holder, name, _ in self.places(rule.source):
                holder.pop(name, None)

    def resolve(self, rule: Resolve) -> None:
        if self.finder is None:
            return
        for holder, name, place in self.places(rule.path):
            value = holder.get(name)
            if isinstance(value, list):
                holder[name] = [
                    self._resolve(rule, item, join(place, index)) for index, item in enumerate(value)
                ]
            elif value is not None:
                holder[name] = self._resolve(rule, value, place)

    def _resolve(self, rule: Resolve, value: object, place: str) -> Any:
        entity = self.values.get(rule.entity_of) if rule.entity_of else rule.entity
        known = value not in (None, "") and value is not self.unknown and isinstance(entity, str)
        if self.finder is None or not known:
            return value
        try:
            return self.finder(rule.finder, entity, value)
        except (NotFound, ValueError) as error:
            self.faults.append(PropertyFault("wrong-value", str(error), place, place))
            return value

    def _conflict(self, rule: Replace, place: str) -> None:
        old = (*rule.path[:-1], rule.sibling) if rule.sibling else rule.source
        names = f"{'.'.join(rule.path)}, {'.'.join(old)}"
        message = f"Cannot define the following properties at the same time: {names}"
        self.faults.append(PropertyFault("conflicting-properties", message, place, place))


def _maps(value: object, place: str) -> Iterator[tuple[JsonObject, str]]:
    """Yield `value` if it is a map, or the maps in it if it is a list."""
    if isinstance(value, dict):
        yield value, place
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield item, join(place, index)


def _copy(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item) for item in value]
    return value
