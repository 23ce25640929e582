"""Acme::Box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from acme_shelf import shelf
from orchestrator.errors import ProviderBusy
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.schema.constraints import AllowedValues, Range


class Box(ResourceType):
    """A box on Acme's shelf."""

    name = "Acme::Box"
    properties: ClassVar = {
        "label": Property("string", "What is written on it.", default="", update_allowed=True),
        "litres": Property("integer", "How much goes in.", required=True, constraints=(Range(1, 100),)),
        "material": Property(
            "string",
            "What it is made of.",
            default="paper",
            constraints=(AllowedValues(("paper", "wood")),),
        ),
    }
    attributes: ClassVar = {
        "label": Attribute("What is written on it.", type="string"),
        "key": Attribute("What opens it.", type="string", secret=True),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A rule that the schema cannot say: large boxes are of wood."""
        if properties.get("material") == "paper" and properties.get("litres", 0) > 50:
            return (Fault("A box of more than 50 litres must be of wood.", "material"),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Ask for a box, under the request token."""
        with reached():
            return Created(shelf.make(ctx.token, **props))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the box that an earlier try with this token made."""
        with reached():
            return f"box-{token}" if shelf.look(f"box-{token}") is not None else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Look at the box."""
        with reached():
            box = shelf.look(physical_id)
        if box is None:
            return Observation(exists=False)
        return Observation(exists=True, attributes={"label": box["label"], "key": box["key"]})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Write another label; nothing else comes here."""
        with reached():
            shelf.change(physical_id, label=props["label"])
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the box; a missing box is fine."""
        with reached():
            shelf.remove(physical_id)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Close it."""
        with reached():
            shelf.change(physical_id, closed=True)

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Open it again."""
        with reached():
            shelf.change(physical_id, closed=False)


@contextmanager
def reached() -> Iterator[None]:
    """An unreachable shelf is not an empty shelf: the call is retried."""
    try:
        yield
    except shelf.NoShelf as error:
        raise ProviderBusy(str(error)) from error
