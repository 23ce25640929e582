"""The names of a group's members, and the selection of members to remove: by age, name or reference id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.template.index_ranges import Ordinals

MAX_DIGITS: Final = 18  # digits; members never have longer names

Victims = Literal["oldest", "newest", "outdated"]
Mode = Literal["append", "update"]
Named = Callable[[], Mapping[str, str]]  # names by reference id, loaded on demand


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
    first: Sequence[Ordinals] = (),
    outdated: Ordinals = Ordinals(),  # noqa: B008 - immutable
    victims: Victims = "oldest",
) -> Ordinals:
    """Return at most `count` members to keep; a higher number means a younger member.

    The members in `first` are removed first, set by set; then the `oldest` or the `newest`; with `outdated`,
    members with an older definition are removed before the remaining members, oldest first.
    """
    queues = [*first, outdated] if victims == "outdated" else first
    present = without_surplus(present, count, queues, youngest=victims == "newest")
    return present.head(count) if victims == "newest" else present.tail(count)


def without_surplus(
    present: Ordinals, count: int, queues: Iterable[Ordinals], *, youngest: bool = False
) -> Ordinals:
    """Remove members of these sets, in order, until at most `count` members remain; the oldest or the
    `youngest` of each set first.
    """
    for queue in queues:
        surplus = len(present) - count
        if surplus > 0:
            queued = present & queue
            present -= queued.tail(surplus) if youngest else queued.head(surplus)
    return present


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= MAX_DIGITS and (name[0] != "0" or name == "0")


def entries(policies: Iterable[JsonMapping]) -> list[Any]:
    """Return the entries of a ResourceGroup's removal policies."""
    return [entry for policy in policies for entry in policy.get("resource_list") or ()]


def skip_list(
    listed: Sequence[object],
    kept: Collection[str],
    mode: Mode,
    *,
    members: Collection[str] | None,
    by_reference: Named,
    strict: bool = False,
) -> list[str]:
    """Return the names that a ResourceGroup must not use for members, sorted.

    An entry is effective if it is the name of one of `members` (None: the group does not exist yet, and every
    name is effective), a name skipped before (`kept`), or the reference id of a member. Other entries are
    ignored, or rejected when `strict`. Skipped names stay skipped, unless the mode is `update`.

    Raises:
        ProviderError: `strict`, and an entry matches no member; no other member is removed instead.
    """
    skipped = set(kept) if mode == "append" else set()
    unknown = []
    references: Mapping[str, str] | None = None
    for entry in listed:
        name = str(entry)
        if members is None or name in kept or name in members:
            skipped.add(name)
            continue
        result = None
        if isinstance(entry, str):
            if references is None:
                references = by_reference()
            result = references.get(entry)
        if result is not None:
            skipped.add(result)
        else:
            unknown.append(name)
    if unknown and strict:
        raise not_members(unknown)
    return sorted(skipped)


def named(names: Iterable[object], members: Collection[str], by_reference: Named) -> list[str]:
    """Return the names of the members selected for removal.

    Raises:
        ProviderError: an entry matches no member's name or reference id; no other member is removed
            instead.
    """
    matches, unknown = [], []
    references: Mapping[str, str] | None = None
    for entry in names:
        name = str(entry)
        if name not in members:
            if references is None:
                references = by_reference()
            name = references.get(name, "")
        if name:
            matches.append(name)
        else:
            unknown.append(str(entry))
    if unknown:
        raise not_members(unknown)
    return list(dict.fromkeys(matches))


def not_members(names: Sequence[str]) -> ProviderError:
    """Return the error for entries that match no member."""
    return ProviderError(f"not among the members of the group: {', '.join(names)}", kind="NotFound")
