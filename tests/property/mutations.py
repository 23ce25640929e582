"""Mutated templates: truncated and scrambled texts, documents with parts removed, duplicated and moved.

Every choice is drawn from Hypothesis, so that a failure shrinks to a minimal example.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from orchestrator.errors import InvalidTemplate
from orchestrator.template.parse import Limits, parse
from tests.property.corpus import ROOT, TEMPLATES

OURS: Final = [
    *(path for path in sorted((ROOT / "examples").glob("*.yaml")) if not path.name.endswith(".env.yaml")),
    *sorted((ROOT / "tests" / "golden").rglob("*.yaml")),
]
# Ours are few, and of types that are looked into: they are taken more often.
SOURCES: Final = [*OURS, *(path for path in TEMPLATES if path.stat().st_size < 60_000)]
OFTEN: Final = 3
BESIDE: Final = 30_000  # bytes of a neighbouring file that goes along
NAMES: Final = ["x", "", "a.b", "Type", "type", "condition", "for_each", "get_param", "if", "<<", "default"]
MOST: Final = 6  # maximum of changes to a template
CALLS: Final = """[
    {get_param: x}, {get_param: []}, {get_param: [[]]}, {get_param: {get_param: x}}, {get_resource: x},
    {get_resource: []}, {get_attr: x}, {get_attr: []}, {get_attr: [x, y, {}]}, {get_attr: [x, [], 1]},
    {if: []}, {if: [x, 1, 2]}, {if: [true, 1]}, {if: [{equals: [1]}, {}, []]}, {equals: [1, 1]}, {not: x},
    {and: []}, {or: [true, {not: {}}]}, {Fn::If: [x, 1, 2]}, {Ref: null}, {Ref: x}, {Ref: [x]},
    {str_replace: {template: $x, params: {$x: 1}}}, {str_replace: {template: [], params: 1}},
    {repeat: {template: "%x%", for_each: {"%x%": [a, b]}}}, {repeat: {for_each: {a: 1}}},
    {repeat: {template: {"%x%": 1}, for_each: {"%x%": {a: 1}}, permutations: 3}}, {list_join: [1, 2]},
    {list_join: [",", null, [a, {}]]}, {str_split: [",", null]}, {str_split: [a, aa, 9]}, {digest: [md5, 1]},
    {digest: [x, y]}, {map_merge: [null, 1]}, {map_replace: [{a: 1}, {keys: {a: []}}]},
    {map_replace: [[], 1]},
    {yaql: {expression: $.data.x, data: {}}}, {yaql: {expression: "((", data: 1}}, {get_file: []},
    {yaql: {expression: "range(100000).toList()", data: {}}}, {resource_facade: metadata}, {get_file: x},
    {resource_facade: 1},
    {make_url: {port: x}}, {make_url: {scheme: 1, query: [a]}}, {list_concat: [[1], {}]},
    {list_concat_unique: [[{}, 1], [[]]]}, {filter: [[null], 1]}, {contains: [a, {}]}, {Fn::Select: [a, [1]]},
    {Fn::Select: ["0", "x"]}, {Fn::GetAtt: [x]}, {Fn::FindInMap: [x, y, z]}, {Fn::Join: [1, [{}]]},
    {Fn::Split: [null, 1]}, {Fn::Replace: [[1], 2]}, {Fn::MemberListToMap: [a, b, c]}, {Fn::Base64: []},
    {length: {min: x}}, {range: {min: []}}, {modulo: {step: 0, offset: 1}}, {allowed_pattern: "(("},
    {allowed_values: x}, {custom_constraint: nope}, {custom_constraint: [nova.flavor]}, [{length: 3}, {}],
]"""
WRONG: Final[list[Any]] = [
    *(None, True, False, 0, -1, 7, 1.5, 1e308, 2**63, "", "x", ".", "a.b[0]", "get_param", "\x00", "\u2028"),
    *([], [[]], [None], ["x"], [1, {}], {}, {"": None}, {"x": {}}, {"a": 1, "b": [2]}, "x" * 5000),
    *yaml.safe_load(CALLS),
]
_BITS: Final = r""": - { } [ ] ' " # &a *a | > ? !!int <<:*a %TAG é {get_param:x} null ~ 1: __ $ \ ,"""
PIECES: Final = [
    *_BITS.split(),
    "\n",
    " ",
    "  ",
    "\t",
    ": ",
    "- ",
    "---\n",
    "\x00",
    "\x07",
    "\ufeff",
    "<<: *a",
]

Place = tuple[str | int, ...]


def files_beside(path: Path) -> dict[str, str]:
    """Return the small texts in a template's folder by their names."""
    result = {}
    for sibling in sorted(path.parent.iterdir()):
        if sibling.is_file() and sibling.stat().st_size < BESIDE:
            result[sibling.name] = sibling.read_text(errors="replace")
    return result


@st.composite
def mutated_texts(draw: DrawFn) -> tuple[Path, bytes]:
    """Return a template's text with some bytes and lines of it changed."""
    path = draw(st.sampled_from(OURS * OFTEN + SOURCES))
    data = path.read_bytes()
    for _ in range(draw(st.integers(1, MOST))):
        data = draw(st.sampled_from(_TEXT_CHANGES))(draw, data)
    return path, data


