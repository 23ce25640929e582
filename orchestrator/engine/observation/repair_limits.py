"""How many resources of a group or a stack are repaired at once: pure (operations/adr/0019)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

SHARE: Final = "as many resources of the {kind} are repaired at once as the limits permit"
IN_SERVICE: Final = "min_in_service of the group is {least}, and {count} members are in service"


class Limits(NamedTuple):
    """The share of a group or a stack that is repaired at once, and the number that always is."""

    share: float = 0.2
    at_least: int = 10


class Unit(NamedTuple):
    """A group or a stack whose resources are repaired together."""

    id: int
    kind: Literal["group", "stack"]
    size: int  # members or resources
    in_service: int = 0  # members
    min_in_service: int | None = 0  # None: it is not known


class Candidate(NamedTuple):
    """A fault whose repair may start."""

    fault_id: int
    member: str  # of the unit: the resource, or the member of the group that contains it
    broken: bool  # missing or failed: out of service already
    interrupts: bool  # its repair takes the member out of service


class Admission(NamedTuple):
    """The repairs that start now, and why the others do not, by fault."""

    started: frozenset[int]
    postponed: Mapping[int, str]


@dataclass(slots=True)
class _Member:
    faults: list[int] = field(default_factory=list)
    broken: bool = False
    interrupts: bool = False


def admit(candidates: Iterable[tuple[Unit, Candidate]], limits: Limits) -> Admission:
    """Return which repairs start: first of members that are out of service, then the oldest faults."""
    units: dict[Unit, dict[str, _Member]] = defaultdict(lambda: defaultdict(_Member))
    for unit, candidate in candidates:
        member = units[unit][candidate.member]
        member.faults.append(candidate.fault_id)
        member.broken |= candidate.broken
        member.interrupts |= candidate.interrupts
    started: set[int] = set()
    postponed: dict[int, str] = {}
    for unit, members in units.items():
        ordered = sorted(members.values(), key=lambda member: (not member.broken, min(member.faults)))
        for member, reason in zip(ordered, _reasons(unit, ordered, limits), strict=True):
            if reason:
                postponed.update(dict.fromkeys(member.faults, reason))
            else:
                started.update(member.faults)
    return Admission(frozenset(started), postponed)


def _reasons(unit: Unit, members: Sequence[_Member], limits: Limits) -> Iterable[str]:
    """Yield for each member why its repair waits; empty: it starts."""
    share = int(unit.size * limits.share)
    most = max(limits.at_least, share)
    # Members in service have no number that always starts: a small group would be interrupted as a whole.
    most_in_service = most if unit.kind == "stack" else max(1, share)
    spare = 1 if unit.min_in_service is None else max(unit.in_service - unit.min_in_service, 0)
    taken = 0
    for member in members:
        if taken >= (most if member.broken else most_in_service):
            yield SHARE.format(kind=unit.kind)
        elif unit.kind == "group" and not member.broken and member.interrupts and not spare:
            yield IN_SERVICE.format(least=unit.min_in_service, count=unit.in_service)
        else:
            spare -= not member.broken and member.interrupts
            taken += 1
            yield ""
