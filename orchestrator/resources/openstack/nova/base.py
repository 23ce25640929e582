"""Declarations that nova's types share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import ClassVar, Final

from orchestrator.clients.openstack.compute import Compute
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack

CLOCK_SECONDS: Final = 30.0  # tolerated difference between the clocks of nova and of the database


class NovaType(ResourceType):
    """A type of nova; its attribute `show` is nova's own view of the object."""

    service: ClassVar[str] = "nova"
    endpoint_type: ClassVar[str] = "compute"
    live_show: ClassVar[bool] = True

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the object, None if it does not exist."""
        raise NotImplementedError(self.name)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return `show`, the only live attribute of most types."""
        return {"show": self.raw(ctx, physical_id)} if "show" in names else {}


def compute(ctx: Context) -> Compute:
    """Return nova, called with the stack's credential."""
    return openstack(ctx).compute


def is_created_by(ctx: Context, created_at: str | None) -> bool:
    """Return whether an object with a unique name may be the result of the open create: it is not older.

    An object without a time of creation may be.
    """
    created = parsed_time(created_at)
    if created is None:
        return True
    return (datetime.now(UTC) - created).total_seconds() <= ctx.elapsed_seconds + CLOCK_SECONDS


def parsed_time(value: str | None) -> datetime | None:
    """Return a time in nova's and cinder's notation, UTC; None without one."""
    if not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
