"""Parse text into plain data: JSON first, then YAML from the parser's events.

Bytes, depth and nodes are limited for any input. The result is JSON data with text keys, so that it can be
stored, hashed and sent. Positions are not recorded: `source_locator` finds them again for faults.
"""

from __future__ import annotations

import codecs
import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
import yaml

from orchestrator.config import Settings
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.gc_policy import collection_paused
from orchestrator.json_types import JsonObject
from orchestrator.schema.constraints import JSON_INTEGERS
from orchestrator.template.json_text import load_json
from orchestrator.template.source_locator import locate
from orchestrator.template.yaml_builder import Builder, yaml_fault

__all__ = ["Limits", "check_size", "locate", "parse"]

MAX_INTEGER_DIGITS: Final = 20  # characters
# Detecting duplicate keys in JSON costs as much as parsing; larger texts are not written by hand.
MAX_DUPLICATE_CHECK_BYTES: Final = 4 * 1024 * 1024
# Texts rejected by libyaml are parsed again by a parser that is a hundred times slower: at most 3 s.
MAX_SLOW_PARSER_BYTES: Final = 256 * 1024

_NOT_JSON: Final = object()
_LONG_NUMBER: Final = re.compile(rb"[:\[,\s]-?[0-9]{19}")
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_SLICE: Final = 1024 * 1024
_JSON_KEY: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"(\s*:)?')


@dataclass(frozen=True, slots=True)
class Limits:
    """How much text and structure is accepted. Nodes are counted after aliases are expanded."""

    max_bytes: int = 256 * 1024 * 1024
    max_depth: int = 100  # levels of brackets and indentation
    max_nodes: int = 50_000_000

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return an installation's limits."""
        return cls(settings.max_template_size)

    @classmethod
    def of_stored(cls, settings: Settings) -> Limits:
        """Return the limits of texts that were accepted, possibly with a larger limit of their project."""
        largest = max(settings.max_template_size, settings.max_json_body_size)
        return cls(largest)


def parse(
    text: bytes | str, limits: Limits, label: str = "template", warnings: list[Diagnostic] | None = None
) -> JsonObject:
    """Return the mapping in `text`, an empty one for an empty text.

    `warnings` collects valid but suspicious constructs.

    Raises:
        InvalidTemplate: neither JSON nor YAML, not a mapping, or nested too deep; with its location.
        LimitExceeded: it is too large.
    """
    data = _utf8(text, limits, label)
    with collection_paused():
        document = _json(data, limits, label, warnings)
        if document is _NOT_JSON:
            document = _yaml(data, limits, label, warnings)
    if document is None:
        return {}
    if not isinstance(document, dict):
        message = (
            "The template is not a JSON object or YAML mapping."
            if label == "template"
            else f"The {label} is not a valid YAML mapping data type."
        )
        raise InvalidTemplate(
            [Diagnostic("not-a-mapping", message, line=1, column=1, heat_type="HTTPBadRequest")]
        )
    return document


def _yaml(data: bytes, limits: Limits, label: str, warnings: list[Diagnostic] | None) -> Any:
    """Return the document of a YAML text.

    Texts that libyaml rejects may be valid for PyYAML's own parser, for example ``{get_attr:[a, b]}``. Heat
    accepts them, so a text below the limit for the slow parser is parsed again, with a warning.
    """
    warnings_: list[Diagnostic] = []
    try:
        builder = Builder(data, limits.max_depth, limits.max_nodes, label, warnings_)
        document = builder.build()
    except InvalidTemplate as error:
        [fault] = error.diagnostics
        if fault.code != "yaml-syntax" or len(data) > MAX_SLOW_PARSER_BYTES:
            raise
        warnings_ = [replace(fault, code="loose-yaml", severity="warning")]
        try:
            builder = Builder(data, limits.max_depth, limits.max_nodes, label, warnings_, yaml.SafeLoader)
            document = builder.build()
            orjson.dumps(document)  # this parser accepts characters that are invalid in texts
        except (InvalidTemplate, orjson.JSONEncodeError):
            raise error from None
    if builder.check_tags(document):
        check_size(document, limits, label, data)  # a tag adds levels
    if warnings is not None:
        warnings += warnings_
    return document


