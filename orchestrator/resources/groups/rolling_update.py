"""In which batches the members of a group get a new definition (docs/internals/resource-types.md §A6).

A batch makes members, gives others the new definition and lets some go; whoever it does none of these to is
*untouched* and in service meanwhile. There are never fewer of those than `min_in_service`, or than the group
has or is to have if that is less: where there would be, members beyond the target are made for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from orchestrator.errors import ProviderError
from orchestrator.template.index_ranges import Ordinals

FreeIndexes = Callable[[Ordinals, int], Ordinals]  # (used indexes, count) -> indexes of new members


@dataclass(frozen=True, slots=True)
class Policy:
    """How many members are changed at a time, and how long it takes until the next are."""

    batch: int = 1
    min_in_service: int = 0
    pause_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """The members in service, and which of them have the new definition."""

    present: Ordinals
    renewed: Ordinals


def next_batch(
    group: Group, wanted: Ordinals, policy: Policy, spare: FreeIndexes, *, lowest_first: bool = False
) -> Group | None:
    """Return the group as it is to be after the next batch, None when it has just the members `wanted`, all
    with the new definition.

    Members that are missing come first, then those with an older definition, the highest numbers first or the
    `lowest_first`.
    """
    present, renewed = group.present, group.renewed & group.present
    missing, old = wanted - present, (wanted & present) - renewed
    if not missing and not old and present == wanted:
        return None
    batch, least = max(policy.batch, 1), min(policy.min_in_service, len(wanted), len(present))
    made = missing.head(batch)
    left = min(batch - len(made), len(old))
    spared = min(left, len(present) - least)  # how many may be out of service at once
    changed = old.head(spared) if lowest_first else old.tail(spared)
    helpers = spare(present | wanted, left - spared) if left > spared else Ordinals()
    stay, beyond = wanted & present, present - wanted
    short = max(least - (len(stay) - len(changed)), 0)
    kept = (beyond & renewed).tail(short)
    kept |= (beyond - renewed).tail(short - len(kept))
    return Group(stay | kept | made | helpers, (renewed & (stay | kept)) | changed | made | helpers)


def batches(
    group: Group, wanted: Ordinals, policy: Policy, spare: FreeIndexes, *, lowest_first: bool = False
) -> Iterator[Group]:
    """Yield the group after each batch."""
    while (after := next_batch(group, wanted, policy, spare, lowest_first=lowest_first)) is not None:
        yield after
        group = after


def check_pauses(steps: Iterator[Group], policy: Policy, timeout_seconds: float) -> None:
    """Make sure that the pauses between batches leave time for the batches.

    Raises:
        ProviderError: they do not.
    """
    if policy.pause_seconds <= 0:
        return
    paused = -policy.pause_seconds  # there is none after the last
    for _ in steps:
        paused += policy.pause_seconds
        if paused >= timeout_seconds:
            raise ProviderError(
                "The current update policy will result in stack update timeout.", kind="ValueError"
            )
