"""Acme::V2026::Box: the example of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

from acme2026 import shelf
from orchestrator.errors import ProviderBusy, ProviderError, ProviderSilent
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

    name = "Acme::V2026::Box"
    properties: ClassVar = {
        "label": Property("string", "Text on the label.", default="", update_allowed=True),
        "litres": Property("integer", "Capacity in litres.", required=True, constraints=(Range(1, 100),)),
        "material": Property(
            "string",
            "Material of the box.",
            default="paper",
            constraints=(AllowedValues(("paper", "wood")),),
        ),
    }
    attributes: ClassVar = {
        "label": Attribute("Text on the label.", type="string"),
        "key": Attribute("Key of the lock.", type="string", secret=True),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Reject large paper boxes, a rule that the schema cannot express."""
        if properties.get("material") == "paper" and properties.get("litres", 0) > 50:
            return (Fault("A box of more than 50 litres must be of wood.", "material"),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request a box with the request token."""
        with shelf_errors():
            return Created(shelf.create(ctx.token, **props))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the box created by an earlier attempt with this token."""
        with shelf_errors():
            return f"box-{token}" if shelf.get(f"box-{token}") is not None else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the box from the service."""
        with shelf_errors():
            box = shelf.get(physical_id)
        if box is None:
            return Observation(exists=False)
        return Observation(exists=True, attributes={"label": box["label"], "key": box["key"]})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the label, the only updatable property."""
        with shelf_errors():
            shelf.update(physical_id, label=props["label"])
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the box; a missing box is not an error."""
        with shelf_errors():
            shelf.delete(physical_id)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        """Close the box."""
        with shelf_errors():
            shelf.update(physical_id, closed=True)

    def resume(self, ctx: Context, physical_id: str) -> None:
        """Open the box."""
        with shelf_errors():
            shelf.update(physical_id, closed=False)


@contextmanager
def shelf_errors() -> Iterator[None]:
    """Report an unreachable shelf as busy, never as an empty shelf."""
    try:
        yield
    except shelf.ShelfUnavailable as error:
        raise ProviderBusy(str(error)) from error
    except shelf.ShelfSilent as error:
        raise ProviderSilent(str(error)) from error
    except shelf.ShelfRefusal as error:
        raise ProviderError(str(error), kind="Refused") from error
