"""The requests of scaling policies to a group, combined into a single change of its size.

Adjustments apply in order: each to the size that the previous adjustments reached. An adjustment that cannot
be applied is rejected with a reason, and does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.errors import ProviderError
from orchestrator.resources.groups import capacity
from orchestrator.template.index_ranges import Ordinals


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a group's size, and the desired size if specified."""

    minimum: int
    maximum: int | None
    desired: int | None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A scaling policy's request to a group: a change of size, or specific members to remove."""

    amount: float = 0
    adjustment_type: capacity.Adjustment = "change_in_capacity"
    min_step: int | None = None
    cooldown: float | None = None  # None: the cooldown of the group
    type_label: str = ""  # the adjustment type as spelled in the policy
    remove: tuple[str, ...] = ()  # names or reference ids


@dataclass(frozen=True, slots=True)
class Rejection:
    """The reason why an adjustment is not applied; `failed` if the request is invalid."""

    reason: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Cooldown:
    """The cooldown of a group: its end ("" if none is in effect), and the group's own length in seconds."""

    until: str
    seconds: float | None


@dataclass(slots=True)
class Combination:
    """The size of a group, and its members to be removed, while adjustments are applied in order."""

    present: Ordinals
    failed: Ordinals
    out_of_service: Ordinals  # all members, including failed members
    bounds: Bounds
    cooldown: Cooldown
    now: datetime
    named: Callable[[tuple[str, ...]], Ordinals]  # returns members by name; raises ProviderError
    size: int = 0
    broken: int = 0  # failed members that `size` does not include
    removed: Ordinals = Ordinals()  # noqa: RUF009 - immutable
    is_resized: bool = False  # by an adjustment of the size

    def __post_init__(self) -> None:
        """Start with the members that have not failed."""
        self.size = len(self.present - self.failed)
        self.broken = len(self.present) - self.size

    def apply_all(self, adjustments: Sequence[Adjustment]) -> list[Rejection | None]:
        """Apply adjustments in order; return None for each that is applied."""
        return [self._apply(adjustment) for adjustment in adjustments]

    def _apply(self, adjustment: Adjustment) -> Rejection | None:
        try:
            rejection = self._remove(adjustment) if adjustment.remove else self._resize(adjustment)
        except ProviderError as error:
            return Rejection(str(error), failed=True)
        seconds = self.cooldown.seconds if adjustment.cooldown is None else adjustment.cooldown
        if rejection is None and seconds and seconds > 0:
            ends_at = capacity.stamp(self.now + timedelta(seconds=seconds))
            self.cooldown = Cooldown(max(ends_at, self.cooldown.until), self.cooldown.seconds)
        return rejection

    def _resize(self, adjustment: Adjustment) -> Rejection | None:
        """Change the size. A growth counts the members that have not failed; a reduction counts all members,
        because it removes failed members first.
        """
        minimum, maximum = self.bounds.minimum, self.bounds.maximum
        is_reduction = adjustment.amount < 0 and adjustment.adjustment_type != "exact_capacity"
        current = self.size + self.broken if is_reduction else self.size
        size = capacity.new_capacity(
            current,
            adjustment.amount,
            adjustment.adjustment_type,
            min_step=adjustment.min_step,
            least=minimum,
            most=current if maximum is None else maximum,
        )
        if size == current:
            return Rejection(self._bound_reached(adjustment))
        if self._is_cooling_down():
            return Rejection(f"cooldown until {self.cooldown.until}Z")
        self.size, self.broken, self.is_resized = size, 0, True
        return None

    def _remove(self, adjustment: Adjustment) -> Rejection | None:
        """Remove members by name. The removal of members out of service needs no cooldown and no minimum: if
        necessary, new members replace them.
        """
        members = self.named(adjustment.remove)
        in_service = members - self.out_of_service - self.removed
        remaining = self.present - self.removed - members
        size = self.size - len(in_service) if self.is_resized else len(remaining)
        if in_service and self._is_cooling_down():
            return Rejection(f"cooldown until {self.cooldown.until}Z")
        if in_service and size < self.bounds.minimum:
            minimum = self.bounds.minimum
            raise ProviderError(f"the group would have {size} members; the minimum is {minimum}")
        self.size, self.broken = max(size, self.bounds.minimum), 0
        self.removed |= members
        return None

    def _is_cooling_down(self) -> bool:
        return capacity.stamp(self.now) < self.cooldown.until

    def _bound_reached(self, adjustment: Adjustment) -> str:
        bounds, size = self.bounds, self.size
        change = adjustment.amount - (size if adjustment.adjustment_type == "exact_capacity" else 0)
        if change > 0 and bounds.maximum is not None and size >= bounds.maximum:
            return f"at its maximum of {_members(bounds.maximum)}"
        if change < 0 and size <= bounds.minimum:
            return f"at its minimum of {_members(bounds.minimum)}"
        return f"it has {_members(size)} already"


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"
