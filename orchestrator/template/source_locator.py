"""Find the line and column of paths in a text; used only when there are faults to report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from orchestrator.template.diagnostics import Path
from orchestrator.template.short_tags import FUNCTIONS
from orchestrator.template.yaml_scalars import key_text, scalar

Trie = dict[str | int, Any]


def locate(text: bytes | str, paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return (line, column), counted from 1, of the key or list item that each path ends at.

    A path that is not in the text as such (under an alias, a missing key) gets the place of the nearest
    parent that is.
    """
    requested = list(dict.fromkeys(paths))
    trie: Trie = {}
    for path in requested:
        branch = trie
        for part in path:
            branch = branch.setdefault(part, {})
    locations: dict[Path, tuple[int, int]] = {}
    loader = None
    try:
        loader = yaml.CSafeLoader(text)
        _Walk(loader.get_event, trie, locations).run()
    except (yaml.YAMLError, UnicodeEncodeError):
        pass  # locations before the syntax error are valid
    finally:
        if loader is not None:
            loader.dispose()
    placed = {}
    for path in requested:
        for size in range(len(path), -1, -1):
            if path[:size] in locations:
                placed[path] = locations[path[:size]]
                break
    return placed


class _Walk:
    """A pass over the events that enters only requested subtrees."""

    def __init__(self, next_event: Any, trie: Trie, locations: dict[Path, tuple[int, int]]) -> None:
        self._next = next_event
        self._trie = trie
        self._locations = locations

    def run(self) -> None:
        """Fill `found`."""
        # An entry is [path, trie below it, next list index or None for a map, waiting for a key].
        stack: list[list[Any]] = []
        while (event := self._next()) is not None:
            event_type = event.__class__
            if event_type is MappingEndEvent or event_type is SequenceEndEvent:
                stack.pop()
                if stack and stack[-1][2] is None:
                    stack[-1][3] = True
                continue
            if event_type not in (ScalarEvent, AliasEvent, MappingStartEvent, SequenceStartEvent):
                continue
            opens = event_type is MappingStartEvent or event_type is SequenceStartEvent
            if not stack:
                self._locations.setdefault((), _place(event))
                if opens:
                    stack.append([(), self._trie, None if event_type is MappingStartEvent else 0, True])
                continue
            top = stack[-1]
            if top[2] is None and top[3]:  # a key
                if opens:
                    self._skip()
                    top[3:] = [False, -1]
                    continue
                key = _key(event)
                top[3:] = [False, key]
                if key in top[1]:
                    self._locations[(*top[0], key)] = _place(event)
                continue
            if top[2] is None:
                key = top[4]
                top[3] = True
            else:
                key = top[2]
                top[2] += 1
                if key in top[1]:
                    self._locations[(*top[0], key)] = _place(event)
            below, path = top[1].get(key), (*top[0], key)
            if below and (function := FUNCTIONS.get(getattr(event, "tag", None) or "")) in below:
                path = (*path, function)
                self._locations[path] = _place(event)
                below = below[function]
            if opens:
                if not below:
                    self._skip()
                else:
                    stack.append([path, below, None if event_type is MappingStartEvent else 0, True])

    def _skip(self) -> None:
        """Pass over the collection just opened."""
        depth = 1
        while depth and (event := self._next()) is not None:
            event_type = event.__class__
            if event_type is MappingStartEvent or event_type is SequenceStartEvent:
                depth += 1
            elif event_type is MappingEndEvent or event_type is SequenceEndEvent:
                depth -= 1


def _place(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _key(event: object) -> str | int:
    """Return a key as `parse` names it; -1, which no path contains, for an invalid key."""
    if event.__class__ is not ScalarEvent:
        return -1
    try:
        return key_text(scalar(event.tag, event.implicit[0], event.value))
    except ValueError:
        return -1
