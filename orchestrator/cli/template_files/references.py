"""The file references of a template or an environment, and the text with some of them rereference.

A YAML text is read as a sequence of parser events: memory is bounded for any text, and a changed text keeps
its lines. An invalid text has no references: the server reports its errors and their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
import yaml

TEMPLATES: Final = (".yaml", ".template")
REGISTRY: Final = "resource_registry"
BASE_URL: Final = "base_url"
NOT_NAMES: Final = frozenset({BASE_URL, "hooks", "restricted_actions", "ready_timeout"})
_VERSION: Final = re.compile(
    r"""(?m)^\s*\{?\s*["']?(heat_template_version|HeatTemplateFormatVersion|AWSTemplateFormatVersion)["']?\s*:"""
)
_ANCHOR: Final = re.compile(r"(?:!\S*\s+)?(&[^\s,\[\]{}]+\s)")
_KEY: Final = object()  # in a mapping, before a key

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class FileReference:
    """A reference to a file."""

    name: str
    template: bool  # whether the file must be a template
    path: Path
    span: tuple[int, int] | None  # in characters; None for JSON
    base: str = ""  # in an environment: the base_url


def is_template(text: str) -> bool:
    """Return whether a text looks like a template, which can have references of its own."""
    return _VERSION.search(text) is not None


def named_in_template(text: str) -> list[FileReference]:
    """Return the references in the `get_file` calls and the `type` entries of a template."""
    if "get_file" not in text and not any(ending in text for ending in TEMPLATES):
        return []
    references = []
    for path, value, span in _texts(text):
        if path[-1] == "get_file":
            references.append(FileReference(value, False, path, span))
        elif path[-1] == "type" and value.endswith(TEMPLATES):
            references.append(FileReference(value, True, path, span))
    return references


def named_in_environment(text: str) -> list[FileReference]:
    """Return the references to templates in the `resource_registry` of an environment.

    They are relative to the `base_url` of their mapping, or of the registry.
    """
    if REGISTRY not in text:
        return []
    texts = [entry for entry in _texts(text) if entry[0][0] == REGISTRY]
    bases = {path[:-1]: value for path, value, _ in texts if path[-1] == BASE_URL}
    return [
        FileReference(value, True, path, span, bases.get(path[:-1], bases.get((REGISTRY,), "")))
        for path, value, span in texts
        if path[-1] not in NOT_NAMES and value.endswith(TEMPLATES) and "::" not in value
    ]


def renamed(text: str, changes: Iterable[tuple[FileReference, str]]) -> str:
    """Return the text with new names for these references; a YAML text is otherwise unchanged."""
    changes = list(changes)
    if not changes:
        return text
    if changes[0][0].span is None:
        document = orjson.loads(text)
        for reference, name in changes:
            _set(document, reference.path, name)
        return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    pieces, done = [], 0
    for start, end, name in sorted((*_span(reference), name) for reference, name in changes):
        anchor = _ANCHOR.match(text, start, end)  # aliases may refer to it
        ended = "\n" if text[start:end].endswith("\n") else ""  # a block scalar ends with its line
        pieces += [text[done:start], anchor[1] if anchor else "", orjson.dumps(name).decode(), ended]
        done = end
    return "".join([*pieces, text[done:]])


def _span(reference: FileReference) -> tuple[int, int]:
    assert reference.span is not None
    return reference.span


def _set(document: Any, path: Path, value: str) -> None:
    for part in path[:-1]:
        document = document[part]
    document[path[-1]] = value


def _texts(text: str) -> list[tuple[Path, str, tuple[int, int] | None]]:
    """Return every string value of a mapping, with its path and position."""
    try:
        return list(_in_value(orjson.loads(text)))
    except orjson.JSONDecodeError:
        try:
            return list(_in_events(text))  # all or nothing
        except yaml.YAMLError:
            return []


def _in_value(document: object) -> Iterator[tuple[Path, str, None]]:
    waiting: list[tuple[Path, object]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        items: Iterable[tuple[str | int, object]] = ()
        match value:
            case dict():
                items = value.items()
            case list():
                items = enumerate(value)
        for key, item in items:
            if not isinstance(item, str):
                waiting.append(((*path, key), item))
            elif isinstance(key, str):
                yield (*path, key), item, None


def _in_events(text: str) -> Iterator[tuple[Path, str, tuple[int, int]]]:
    """Read the events of the parser; no document is built, so memory is bounded for any text."""
    shift = 1 if text.startswith("\ufeff") else 0  # the parser does not count the byte order mark
    anchors: dict[str, str | None] = {}
    depth: list[Any] = []  # per open collection: None for a list, otherwise the last key or _KEY
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        match event:
            case yaml.ScalarEvent() | yaml.AliasEvent():
                value = (
                    event.value if isinstance(event, yaml.ScalarEvent) else anchors.get(event.anchor or "")
                )
                if isinstance(event, yaml.ScalarEvent) and event.anchor:
                    anchors[event.anchor] = value
                if depth and depth[-1] is _KEY:
                    depth[-1] = value or ""
                elif depth and depth[-1] is not None:
                    if value is not None:
                        assert event.start_mark
                        assert event.end_mark
                        span = (event.start_mark.index + shift, event.end_mark.index + shift)
                        yield tuple(0 if key is None else key for key in depth), value, span
                    depth[-1] = _KEY
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                if event.anchor:
                    anchors[event.anchor] = None  # not a string
                depth.append(_KEY if isinstance(event, yaml.MappingStartEvent) else None)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                depth.pop()
                if depth and depth[-1] is not None:  # a collection as a key has no name
                    depth[-1] = "" if depth[-1] is _KEY else _KEY
