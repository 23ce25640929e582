"""Batches in which the members of a group get a new definition (docs/internals/resource-types.md §A6).

A batch creates members, updates the definition of some members, and removes some; all remaining members are
*untouched* and in service during the batch. Their number is at least `min_in_service`, or the current or
desired size of the group if that is smaller. If necessary, additional members beyond the desired size are
created temporarily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Value
from orchestrator.resources.nested_type import Rollout
from orchestrator.template.index_ranges import Ordinals

ROLLOUT: Final = "rollout"  # a key of stored data: number of the batch, number of batches, members to change
MAX_COUNTED: Final = 200  # batches that are computed in advance; the number of further batches is estimated

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


def begin_rollout(group: Group, first: Group, desired: Ordinals, policy: Policy, spare: FreeIndexes) -> Value:
    """Return the data about the batches of an update that begins with the step to `first`."""
    counted = [first, *islice(batches(first, desired, policy, spare), MAX_COUNTED)]
    further = -(-_pending(counted[-1], desired) // max(policy.batch, 1))
    return [0, len(counted) - int(first == group) + further, _pending(group, desired)]


def next_rollout(data: Mapping[str, Value], group: Group, after: Group, desired: Ordinals) -> Rollout | None:
    """Return the next batch, from `group` to `after`; None if no batch changes members."""
    number, known, total = data.get(ROLLOUT) or (0, 0, 0)
    if not total:
        return None
    left, rest = _pending(group, desired), _pending(after, desired)
    return Rollout(number + 1, max(known, number + 1), max(total - left, 0), max(left - rest, 0), total)


def with_rollout(data: Mapping[str, Value], rollout: Rollout | None) -> dict[str, Value]:
    """Return the data after a batch."""
    return (
        dict(data) if rollout is None else {**data, ROLLOUT: [rollout.batch, rollout.batches, rollout.total]}
    )


def _pending(group: Group, desired: Ordinals) -> int:
    """Return the number of members that are missing, or have an older definition."""
    return len(desired - (group.renewed & group.present))


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
