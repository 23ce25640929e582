"""The size of a group after an adjustment, and the cooldown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from orchestrator.json_types import JsonMapping, JsonObject

Adjustment = Literal["change_in_capacity", "exact_capacity", "percent_change_in_capacity"]

# CloudFormation's names.
CFN_ADJUSTMENTS: Final[Mapping[str, Adjustment]] = {
    "ChangeInCapacity": "change_in_capacity",
    "ExactCapacity": "exact_capacity",
    "PercentChangeInCapacity": "percent_change_in_capacity",
}
COOLDOWN_END, IN_PROGRESS = "cooldown_end", "scaling_in_progress"  # keys of a group's metadata


def new_capacity(
    current: int, amount: float, adjustment_type: Adjustment, *, min_step: int | None, least: int, most: int
) -> int:
    """Return the new number of members after an adjustment, within the group's bounds.

    A percentage that amounts to less than one member counts as one member; other fractions are truncated.
    """
    match adjustment_type:
        case "change_in_capacity":
            new_size = current + math.trunc(amount)
        case "exact_capacity":
            new_size = math.trunc(amount)
        case "percent_change_in_capacity":
            change = current * amount / 100
            whole = math.trunc(change) or (math.ceil(change) if change > 0 else math.floor(change))
            if amount and min_step and abs(whole) < min_step:
                whole = min_step if amount > 0 else -min_step
            new_size = current + whole
    return bounded(new_size, least, most)


def bounded(size: int, least: int, most: int) -> int:
    """Return the nearest size within the bounds; the upper bound wins if they contradict each other."""
    return min(max(size, least), most)


def cooldown_end(metadata: JsonMapping) -> str:
    """Return the end of a group's last cooldown, "" if the group was not scaled yet."""
    recorded = metadata.get(COOLDOWN_END)
    return str(next(iter(recorded), "")) if isinstance(recorded, Mapping) else ""


def begun(metadata: JsonMapping) -> JsonObject:
    """Return a group's metadata while it is being scaled."""
    return {**metadata, IN_PROGRESS: True}


def finished(metadata: JsonMapping, cooldown: float | None, reason: str | None, now: datetime) -> JsonObject:
    """Return a group's metadata after scaling; without a `reason` the size was unchanged."""
    made = {**metadata, IN_PROGRESS: False}
    if reason is not None:
        ends_at = stamp(now + timedelta(seconds=max(cooldown or 0, 0)))
        made[COOLDOWN_END] = {max(ends_at, cooldown_end(metadata)): reason}
    return made


def utc_now() -> datetime:
    """Return the time, by this machine."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Return a time as Heat writes it here: texts that order as the times do."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
