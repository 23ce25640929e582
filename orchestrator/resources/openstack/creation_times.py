"""Times of creation: whether an object may be the result of the open create."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from orchestrator.resources.base import Context

CLOCK_SECONDS: Final = 30.0  # tolerated difference between the clocks of a service and of the database


def is_created_by(ctx: Context, created_at: str | None) -> bool:
    """Return whether an object with a unique name may be the result of the open create: it is not older.

    An object without a time of creation may be.
    """
    created = parsed_time(created_at)
    if created is None:
        return True
    return (datetime.now(UTC) - created).total_seconds() <= ctx.elapsed_seconds + CLOCK_SECONDS


def parsed_time(value: str | None) -> datetime | None:
    """Return a time in a service's notation, UTC; None without one."""
    if not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
