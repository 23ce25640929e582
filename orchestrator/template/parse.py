"""Text becomes plain data: JSON first, then YAML from the parser's events.

Bounded in bytes, depth and nodes whatever is thrown at it. The result holds only what JSON can say, with
texts for keys, so that it can be stored, hashed and sent as it is. Positions are not kept: `locate` finds
them again when there is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson
import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from orchestrator.config import Settings
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.template.diagnostics import excerpt, source_lines
from orchestrator.template.locate import locate
from orchestrator.template.scalars import WHOLE, plain, shown, tagged

__all__ = ["Limits", "check_size", "locate", "parse"]

_LONG_NUMBER: Final = re.compile(rb"[:\[,\s]-?[0-9]{19}")
KEY_NEEDED: Final = "found a map or list where a key is expected"
_NOT_JSON: Final = object()
LONGEST_INTEGER: Final = 20  # characters
_NO_KEY: Final = object()
_MERGE: Final = object()
_OPEN: Final = object()
_COLLECTION_TAGS: Final = {
    dict: (None, "!", "tag:yaml.org,2002:map"),
    list: (None, "!", "tag:yaml.org,2002:seq"),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much text and structure is accepted. Nodes are counted after aliases are expanded."""

    max_bytes: int = 256 * 1024 * 1024
    max_depth: int = 100
    max_nodes: int = 50_000_000

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return an installation's limits."""
        return cls(settings.max_template_size, settings.max_yaml_depth, settings.max_yaml_nodes)


def parse(
    text: bytes | str, limits: Limits, what: str = "template", warnings: list[Diagnostic] | None = None
) -> dict[str, Any]:
    """Return the mapping that `text` is, an empty one for an empty text.

    `warnings` collects what is odd but allowed.

    Raises:
        InvalidTemplate: it is neither JSON nor YAML, no mapping, or nested too deep; with the place.
        LimitExceeded: it is too large.
    """
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise _fault(what, b"", "yaml-syntax", f"{error.reason} at character {error.start}") from None
    if len(data) > limits.max_bytes:
        raise LimitExceeded(
            f"{what.capitalize()} size ({len(data)} bytes) exceeds "
            f"maximum allowed size ({limits.max_bytes} bytes)."
        )
    document = _json(data, limits, what)
    if document is _NOT_JSON:
        document = _Builder(data, limits, what, warnings).build()
        if document is None:
            return {}
    if not isinstance(document, dict):
        message = (
            "The template is not a JSON object or YAML mapping."
            if what == "template"
            else f"The {what} is not a valid YAML mapping data type."
        )
        raise InvalidTemplate(
            [Diagnostic("not-a-mapping", message, line=1, column=1, heat_type="HTTPBadRequest")]
        )
    return document


def _json(data: bytes, limits: Limits, what: str) -> Any:
    if data.lstrip()[:1] != b"{":  # what is not an object, YAML reads as well
        return _NOT_JSON
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _NOT_JSON
    check_size(document, limits, what, data)
    if _LONG_NUMBER.search(data):
        _refuse_rounding(data, what)
    return document


def _refuse_rounding(data: bytes, what: str) -> None:
    """Refuse integers that do not fit in 64 bits, which orjson would round without a word."""

    def check(digits: str) -> int:
        if len(digits) > LONGEST_INTEGER or int(digits) not in WHOLE:
            before = data[: data.find(digits.encode())]
            at = (before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1)
            problem = (
                f"the number {digits[:LONGEST_INTEGER]} does not fit in 64 bits; quote it to make it a text"
            )
            raise _fault(what, data, "bad-scalar", problem, at)
        return 0

    json.loads(data, parse_int=check)  # its depth is known to be small by now


