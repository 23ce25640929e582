"""Differences between two revisions of a stack. Pure: takes two `Side` values, returns a report for people.

A side is a revision in sections (resources, parameters, files, …), each a map of entries by name. Resources
are compared after their conditions are evaluated, definitions path by path; values are compared as written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.diagnostics import Path, path_text
from orchestrator.template.parameters import MASK

MAX_ENTRY_CHANGES: Final = 100  # changes reported for an entry
MAX_CHANGES: Final = 10_000  # changes reported in total
MAX_VALUE_CHARACTERS: Final = 1_000  # characters reported of a value

VALUED: Final = frozenset({"parameters", "parameter_defaults"})  # sections with values of parameters
TYPED: Final = frozenset({"parameters", "resources"})  # sections whose entries have a type to report
SECRET: Final = frozenset({"", "value", "default", "Default"})  # keys that hold values of parameters

Sections = Mapping[str, JsonMapping]


class _Absent:
    """No value, as opposed to the value null."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Side:
    """A revision: section -> name -> the entry to compare, and the hidden parameters."""

    sections: Sections
    hidden: Collection[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A difference; a value is ABSENT on the side that lacks it."""

    path: str
    before: Any
    after: Any


@dataclass(slots=True)
class Section:
    """The differences in a section. Added and removed entries by name, with their types."""

    added: JsonObject = field(default_factory=dict)
    removed: JsonObject = field(default_factory=dict)
    changed: dict[str, list[Change]] = field(default_factory=dict)
    omitted: dict[str, int] = field(default_factory=dict)  # name -> number of its changes that are left out

    def __bool__(self) -> bool:
        """Whether there are differences."""
        return bool(self.added or self.removed or self.changed)


def compare(before: Side, after: Side) -> dict[str, Section]:
    """Return the differences by section, in the order of `after`; equal sections are left out."""
    hidden = {*before.hidden, *after.hidden}
    sections, budget = {}, MAX_CHANGES
    for name in dict.fromkeys((*after.sections, *before.sections)):
        section = _section(before.sections.get(name, {}), after.sections.get(name, {}))
        if name in VALUED:
            _hide(section, hidden, declared=name == "parameters")
        if section:
            budget = _shorten(section, budget)
            sections[name] = section
    return sections


def _section(before: JsonMapping, after: JsonMapping) -> Section:
    section = Section()
    for name, value in after.items():
        if name not in before:
            section.added[name] = value
        elif not _same(value, before[name]):
            section.changed[name] = list(_changes((), before[name], value))
    section.removed = {name: value for name, value in before.items() if name not in after}
    return section


def _changes(path: Path, before: object, after: object) -> Iterator[Change]:
    """Yield the smallest paths that differ; calls of different functions differ as a whole."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        if not (len(before) == len(after) == 1) or before.keys() == after.keys():
            for key in dict.fromkeys((*after, *before)):
                old, new = before.get(key, ABSENT), after.get(key, ABSENT)
                if not _same(old, new):
                    yield from _changes((*path, key), old, new)
            return
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if not _same(old, new):
                yield from _changes((*path, index), old, new)
        return
    yield Change(path_text(path), before, after)


def _same(value: object, other: object) -> bool:
    """Whether two values are written alike; Python considers 1, 1.0 and true equal."""
    if value is other:
        return True
    if value is ABSENT or other is ABSENT:
        return False
    order = orjson.OPT_SORT_KEYS
    return value == other and orjson.dumps(value, option=order) == orjson.dumps(other, option=order)


def _hide(section: Section, hidden: Collection[str], *, declared: bool) -> None:
    """Mask the differing values and defaults of hidden parameters; `declared` if the entry is a parameter's
    declaration.
    """
    for name in hidden & section.changed.keys():
        merged: dict[str, Change] = {}
        for change in section.changed[name]:
            at = change.path.partition(".")[0].partition("[")[0] if declared else ""
            secret = at in SECRET
            merged[at if secret else change.path] = (
                Change(at, _masked(change.before), _masked(change.after)) if secret else change
            )
        section.changed[name] = list(merged.values())


def _masked(value: object) -> Any:
    return value if value is ABSENT else MASK


def _shorten(section: Section, budget: int) -> int:
    """Drop excess changes, and count them; return how many more may be reported."""
    for name, changes in section.changed.items():
        shown = min(len(changes), MAX_ENTRY_CHANGES, budget)
        if shown < len(changes):
            section.omitted[name] = len(changes) - shown
            section.changed[name] = changes[:shown]
        budget -= shown
    return budget


def as_json(differences: Mapping[str, Section]) -> JsonObject:
    """Return differences in the API's format."""
    return {name: _section_as_json(section, typed=name in TYPED) for name, section in differences.items()}


def _section_as_json(section: Section, *, typed: bool) -> JsonObject:
    return {
        "added": [_entry(name, value, typed) for name, value in section.added.items()],
        "removed": [_entry(name, value, typed) for name, value in section.removed.items()],
        "changed": [
            {
                "name": name,
                "changes": [_change(change) for change in changes],
                "more": section.omitted.get(name, 0),
            }
            for name, changes in section.changed.items()
        ],
    }


def _entry(name: str, value: object, typed: bool) -> JsonObject:
    if not typed or not isinstance(value, Mapping):
        return {"name": name}
    return {"name": name, "type": value.get("type") or value.get("Type")}


def _change(change: Change) -> JsonObject:
    values = {"before": change.before, "after": change.after}
    return {"path": change.path} | {
        key: _short(value) for key, value in values.items() if value is not ABSENT
    }


def _short(value: object) -> Any:
    """Return a value, or its beginning if its text is long."""
    if isinstance(value, bool | int | float | None):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if len(text) <= MAX_VALUE_CHARACTERS else text[:MAX_VALUE_CHARACTERS] + "…"
