"""Acme::ListedBox."""

from __future__ import annotations

from collections.abc import Iterable

from acme_shelf import shelf
from acme_shelf.box import Box, shelf_errors
from orchestrator.resources.base import Context, Observation, Value


class ListedBox(Box):
    """A box, observed with the list of all boxes."""

    name = "Acme::ListedBox"
    lists = "boxes"

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield all boxes by physical id."""
        with shelf_errors():
            yield from shelf.all_boxes()

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Find the box in the list, or read it from the service."""
        box = (ctx.listed or {}).get(physical_id)
        if box is None:
            return super().observe(ctx, physical_id)
        return Observation(exists=True, attributes={"label": box["label"], "key": box["key"]})