@st.composite
def mutated_documents(draw: DrawFn) -> tuple[Path, dict[str, Any]]:
    """Return a template's document with some nodes of it lost, doubled, moved or of another type."""
    path = draw(st.sampled_from([path for path in OURS * OFTEN + SOURCES if path in _documents()]))
    document = copy.deepcopy(_documents()[path])
    for _ in range(draw(st.integers(1, MOST))):
        places = list(_places(document))
        if places:
            draw(st.sampled_from(_NODE_CHANGES))(draw, document, places)
    return path, document


def _truncate(draw: DrawFn, data: bytes) -> bytes:
    return data[: draw(st.integers(0, len(data)))]


def _behead(draw: DrawFn, data: bytes) -> bytes:
    return data[draw(st.integers(0, len(data))) :]


def _flip(draw: DrawFn, data: bytes) -> bytes:
    if not data:
        return data
    at = draw(st.integers(0, len(data) - 1))
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


def _insert(draw: DrawFn, data: bytes) -> bytes:
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.sampled_from(PIECES)).encode() + data[at:]


def _double_line(draw: DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(lines)))
    return b"".join(lines)


def _drop_line(draw: DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[draw(st.integers(0, len(lines) - 1))]
    return b"".join(lines)


def _indent_line(draw: DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = draw(st.sampled_from([b"  " + lines[at], lines[at].lstrip(b" "), lines[at][1:]]))
    return b"".join(lines)


_TEXT_CHANGES: Final[list[Callable[[DrawFn, bytes], bytes]]] = [
    *(_flip, _insert, _double_line, _drop_line, _indent_line, _truncate, _behead)
]


def _drop(draw: DrawFn, document: Any, places: list[Place]) -> None:
    place = draw(st.sampled_from(places))
    del _parent(document, place)[place[-1]]


def _retype(draw: DrawFn, document: Any, places: list[Place]) -> None:
    place = draw(st.sampled_from(places))
    _parent(document, place)[place[-1]] = copy.deepcopy(draw(st.sampled_from(WRONG)))


def _wrap(draw: DrawFn, document: Any, places: list[Place]) -> None:
    place = draw(st.sampled_from(places))
    value = _parent(document, place)[place[-1]]
    wrapped = [
        [value],
        {"x": value},
        str(value),
        *({name: value} for name in ("get_param", "get_attr", "Ref")),
    ]
    wrapped += [{"if": [True, value, value]}, {"list_join": [",", value]}, {"repeat": value}]
    _parent(document, place)[place[-1]] = draw(st.sampled_from(wrapped))


def _swap(draw: DrawFn, document: Any, places: list[Place]) -> None:
    """Exchange two nodes, or insert a copy of a node into itself."""
    item, other = draw(st.sampled_from(places)), draw(st.sampled_from(places))
    first, second = (copy.deepcopy(_parent(document, place)[place[-1]]) for place in (item, other))
    for place, value in ((item, second), (other, first)):
        parent = _parent(document, place)
        if parent is not None:
            parent[place[-1]] = value


def _double(draw: DrawFn, document: Any, places: list[Place]) -> None:
    """Insert a copy of a node next to it, or into another map."""
    place = draw(st.sampled_from(places))
    value = copy.deepcopy(_parent(document, place)[place[-1]])
    into = _parent(document, draw(st.sampled_from(places)))
    if isinstance(into, list):
        into.append(value)
    else:
        into[draw(st.sampled_from([f"{place[-1]}2", str(place[-1]), "x", "type", "properties", ""]))] = value


def _rename(draw: DrawFn, document: Any, places: list[Place]) -> None:
    place = draw(st.sampled_from(places))
    parent = _parent(document, place)
    if isinstance(parent, dict):
        name = draw(st.sampled_from(NAMES))
        parent[name] = parent.pop(place[-1])


_NODE_CHANGES: Final[list[Callable[[DrawFn, Any, list[Place]], None]]] = [
    *(_drop, _retype, _retype, _wrap, _swap, _double, _rename)
]
_read: dict[Path, dict[str, Any]] = {}


def _documents() -> Mapping[Path, dict[str, Any]]:
    """Return the sources that are readable, read."""
    if not _read:
        for path in SOURCES:
            try:
                _read[path] = parse(path.read_bytes(), Limits())
            except InvalidTemplate:  # some are there to be refused
                continue
    return _read


def _places(node: Any, path: Place = ()) -> Iterator[Place]:
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(pairs):
        yield (*path, key)
        yield from _places(value, (*path, key))


def _parent(document: Any, place: Place) -> Any:
    """Return the container of a node, None if it was removed."""
    for part in place[:-1]:
        try:
            document = document[part]
        except (LookupError, TypeError):
            return None
    last = place[-1]
    is_item = isinstance(document, list) and isinstance(last, int) and last < len(document)
    is_entry = isinstance(document, dict) and isinstance(last, str)
    return document if is_item or is_entry else None
