"""Root causes of a failure: the leaves of the tree of causes, with their places in the templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from orchestrator_console.json_types import JsonMapping


@dataclass(frozen=True, slots=True)
class Cause:
    """A root cause."""

    body: JsonMapping
    path: Sequence[str]  # names of resources, from the stack on the page
    stack_name: str  # the stack of the resource
    stack_id: str
    place: JsonMapping | None  # file, line, column and excerpt, if known


def leaves(causes: Sequence[JsonMapping], diagnostics: Sequence[JsonMapping]) -> list[Cause]:
    """Return the root causes in the order of the tree."""
    places = {entry["path"]: entry for entry in diagnostics if entry.get("line") is not None}
    return [_cause(leaf, places) for leaf in _walk(causes)]


def _walk(causes: Sequence[JsonMapping]) -> Iterator[JsonMapping]:
    for cause in causes:
        if cause["causes"]:
            yield from _walk(cause["causes"])
        else:
            yield cause


def _cause(leaf: JsonMapping, places: dict[str, JsonMapping]) -> Cause:
    path = "resources." + ".resources.".join(leaf["path"])
    name, stack_id = linked_stack(leaf, "stack") or ("", "")
    return Cause(leaf, leaf["path"], name, stack_id, places.get(path))


def linked_stack(body: JsonMapping, rel: str) -> tuple[str, str] | None:
    """Return name and id of a stack in the links of a document, None without such a link."""
    href = next((entry["href"] for entry in body["links"] if entry["rel"] == rel), None)
    if href is None:
        return None
    *_, name, stack_id = urlsplit(href).path.split("/")
    return unquote(name), stack_id
