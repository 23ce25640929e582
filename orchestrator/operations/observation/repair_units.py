"""The groups and stacks whose resources are repaired together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.observation.repair_limits import Unit
from orchestrator.resources.base import ResourceType
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.store.observation import repair_units, repairs
from orchestrator.store.observation.repair_units import Holder, Size

Db = Connection[TupleRow]

# Sections of update policies, and their key.
POLICIES: Final = (
    ("rolling_update", "min_in_service"),
    ("AutoScalingRollingUpdate", "MinInstancesInService"),
    ("RollingUpdate", "MinInstancesInService"),
)


class Membership(NamedTuple):
    """The unit of the resources of a stack; `member` contains them, None: they are members themselves."""

    unit: Unit
    member: str | None = None


def memberships(db: Db, types: Mapping[str, ResourceType], stacks: Collection[int]) -> dict[int, Membership]:
    """Return the innermost group around each stack, or the stack itself."""
    groups: dict[int, Holder] = {}
    for holder in repair_units.holders(db, stacks):
        if isinstance(types.get(holder.type), GroupType):
            groups.setdefault(holder.stack_id, holder)
    sizes = repair_units.sizes(db, {holder.child_id for holder in groups.values()})
    states = repairs.stacks(db, set(stacks) - groups.keys())
    return {
        id_: _of_group(groups[id_], sizes)
        if id_ in groups
        else Membership(Unit(id_, "stack", states[id_].resources if id_ in states else 0))
        for id_ in stacks
    }


def _of_group(group: Holder, sizes: Mapping[int, Size]) -> Membership:
    size = sizes.get(group.child_id, Size(group.child_id, 0, 0))
    least = _min_in_service(group.min_in_service, group.update_policy)
    return Membership(Unit(group.child_id, "group", size.size, size.in_service, least), group.below)


def _min_in_service(of_property: Any, update_policy: Any) -> int | None:
    """Return the number of a group; None if a function computes it."""
    found = of_property
    if isinstance(update_policy, Mapping):
        for section, key in POLICIES:
            policy = update_policy.get(section)
            if policy is not None:
                found = policy.get(key) if isinstance(policy, Mapping) else policy
    if found is None:
        return 0
    try:
        return int(found)
    except (TypeError, ValueError):
        return None
