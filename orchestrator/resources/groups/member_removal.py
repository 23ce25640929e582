"""Which members of a group somebody wants to go, by name or by what they are known by elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from orchestrator.errors import ProviderError

Mode = Literal["append", "update"]
Named = Callable[[], Mapping[str, str]]  # names by reference id, asked for only when needed


def entries(policies: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return what the removal policies of a ResourceGroup list."""
    return [entry for policy in policies for entry in policy.get("resource_list") or ()]


def skip_list(
    listed: Sequence[Any],
    kept: Collection[str],
    mode: Mode,
    *,
    members: Collection[str] | None,
    by_reference: Named,
    strict: bool = False,
) -> list[str]:
    """Return the names that a ResourceGroup never gives to a member, sorted.

    An entry counts when it names one of `members` (None: before there are any, when every name counts), one
    that was skipped before (`kept`), or as a text the reference id of a member. Others are passed over, or
    refused when `strict`. What was skipped stays so, unless the mode is `update`.

    Raises:
        ProviderError: `strict`, and an entry is no member's; nobody goes in its place.
    """
    skipped = set(kept) if mode == "append" else set()
    unknown = []
    references: Mapping[str, str] | None = None
    for entry in listed:
        name = str(entry)
        if members is None or name in kept or name in members:
            skipped.add(name)
            continue
        found = None
        if isinstance(entry, str):
            if references is None:
                references = by_reference()
            found = references.get(entry)
        if found is not None:
            skipped.add(found)
        else:
            unknown.append(name)
    if unknown and strict:
        raise not_members(unknown)
    return sorted(skipped)


def named(wanted: Iterable[Any], members: Collection[str], by_reference: Named) -> list[str]:
    """Return the names of the members that somebody names to go.

    Raises:
        ProviderError: one is no member's name or reference id; nobody goes in its place.
    """
    found, unknown = [], []
    references: Mapping[str, str] | None = None
    for entry in wanted:
        name = str(entry)
        if name not in members:
            if references is None:
                references = by_reference()
            name = references.get(name, "")
        if name:
            found.append(name)
        else:
            unknown.append(str(entry))
    if unknown:
        raise not_members(unknown)
    return list(dict.fromkeys(found))


def not_members(names: Sequence[str]) -> ProviderError:
    """Return the refusal to remove what is not there."""
    return ProviderError(f"not among the members of the group: {', '.join(names)}", kind="NotFound")
