"""A provider with lists, and one without; the test damages their objects and their answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from orchestrator.errors import ProviderBusy, ProviderError
from orchestrator.resources.base import Context, Created, Observation, Property, ResourceType, Value


@dataclass
class Shelf:
    """Existing objects, and the calls."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # objects that lists leave out
    calls: list[str] = field(default_factory=list)
    breaks_after: int | None = None  # objects of a list
    silent: bool = False  # single objects are not answered
    writes: list[str] = field(default_factory=list)  # changes
    refuses: bool = False  # updates
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def types(self) -> dict[str, ResourceType]:
        return {kind.name: kind(self) for kind in (Box, Crate)}

    def boxes(self) -> list[str]:
        return sorted(self.objects)


class Crate(ResourceType):
    """A type that is observed by single requests."""

    name = "Shelf::Crate"
    service = "crates"
    properties: ClassVar = {
        "label": Property("string", "Text.", update_allowed=True),
        "name": Property("string", "Name.", update_allowed=True),
        "holder": Property("string", "Set by others.", default="", update_allowed=True, theirs=True),
    }

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def chosen(self, ctx: Context) -> Mapping[str, Value]:
        return {"name": ctx.physical_name}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        id_ = f"{self.service}-{next(self.shelf.numbers)}"
        self.shelf.writes.append(f"create {id_}")
        self.shelf.objects[id_] = {
            "label": props.get("label"),
            "name": props.get("name") or ctx.physical_name,
            "holder": props.get("holder"),
        }
        return Created(id_)

    def find(self, ctx: Context, token: str) -> str | None:
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        if ctx.listed is not None and physical_id in ctx.listed:
            found = ctx.listed[physical_id]
        else:
            self.shelf.calls.append(f"get {physical_id}")
            if self.shelf.silent:
                raise ProviderBusy("the cell is down")
            found = self.shelf.objects.get(physical_id)
        if found is None:
            return Observation(exists=False)
        if found.get("error"):
            return Observation(exists=True, error=found["error"], busy=found.get("busy", False))
        return Observation(exists=True, properties={key: found[key] for key in ("label", "name", "holder")})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        if self.shelf.refuses:
            raise ProviderError("the shelf is locked")
        self.shelf.writes.append(f"update {physical_id}")
        self.shelf.objects[physical_id]["label"] = props.get("label")
        self.shelf.objects[physical_id]["name"] = props.get("name") or ctx.physical_name
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        if self.shelf.objects.pop(physical_id, None) is not None:
            self.shelf.writes.append(f"delete {physical_id}")


class Box(Crate):
    """A type with lists."""

    name = "Shelf::Box"
    service = "boxes"
    lists = "boxes"

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        self.shelf.calls.append("list")
        for number, (id_, found) in enumerate(sorted(self.shelf.objects.items())):
            if number == self.shelf.breaks_after:
                raise ProviderBusy("503")
            if id_ not in self.shelf.hidden:
                yield id_, dict(found)
