"""Translation rules, applied to given properties before conversion (docs/internals/hot-language.md §8).

They keep old property names valid and replace names by ids. A type declares them in
`ResourceType.translation`. They are applied in that order to the evaluated properties, so that an update
compares translated values.

A path is a property followed by nested members, such as ``("networks", "port")``; for a list on the way, the
rule applies to each item. Null counts as absent. Unknown values (`unknown`) are left unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from orchestrator.errors import NotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.schema.properties import PropertyFault, join

Path = tuple[str, ...]
Place = tuple[str | int, ...]  # names of properties and members, and indices of items
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
                for holder, _ in work.holders(rule.path):
                    holder.pop(rule.path[-1], None)
            case Resolve():
                work.resolve(rule)
    return work.values, work.faults


class _Translation:
    """Values on their way; they are this object's own, down to the last list."""

    def __init__(self, values: Any, path: str, finder: Finder | None, unknown: object) -> None:
        self.values, self.path, self.finder, self.unknown = values, path, finder, unknown
        self.faults: list[PropertyFault] = []

    def holders(self, path: Path) -> list[tuple[JsonObject, Place]]:
        """Return the maps that may contain the last name of `path`, each with its place in the values."""
        holders: list[tuple[JsonObject, Place]] = [(self.values, ())]
        for name in path[:-1]:
            inner: list[tuple[JsonObject, Place]] = []
            for holder, place in holders:
                value = holder.get(name)
                if isinstance(value, dict):
                    inner.append((value, (*place, name)))
                elif isinstance(value, list):
                    members = enumerate(value)
                    inner += [(item, (*place, name, at)) for at, item in members if isinstance(item, dict)]
            holders = inner
        return holders

    def first(self, path: Path) -> Any:
        """Return the value at `path`, None if it does not exist."""
        values = (holder.get(path[-1]) for holder, _ in self.holders(path))
        return next((value for value in values if value is not None), None)

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
        name = rule.path[-1]
        for holder, _ in self.holders(rule.path):
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
        taken, name = False, rule.path[-1]
        for holder, place in self.holders(rule.path):
            new = holder.get(name)
            old = holder.get(rule.sibling) if rule.sibling else replacement
            if old is None:
                continue
            if new is None or literal:
                holder[name] = _copy(old)
            elif new is not self.unknown and old is not self.unknown:
                self._conflict(rule, (*place, name))
                continue
            taken = True
            if rule.sibling:
                del holder[rule.sibling]
        if rule.source and taken:
            for holder, _ in self.holders(rule.source):
                holder.pop(rule.source[-1], None)

    def resolve(self, rule: Resolve) -> None:
        if self.finder is None or rule.path[0] not in self.values:
            return
        name = rule.path[-1]
        for holder, place in self.holders(rule.path):
            value = holder.get(name)
            if isinstance(value, list):
                holder[name] = [
                    self._resolve(rule, item, (*place, name, at)) for at, item in enumerate(value)
                ]
            elif value is not None:
                holder[name] = self._resolve(rule, value, (*place, name))

    def _resolve(self, rule: Resolve, value: object, place: Place) -> Any:
        entity = self.values.get(rule.entity_of) if rule.entity_of else rule.entity
        known = value not in (None, "") and value is not self.unknown and isinstance(entity, str)
        if self.finder is None or not known:
            return value
        try:
            return self.finder(rule.finder, entity, value)
        except (NotFound, ValueError) as error:
            self._fault("wrong-value", str(error), place)
            return value

    def _conflict(self, rule: Replace, place: Place) -> None:
        old = (*rule.path[:-1], rule.sibling) if rule.sibling else rule.source
        names = f"{'.'.join(rule.path)}, {'.'.join(old)}"
        message = f"Cannot define the following properties at the same time: {names}"
        self._fault("conflicting-properties", message, place)

    def _fault(self, code: str, message: str, place: Place) -> None:
        where = reduce(join, place, self.path)
        self.faults.append(PropertyFault(code, message, where, where))


def _copy(value: object) -> Any:
    if value.__class__ is str:  # by far the most; to ask whether it is a mapping takes longer
        return value
    if isinstance(value, Mapping):
        return {key: _copy(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item) for item in value]
    return value