def check_size(document: Any, limits: Limits, what: str, data: bytes = b"") -> None:
    """Check depth and nodes of data that came parsed.

    Raises:
        InvalidTemplate: too deep or too many.
    """
    depth = nodes = 0
    level = [document]
    while level:
        depth += 1
        if depth > limits.max_depth:
            raise _fault(what, data, "too-deep", f"nested deeper than {limits.max_depth} levels")
        inner = []
        for parent in level:
            nodes += len(parent)
            for item in parent.values() if parent.__class__ is dict else parent:
                if item.__class__ is dict or item.__class__ is list:
                    inner.append(item)
        if nodes > limits.max_nodes:
            raise _fault(what, data, "too-large", f"more than {limits.max_nodes} values")
        level = inner


@dataclass(slots=True)
class _Anchored:
    """A finished value that aliases may repeat, and what repeating it costs."""

    value: Any
    nodes: int
    chars: int
    height: int  # levels of nesting


class _Frame:
    """An open list or map."""

    __slots__ = ("anchor", "chars", "container", "deepest", "key", "merged", "nodes")

    def __init__(self, container: Any, anchor: str | None, nodes: int, chars: int, depth: int) -> None:
        self.container = container
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.merged: dict[str, Any] | None = None
        self.nodes, self.chars = nodes, chars  # how much there was before it
        self.deepest = depth