def _utf8(text: bytes | str, limits: Limits, label: str) -> bytes:
    try:
        data = text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        problem = f"{error.reason} at character {error.start}"
        raise yaml_fault(label, b"", "yaml-syntax", problem) from None
    if len(data) > limits.max_bytes:
        raise LimitExceeded(
            f"{label.capitalize()} size ({len(data)} bytes) exceeds "
            f"maximum allowed size ({limits.max_bytes} bytes)."
        )
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return data.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise yaml_fault(label, b"", "unreadable", f"{error.reason} at byte {error.start}") from None
    return data


def _json(data: bytes, limits: Limits, label: str, warnings: list[Diagnostic] | None) -> Any:
    if data[:_SLICE].lstrip()[:1] != b"{":  # only objects are tried as JSON; YAML covers the rest
        return _NOT_JSON
    try:
        document = load_json(data)
    except orjson.JSONDecodeError:
        return _NOT_JSON
    check_size(document, limits, label, data)
    if _has_long_digits(data) and _LONG_NUMBER.search(data):
        _refuse_rounding(data, label)
    if warnings is not None and len(data) <= MAX_DUPLICATE_CHECK_BYTES:
        _warn_of_duplicates(document, data, limits, label, warnings)
    return document


def _has_long_digits(data: bytes) -> bool:
    """Return whether the text may contain a number of 19 digits or more; a cheap check."""
    zeros = b"0" * 19
    return any(
        zeros in data[start : start + _SLICE + 18].translate(_DIGITS) for start in range(0, len(data), _SLICE)
    )


def _refuse_rounding(data: bytes, label: str) -> None:
    """Reject integers beyond 64 bits, which orjson would round silently."""

    def check(digits: str) -> int:
        if len(digits) > MAX_INTEGER_DIGITS or int(digits) not in JSON_INTEGERS:
            before = data[: data.find(digits.encode())]
            at = (before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1)
            shown = digits[:MAX_INTEGER_DIGITS]
            problem = f"the number {shown} does not fit in 64 bits; quote it to make it a text"
            raise yaml_fault(label, data, "bad-scalar", problem, at)
        return 0

    # Its depth is limited by now; the result is discarded.
    json.loads(data, parse_int=check, object_pairs_hook=lambda _: None)


def _warn_of_duplicates(
    document: object, data: bytes, limits: Limits, label: str, warnings: list[Diagnostic]
) -> None:
    """Warn about duplicate keys, of which orjson silently keeps the last."""
    written = sum(1 for match in _JSON_KEY.finditer(data) if match[1])
    if written == _count_keys(document):
        return
    with suppress(InvalidTemplate):  # JSON that is invalid YAML is accepted, without locations
        Builder(data, limits.max_depth, limits.max_nodes, label, warnings).build()


def _count_keys(document: object) -> int:
    keys = 0
    todo = [document]
    while todo:
        item = todo.pop()
        if item.__class__ is dict:
            keys += len(item)
            todo.extend(item.values())
        elif item.__class__ is list:
            todo.extend(item)
    return keys


def check_size(document: Any, limits: Limits, label: str, data: bytes = b"") -> None:
    """Check depth and nodes of data that came parsed.

    Raises:
        InvalidTemplate: too deep or too many.
    """
    depth = nodes = 0
    level = [document]
    while level:
        depth += 1
        if depth > limits.max_depth:
            raise yaml_fault(label, data, "too-deep", f"nested deeper than {limits.max_depth} levels")
        inner = []
        for parent in level:
            nodes += len(parent)
            for item in parent.values() if parent.__class__ is dict else parent:
                cls = item.__class__
                if cls is dict or cls is list:
                    inner.append(item)
        if nodes > limits.max_nodes:
            raise yaml_fault(label, data, "too-large", f"more than {limits.max_nodes} values")
        level = inner
