"""The change of a template that makes the observed state the desired state: pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from orchestrator.engine.observation.drift import DriftState
from orchestrator.json_types import JsonMapping, JsonObject

NESTED: Final = "a nested stack defines it: change the template of that stack"
IN_ERROR: Final = "an object in error is no desired state: repair it"
EXTERNAL: Final = "the resource is external"
GENERATED: Final = "the template does not contain it in this form"
SECRET: Final = "its value is secret"  # noqa: S105 - a reason


class Candidate(NamedTuple):
    """A resource that differs."""

    path: str  # in the stack
    name: str
    verdict: DriftState
    values: JsonMapping  # the observed values of the properties that differ
    secrets: frozenset[str] = frozenset()
    own: bool = True  # the template of the stack defines it
    external: bool = False
    reason: str = ""  # why it is unknown
    required_by: Sequence[str] = ()  # resources, and outputs


class Left(NamedTuple):
    """A difference that no change of the template adopts."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Adoption:
    """The operations of a JSON Patch (RFC 6902), the changed template, and what it leaves."""

    patch: Sequence[JsonObject]
    template: JsonObject
    left: Sequence[Left]


@dataclass(slots=True)
class _Editor:
    document: JsonObject
    resources: str  # names of sections
    properties: str
    patch: list[JsonObject] = field(default_factory=list)

    def remove(self, name: str) -> None:
        del self.document[self.resources][name]
        self.patch.append({"op": "remove", "path": _pointer(self.resources, name)})

    def set(self, name: str, property_: str, value: Any) -> None:
        body = self.document[self.resources][name]
        if self.properties not in body:
            body[self.properties] = {}
            self._add("add", {}, name, self.properties)
        op = "replace" if property_ in body[self.properties] else "add"
        body[self.properties][property_] = value
        self._add(op, value, name, self.properties, property_)

    def _add(self, op: str, value: Any, *path: str) -> None:
        self.patch.append({"op": op, "path": _pointer(self.resources, *path), "value": copy.deepcopy(value)})


def adoption(document: JsonMapping, sections: tuple[str, str], candidates: Sequence[Candidate]) -> Adoption:
    """Return the adoption of resources that differ; `sections` are the template's words for resources and
    properties.
    """
    editor = _Editor(copy.deepcopy(dict(document)), *sections)
    left: list[Left] = []
    for item in candidates:
        if obstacle := _obstacle(editor, item):
            left.append(Left(item.path, obstacle))
        elif item.verdict == "MISSING":
            editor.remove(item.name)
        else:
            for name in sorted(item.values):
                if name in item.secrets:
                    left.append(Left(f"{item.path}.{sections[1]}.{name}", SECRET))
                else:
                    editor.set(item.name, name, item.values[name])
    return Adoption(editor.patch, editor.document, left)


def _obstacle(editor: _Editor, item: Candidate) -> str:
    if item.verdict == "UNKNOWN":
        return f"it could not be observed: {item.reason}"
    if not item.own:
        return NESTED
    if item.external:
        return EXTERNAL
    if item.verdict == "FAILED":
        return IN_ERROR
    body = (editor.document.get(editor.resources) or {}).get(item.name)
    if not isinstance(body, Mapping) or not isinstance(body.get(editor.properties, {}), dict):
        return GENERATED
    if item.verdict == "MISSING" and item.required_by:
        if len(item.required_by) == 1:
            return f"{item.required_by[0]} refers to it: remove the reference first"
        return f"{', '.join(item.required_by)} refer to it: remove the references first"
    return ""


def _pointer(*path: str) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