class _Builder:
    """Builds one document from the events of libyaml's parser."""

    def __init__(self, data: bytes, limits: Limits, what: str, warnings: list[Diagnostic] | None) -> None:
        self._data = data
        self._limits = limits
        self._what = what
        self._warnings = warnings
        self._anchors: dict[str, Any] = {}
        self._stack: list[_Frame] = []
        self._nodes = self._chars = 0
        # Aliases may repeat ten times what was written: a small text stays cheap to walk, to store and to
        # hash.
        self._max_nodes = min(limits.max_nodes, 100_000 + 10 * len(data))
        self._max_chars = 1_000_000 + 10 * len(data)

    def build(self) -> Any:
        """Return the document, None for an empty text."""
        loader = yaml.CSafeLoader(self._data)
        try:
            return self._build(loader.get_event)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from None
        except yaml.reader.ReaderError as error:
            raise self._unreadable(error) from None
        finally:
            loader.dispose()

    def _build(self, next_event: Callable[[], Any]) -> Any:
        stack = self._stack
        root: Any = None
        documents = 0
        while True:
            event = next_event()
            kind = event.__class__
            if kind is ScalarEvent:
                value = self._scalar(event)
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                self._open({} if kind is MappingStartEvent else [], event)
                continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                value = self._close()
            elif kind is AliasEvent:
                value = self._alias(event)
            elif kind is StreamEndEvent:
                return root
            else:
                documents += kind is DocumentStartEvent
                if documents > 1:
                    self._fail(event, "expected a single document in the stream, but found another document")
                continue
            if not stack:
                root = value
                continue
            frame = stack[-1]
            container = frame.container
            if container.__class__ is list:
                container.append(value)
            elif frame.key is _NO_KEY:
                key = value if value.__class__ is str and not self._merges(event) else self._key(value, event)
                if key in container:
                    self._warn(event, key)
                frame.key = key
            else:
                if frame.key is _MERGE:
                    self._merge(frame, value, event)
                else:
                    container[frame.key] = value
                frame.key = _NO_KEY

    def _scalar(self, event: Any) -> Any:
        text = event.value
        self._nodes += 1
        self._chars += len(text)
        try:
            if event.tag is not None:
                value = tagged(event.tag, text)
            elif event.implicit[0]:
                value = plain(text)
            else:
                value = text
        except ValueError as error:
            self._fail(event, str(error), "bad-scalar")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, len(text), 0)
        return value

    def _open(self, container: Any, event: Any) -> None:
        if event.tag not in _COLLECTION_TAGS[container.__class__]:
            self._fail(
                event, f"could not determine a constructor for the tag '{shown(event.tag)}'", "bad-tag"
            )
        depth = len(self._stack) + 1
        if self._stack and self._stack[-1].key is _NO_KEY and self._stack[-1].container.__class__ is dict:
            self._fail(event, KEY_NEEDED, "bad-key")
        if depth > self._limits.max_depth:
            self._fail(event, f"nested deeper than {self._limits.max_depth} levels", "too-deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
        self._stack.append(_Frame(container, event.anchor, self._nodes, self._chars, depth))
        self._count(1, 0, event)

    def _close(self) -> Any:
        frame = self._stack.pop()
        value = frame.container
        if frame.merged is not None:
            value = {**frame.merged, **value}  # what is written out wins
        depth = len(self._stack) + 1
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(
                value, self._nodes - frame.nodes, self._chars - frame.chars, frame.deepest - depth + 1
            )
        if self._stack and self._stack[-1].deepest < frame.deepest:
            self._stack[-1].deepest = frame.deepest
        return value

    def _alias(self, event: Any) -> Any:
        known = self._anchors.get(event.anchor)
        if known is None:
            self._fail(event, f"found undefined alias '{event.anchor}'")
        if known is _OPEN:
            self._fail(
                event, f"the alias '{event.anchor}' refers to a value that contains it", "self-reference"
            )
        deepest = len(self._stack) + known.height
        if deepest > self._limits.max_depth:
            self._fail(event, f"nested deeper than {self._limits.max_depth} levels", "too-deep")
        if self._stack and self._stack[-1].deepest < deepest:
            self._stack[-1].deepest = deepest
        self._count(known.nodes, known.chars, event)
        return known.value

    def _count(self, nodes: int, chars: int, event: Any) -> None:
        self._nodes += nodes
        self._chars += chars
        if self._nodes > self._max_nodes or self._chars > self._max_chars:
            self._fail(event, "too many values once its aliases are expanded", "too-large")

    def _merges(self, event: Any) -> bool:
        return (
            event.__class__ is ScalarEvent and event.value == "<<" and event.tag is None and event.implicit[0]
        )

    def _key(self, value: Any, event: Any) -> Any:
        """Return a key as JSON writes it."""
        if value.__class__ is str:
            return _MERGE
        if isinstance(value, (dict, list)):
            self._fail(event, KEY_NEEDED, "bad-key")
        return orjson.dumps(value).decode()

    def _merge(self, frame: _Frame, value: Any, event: Any) -> None:
        sources = list(reversed(value)) if isinstance(value, list) else [value]
        frame.merged = frame.merged or {}
        for source in sources:
            if not isinstance(source, dict):
                self._fail(event, "expected a mapping or list of mappings for merging", "bad-merge")
            frame.merged.update(source)

    def _warn(self, event: Any, key: str) -> None:
        if self._warnings is not None:
            line = event.start_mark.line + 1
            self._warnings.append(
                Diagnostic(
                    "duplicate-key",
                    f'The key "{key}" is given twice; the last one counts.',
                    line=line,
                    column=event.start_mark.column + 1,
                    severity="warning",
                )
            )

    def _fail(self, event: Any, problem: str, code: str = "yaml-syntax") -> NoReturn:
        mark = event.start_mark
        raise _fault(self._what, self._data, code, problem, (mark.line + 1, mark.column + 1))

    def _syntax(self, error: yaml.MarkedYAMLError) -> InvalidTemplate:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        if mark is None:
            return _fault(self._what, self._data, "yaml-syntax", problem)
        return _fault(self._what, self._data, "yaml-syntax", problem, (mark.line + 1, mark.column + 1))

    def _unreadable(self, error: yaml.reader.ReaderError) -> InvalidTemplate:
        before = self._data[: error.position]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        return _fault(self._what, self._data, "unreadable", error.reason, (line, column))


def _fault(
    what: str, data: bytes, code: str, problem: str, at: tuple[int, int] | None = None
) -> InvalidTemplate:
    """Return a fault of the text itself, with its place and source line in the message as Heat has them."""
    message = f"Error parsing template [root stack] {problem}" if what == "template" else problem
    line, column = at or (None, None)
    source, under = excerpt(source_lines(data), line, column)
    if at is not None:
        message += f'\n  in "{what}", line {line}, column {column}'
        if source:
            message += f":\n    {source}\n    {under}^"
    return InvalidTemplate(
        [Diagnostic(code, message, line=line, column=column, excerpt=source, heat_type="HTTPBadRequest")]
    )
