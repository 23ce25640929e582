"""The names of a group's members, and the order of their removal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from orchestrator.template.index_ranges import Ordinals

MAX_DIGITS: Final = 18  # digits; longer names are never those of members

Victims = Literal["oldest", "newest", "outdated"]


def numbered(names: Iterable[str]) -> Ordinals:
    """Return the indexes among names; an index has neither a sign nor leading zeros."""
    return Ordinals.of(int(name) for name in names if _is_number(name))


def free(count: int, skipped: Ordinals) -> Ordinals:
    """Return the first `count` numbers that are not skipped: the members of a ResourceGroup."""
    return (Ordinals.span(0, count + len(skipped)) - skipped).head(count)


def remaining(
    present: Ordinals,
    count: int,
    *,
    failed: Ordinals = Ordinals(),  # noqa: B008 - immutable
    outdated: Ordinals = Ordinals(),  # noqa: B008
    victims: Victims = "oldest",
) -> Ordinals:
    """Return at most `count` members to keep; a higher number means a younger member.

    Failed members are removed first, then the `oldest` or the `newest`; with `outdated`, members with an
    older definition are removed before the remaining members, oldest first.
    """
    queues = [failed, outdated] if victims == "outdated" else [failed]
    for queue in queues:
        surplus = len(present) - count
        if surplus > 0:
            present -= (present & queue).head(surplus)
    return present.head(count) if victims == "newest" else present.tail(count)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS and (name[0] != "0" or name == "0")
