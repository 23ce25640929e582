"""A YAML document built from the events of libyaml's parser, within limits; called by `parse`.

Equal to PyYAML's safe loader, except that dates stay texts, keys are converted to texts like JSON's, and
values that JSON cannot represent are rejected. Works without recursion, so no text can exhaust the
interpreter's stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

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

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonObject
from orchestrator.template.diagnostics import excerpt, source_lines
from orchestrator.template.short_tags import (
    MAX_ADDED_LEVELS,
    VERSION_KEYS,
    hint_of,
    is_known,
    is_short_tag,
    value_of,
)
from orchestrator.template.yaml_scalars import key_text, plain_scalar, scalar, shown

UNKNOWN_TAG: Final = "could not determine a constructor for the tag '{}'"
KEY_NEEDED: Final = "found a map or list where a key is expected"
MAX_WARNINGS: Final = 100  # of duplicate keys; a text could contain millions
MAX_TAG_DIRECTIVES: Final = 100  # libyaml compares each with all before it
MAX_SHOWN: Final = 200  # characters of a key in a message

TABS: Final = "the line is indented with a tab; YAML is indented with spaces only"
_TAB: Final = re.compile(r" *\t")
_TAG_DIRECTIVE: Final = re.compile(rb"(?:\A|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9])(?:\xef\xbb\xbf)?%TAG")
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_NO_KEY: Final = object()
_MERGE: Final = object()
_OPEN: Final = object()
_COLLECTION_TAGS: Final = {
    dict: (None, "!", "tag:yaml.org,2002:map"),
    list: (None, "!", "tag:yaml.org,2002:seq"),
}


@dataclass(slots=True)
class _Anchored:
    """A complete value that aliases may repeat, and the cost of each repetition."""

    value: Any
    nodes: int
    chars: int
    height: int  # levels of nesting


class _Frame:
    """An open list or map."""

    __slots__ = ("anchor", "chars", "container", "deepest", "event", "key", "merged", "nodes")

    def __init__(self, container: Any, event: Any, nodes: int, chars: int, depth: int) -> None:
        self.container = container
        self.anchor: str | None = event.anchor
        self.event = event if is_short_tag(event.tag) else None
        self.key: Any = _NO_KEY
        self.merged: JsonObject | None = None
        self.nodes, self.chars = nodes, chars  # how much there was before it
        self.deepest = depth


class Builder:
    """Builds the document of a text; used once."""

    def __init__(
        self,
        data: bytes,
        max_depth: int,
        max_nodes: int,
        label: str,
        warnings: list[Diagnostic] | None = None,
        loader: Callable[[bytes], Any] = yaml.CSafeLoader,
    ) -> None:
        """`label` names the text in messages; `warnings` collects duplicate keys."""
        self._loader = loader
        self._data = data
        self._max_depth = max_depth
        self._label = label
        self._warnings = warnings
        self._anchors: JsonObject = {}
        self._stack: list[_Frame] = []
        self._nodes = self._chars = 0
        # Aliases may expand a text tenfold: a small text stays cheap to traverse, store and hash.
        self._max_nodes = min(max_nodes, 100_000 + 10 * len(data))
        self._max_chars = 1_000_000 + 10 * len(data)
        self._takes_tags = label == "template"
        self._first_tag: Any = None  # the event of the first short tag
        self._tag_fault: tuple[Any, str] | None = None  # the first faulty short tag

    def build(self) -> Any:
        """Return the document, None for an empty text.

        Raises:
            InvalidTemplate: not YAML, or beyond the limits.
        """
        self._check_directives()
        try:
            return self._parse()
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from None
        except yaml.reader.ReaderError as error:
            raise self._unreadable(error) from None

    def _parse(self) -> Any:
        loader = self._loader(self._data)  # PyYAML's own parser reads the beginning here already
        try:
            return self._build(loader.get_event)
        finally:
            loader.dispose()

    def _check_directives(self) -> None:
        if self._data.count(b"%TAG") <= MAX_TAG_DIRECTIVES:
            return
        # The end of the directives is not searched: a comment may contain "---", and the directives of a
        # second document are read before it is rejected.
        if len(_TAG_DIRECTIVE.findall(self._data)) > MAX_TAG_DIRECTIVES:
            raise yaml_fault(
                self._label, self._data, "too-large", f"more than {MAX_TAG_DIRECTIVES} %TAG directives"
            )

    def _build(self, next_event: Callable[[], Any]) -> Any:
        stack = self._stack
        root: Any = None
        documents = 0
        while True:
            event = next_event()
            event_type = event.__class__
            if event_type is ScalarEvent:
                text = event.value
                self._nodes += 1
                self._chars += len(text)
                if event.tag is not None or event.anchor is not None:
                    value = self._marked(event)
                elif event.implicit[0]:
                    try:
                        value = plain_scalar(text)
                    except ValueError as error:
                        self._fail(event, str(error), "bad-scalar")
                else:
                    value = text
            elif event_type is MappingStartEvent or event_type is SequenceStartEvent:
                self._open({} if event_type is MappingStartEvent else [], event)
                continue
            elif event_type is MappingEndEvent or event_type is SequenceEndEvent:
                value = self._close()
            elif event_type is AliasEvent:
                value = self._alias(event)
            elif event_type is StreamEndEvent:
                return root
            else:
                documents += event_type is DocumentStartEvent
                if documents > 1:
                    self._fail(event, "expected a single document in the stream, but found another document")
                continue
            if stack:
                self._put(value, event)
            else:
                root = value

    def _put(self, value: Any, event: Any) -> None:
        """Put a value where it belongs: into the open list, or as key or value into the open map."""
        frame = self._stack[-1]
        container = frame.container
        if container.__class__ is list:
            container.append(value)
        elif frame.key is _NO_KEY:
            if value.__class__ is not str or value == "<<" or (event.__class__ is ScalarEvent and event.tag):
                value = self._key(value, event)
            if value in container:
                self._warn(event, value)
            frame.key = value
        else:
            if frame.key is _MERGE:
                self._merge(frame, value, event)
            else:
                container[frame.key] = value
            frame.key = _NO_KEY

    def _marked(self, event: Any) -> Any:
        """Return the value of a scalar with a tag or an anchor."""
        text = event.value
        if self._takes_tags and is_short_tag(event.tag):
            value = self._called(event, text)
        else:
            try:
                value = scalar(event.tag, event.implicit[0], text)
            except ValueError as error:
                self._fail(event, str(error), "bad-scalar")
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, len(text), 0)
        return value

    def _open(self, container: Any, event: Any) -> None:
        is_short = self._takes_tags and is_short_tag(event.tag)
        if event.tag not in _COLLECTION_TAGS[container.__class__] and not is_short:
            self._fail(event, UNKNOWN_TAG.format(shown(event.tag)), "bad-tag")
        depth = len(self._stack) + 1
        if self._stack and self._stack[-1].key is _NO_KEY and self._stack[-1].container.__class__ is dict:
            self._fail(event, KEY_NEEDED, "bad-key")
        if depth > self._max_depth:
            self._fail(event, f"nested deeper than {self._max_depth} levels", "too-deep")
        if event.anchor is not None:
            self._anchors[event.anchor] = _OPEN
        self._stack.append(_Frame(container, event, self._nodes, self._chars, depth))
        self._count(1, 0, event)

    def _close(self) -> Any:
        frame = self._stack.pop()
        value = frame.container
        if frame.merged is not None:
            value = {**frame.merged, **value}  # explicit keys have precedence
        if frame.event is not None:
            value = self._called(frame.event, value)
        depth = len(self._stack) + 1
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchored(
                value, self._nodes - frame.nodes, self._chars - frame.chars, frame.deepest - depth + 1
            )
        if self._stack and self._stack[-1].deepest < frame.deepest:
            self._stack[-1].deepest = frame.deepest
        return value

    def _called(self, event: Any, value: Any) -> Any:
        """Return the function that a short tag stands for; `check_tags` refuses it at the end."""
        self._first_tag = self._first_tag or event
        self._count(2 * MAX_ADDED_LEVELS, 0, event)
        if not is_known(event.tag):
            self._tag_fault = self._tag_fault or (event, UNKNOWN_TAG.format(shown(event.tag)))
            return None
        try:
            return value_of(event.tag, value)
        except ValueError as error:
            self._tag_fault = self._tag_fault or (event, str(error))
            return None

    def check_tags(self, document: object) -> bool:
        """Return whether the text has short tags.

        Raises:
            InvalidTemplate: one of them is faulty, or this is no template of CloudFormation.
        """
        event = self._first_tag
        if event is None:
            return False
        if not isinstance(document, dict) or not any(key in document for key in VERSION_KEYS):
            self._fail(event, UNKNOWN_TAG.format(shown(event.tag)), "bad-tag", hint_of(event.tag))
        if self._tag_fault is not None:
            self._fail(*self._tag_fault, "bad-tag")
        return True

    def _alias(self, event: Any) -> Any:
        node = self._anchors.get(event.anchor)
        if node is None:
            self._fail(event, f"found undefined alias '{event.anchor}'")
        if node is _OPEN:
            self._fail(
                event, f"the alias '{event.anchor}' refers to a value that contains it", "self-reference"
            )
        deepest = len(self._stack) + node.height
        if deepest > self._max_depth:
            self._fail(event, f"nested deeper than {self._max_depth} levels", "too-deep")
        if self._stack and self._stack[-1].deepest < deepest:
            self._stack[-1].deepest = deepest
        self._count(node.nodes, node.chars, event)
        return node.value

    def _count(self, nodes: int, chars: int, event: object) -> None:
        self._nodes += nodes
        self._chars += chars
        if self._nodes > self._max_nodes or self._chars > self._max_chars:
            self._fail(event, "too many values once its aliases are expanded", "too-large")

    def _key(self, value: object, event: object) -> Any:
        """Return a key as JSON writes it, _MERGE for the merge key."""
        if event.__class__ is ScalarEvent and (
            event.tag == _MERGE_TAG or (event.tag in (None, "!") and event.implicit[0] and value == "<<")
        ):
            return _MERGE
        if value.__class__ is dict or value.__class__ is list:
            self._fail(event, KEY_NEEDED, "bad-key")
        return key_text(value)

    def _merge(self, frame: _Frame, value: object, event: object) -> None:
        sources = list(reversed(value)) if isinstance(value, list) else [value]
        frame.merged = frame.merged or {}
        for source in sources:
            if not isinstance(source, dict):
                self._fail(event, "expected a mapping or list of mappings for merging", "bad-merge")
            frame.merged.update(source)

    def _warn(self, event: Any, key: str) -> None:
        if self._warnings is not None and len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(
                Diagnostic(
                    "duplicate-key",
                    f'The key "{key[:MAX_SHOWN]}" is given twice; the last one counts.',
                    line=event.start_mark.line + 1,
                    column=event.start_mark.column + 1,
                    severity="warning",
                )
            )

    def _fail(self, event: Any, problem: str, code: str = "yaml-syntax", hint: str = "") -> NoReturn:
        mark = event.start_mark
        raise yaml_fault(self._label, self._data, code, problem, (mark.line + 1, mark.column + 1), hint)

    def _syntax(self, error: yaml.MarkedYAMLError) -> InvalidTemplate:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        if mark is None:
            return yaml_fault(self._label, self._data, "yaml-syntax", problem)
        return yaml_fault(self._label, self._data, "yaml-syntax", problem, (mark.line + 1, mark.column + 1))

    def _unreadable(self, error: yaml.reader.ReaderError) -> InvalidTemplate:
        before = self._data[: error.position]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        return yaml_fault(self._label, self._data, "unreadable", error.reason, (line, column))


def yaml_fault(
    label: str,
    data: bytes,
    code: str,
    problem: str,
    at: tuple[int, int] | None = None,
    hint: str = "",
) -> InvalidTemplate:
    """Return a fault of the text itself, with its place and source line in the message as Heat has them."""
    message = f"Error parsing template [root stack] {problem}" if label == "template" else problem
    line, column = at or (None, None)
    lines = source_lines(data)
    source, under = excerpt(lines, line, column)
    if at is not None:
        message += f'\n  in "{label}", line {line}, column {column}'
        if source:
            message += f":\n    {source}\n    {under}^"
    is_indented = line is not None and any(_TAB.match(text) for text in lines[max(0, line - 2) : line])
    hint = hint or (TABS if code == "yaml-syntax" and is_indented else "")
    return InvalidTemplate(
        [Diagnostic(code, message, "", line, column, "", source, hint, heat_type="HTTPBadRequest")]
    )
