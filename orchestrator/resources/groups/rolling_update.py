"""Batches in which the members of a group get a new definition (docs/internals/resource-types.md §A6).

A batch creates members, updates the definition of some members, and removes some; all remaining members are
*untouched* and in service during the batch. Their number is at least `min_in_service`, or the current or
desired size of the group if that is smaller. If necessary, additional members beyond the desired size are
created temporarily.
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


def with_unready_renewed(group: Group, unready: Ordinals) -> Group:
    """Return the group after a first step, which changes exactly the members that are not in service.

    Otherwise each batch would wait for members that may never become ready.
    """
    return Group(group.present, group.renewed | (unready & group.present))


def next_batch(
    group: Group, desired: Ordinals, policy: Policy, spare: FreeIndexes, *, lowest_first: bool = False
) -> Group | None:
    """Return the group after the next batch, None when it has exactly the members `desired`, all with the new
    definition.

    A batch starts with missing members, followed by members with an older definition, highest numbers first
    or `lowest_first`.
    """
    present, renewed = group.present, group.renewed & group.present
    missing, old = desired - present, (desired & present) - renewed
    if not missing and not old and present == desired:
        return None
    batch, least = max(policy.batch, 1), min(policy.min_in_service, len(desired), len(present))
    made = missing.head(batch)
    remaining = min(batch - len(made), len(old))
    spared = min(remaining, len(present) - least)  # maximum number of members out of service
    changed = old.head(spared) if lowest_first else old.tail(spared)
    helpers = spare(present | desired, remaining - spared) if remaining > spared else Ordinals()
    stay, beyond = desired & present, present - desired
    short = max(least - (len(stay) - len(changed)), 0)
    retained = (beyond & renewed).tail(short)
    retained |= (beyond - renewed).tail(short - len(retained))
    return Group(stay | retained | made | helpers, (renewed & (stay | retained)) | changed | made | helpers)


def batches(
    group: Group, desired: Ordinals, policy: Policy, spare: FreeIndexes, *, lowest_first: bool = False
) -> Iterator[Group]:
    """Yield the group after each batch."""
    while (after := next_batch(group, desired, policy, spare, lowest_first=lowest_first)) is not None:
        yield after
        group = after


def check_pauses(steps: Iterator[Group], policy: Policy, timeout_seconds: float) -> None:
    """Check that the pauses between batches fit into the timeout.

    Raises:
        ProviderError: they do not.
    """
    if policy.pause_seconds <= 0:
        return
    paused = -policy.pause_seconds  # no pause after the last batch
    for _ in steps:
        paused += policy.pause_seconds
        if paused >= timeout_seconds:
            raise ProviderError(
                "The current update policy will result in stack update timeout.", kind="ValueError"
            )
