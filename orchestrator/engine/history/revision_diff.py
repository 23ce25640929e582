"""What differs between two revisions of a stack. Pure: two `Side`s in, what to tell a person out.

A side is a revision in sections (resources, parameters, files, …), each of entries by name. Resources are
compared as the conditions leave them, their snippets path by path; values are told as they are written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from orchestrator.template.diagnostics import Path, path_text
from orchestrator.template.parameters import MASK

MOST_OF_ONE: Final = 100  # changes told of one entry
MOST: Final = 10_000  # changes told altogether
LONGEST: Final = 1_000  # characters told of one value

VALUED: Final = frozenset({"parameters", "parameter_defaults"})  # sections with values of parameters
TYPED: Final = frozenset({"parameters", "resources"})  # sections whose entries have a type worth telling
SECRET: Final = frozenset({"", "value", "default", "Default"})  # where values of parameters are

Sections = Mapping[str, Mapping[str, Any]]


class _Absent:
    """No value at all, which is not the value null."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Side:
    """One revision: section -> name -> what is compared, and which parameters nobody is to see."""

    sections: Sections
    hidden: Collection[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """One place that differs; a value is ABSENT where the place is not there."""

    path: str
    before: Any
    after: Any


@dataclass(slots=True)
class Section:
    """What differs in one section. Added and removed by name, with what they are."""

    added: dict[str, Any] = field(default_factory=dict)
    removed: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, list[Change]] = field(default_factory=dict)
    untold: dict[str, int] = field(default_factory=dict)  # name -> how many changes of it are left out

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def compare(before: Side, after: Side) -> dict[str, Section]:
    """Return what differs, by section, in the order of `after`; sections that are alike are left out."""
    hidden = {*before.hidden, *after.hidden}
    found, left = {}, MOST
    for name in dict.fromkeys((*after.sections, *before.sections)):
        section = _section(before.sections.get(name, {}), after.sections.get(name, {}))
        if name in VALUED:
            _hide(section, hidden, declared=name == "parameters")
        if section:
            left = _shorten(section, left)
            found[name] = section
    return found


def _section(before: Mapping[str, Any], after: Mapping[str, Any]) -> Section:
    section = Section()
    for name, value in after.items():
        if name not in before:
            section.added[name] = value
        elif not _same(value, before[name]):
            section.changed[name] = list(_changes((), before[name], value))
    section.removed = {name: value for name, value in before.items() if name not in after}
    return section


def _changes(path: Path, before: Any, after: Any) -> Iterator[Change]:
    """Yield the smallest places that differ; a call of another function is another value as a whole."""
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


def _same(one: Any, other: Any) -> bool:
    """Whether two values are written alike; to Python 1, 1.0 and true are."""
    if one is other:
        return True
    if one is ABSENT or other is ABSENT:
        return False
    order = orjson.OPT_SORT_KEYS
    return one == other and orjson.dumps(one, option=order) == orjson.dumps(other, option=order)


def _hide(section: Section, hidden: Collection[str], *, declared: bool) -> None:
    """Let nothing but the fact remain where a hidden parameter's value or default differs; `declared` where
    it is beside what the template says of the parameter.
    """
    for name in hidden & section.changed.keys():
        told: dict[str, Change] = {}
        for change in section.changed[name]:
            at = change.path.partition(".")[0].partition("[")[0] if declared else ""
            secret = at in SECRET
            told[at if secret else change.path] = (
                Change(at, _masked(change.before), _masked(change.after)) if secret else change
            )
        section.changed[name] = list(told.values())


def _masked(value: Any) -> Any:
    return value if value is ABSENT else MASK


def _shorten(section: Section, left: int) -> int:
    """Leave out what nobody reads, and count it; return how many changes may still be told."""
    for name, changes in section.changed.items():
        told = min(len(changes), MOST_OF_ONE, left)
        if told < len(changes):
            section.untold[name] = len(changes) - told
            section.changed[name] = changes[:told]
        left -= told
    return left


def as_json(differences: Mapping[str, Section]) -> dict[str, Any]:
    """Return differences as the API tells them."""
    return {name: _section_as_json(section, typed=name in TYPED) for name, section in differences.items()}


def _section_as_json(section: Section, *, typed: bool) -> dict[str, Any]:
    return {
        "added": [_entry(name, value, typed) for name, value in section.added.items()],
        "removed": [_entry(name, value, typed) for name, value in section.removed.items()],
        "changed": [
            {
                "name": name,
                "changes": [_change(change) for change in changes],
                "more": section.untold.get(name, 0),
            }
            for name, changes in section.changed.items()
        ],
    }


def _entry(name: str, value: Any, typed: bool) -> dict[str, Any]:
    if not typed or not isinstance(value, Mapping):
        return {"name": name}
    return {"name": name, "type": value.get("type") or value.get("Type")}


def _change(change: Change) -> dict[str, Any]:
    told = {"before": change.before, "after": change.after}
    return {"path": change.path} | {key: _short(value) for key, value in told.items() if value is not ABSENT}


def _short(value: Any) -> Any:
    """Return a value, or the beginning of its text when that is long."""
    if isinstance(value, bool | int | float | None):
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if len(text) <= LONGEST else text[:LONGEST] + "…"
