"""A fault with the facts about its resource, for decisions about its repair."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.observation.differences import Recorded
from orchestrator.engine.observation.drift import Drift, ProvenState
from orchestrator.engine.observation.repairs import Fault
from orchestrator.errors import InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.template.functions.member import NAME as MEMBER
from orchestrator.template.resource_registry import ResourceRegistry


class Damaged(NamedTuple):
    """A resource with a fault."""

    name: str
    type: ResourceType | None  # None: it is not installed
    never_active: bool
    recoverable: bool  # its type may repair it if it is in error
    grouped: bool  # a member of a group
    external: bool
    set_properties: Collection[str]  # in the template
    environment: JsonMapping  # of its stack


def fault_of(state: ProvenState, differences: Iterable[str], resource: Damaged) -> Fault:
    """Return the fault of a resource; `differences` are the paths that are not accepted."""
    names = {path.partition(".")[0] for path in differences}
    type_ = resource.type
    declared = type_.properties if type_ is not None else {}
    holds_data = (type_ is None or type_.stateful) and not resource.never_active
    if holds_data and resource.grouped and type_ is not None and not type_.stateful_in_groups:
        holds_data = False
    fixed = frozenset(n for n in names if n not in declared or not declared[n].update_allowed)
    return Fault(
        state,
        tuple(sorted(names)),
        holds_data=holds_data,
        fixed=fixed,
        unset=fixed - set(resource.set_properties),
        external=resource.external,
        recoverable=resource.recoverable and type_ is not None and type_.can_recover,
        restricted=restricted_actions(resource.environment, resource.name),
    )


def observed_fault(
    visit: ResourceVisit,
    type_: ResourceType,
    recorded: Recorded,
    drift: Drift,
    environment: JsonMapping,
    *,
    grouped: bool,
) -> Fault:
    """Return the fault of a resource that was observed just now."""
    resource, definition = visit.resource, visit.definition
    paths = [difference.property for difference in drift.differences]
    given = (definition.body.get("properties") if definition is not None else None) or {}
    damaged = Damaged(
        resource.name,
        type_,
        never_active=resource.status == "FAILED" and resource.action == "CREATE",
        recoverable=resource.status == "COMPLETE",
        grouped=grouped,
        external=definition is not None and definition.body.get("external_id") is not None,
        set_properties=set_properties(
            given if isinstance(given, Mapping) else (),
            [name for name, value in recorded.properties.items() if value is not None],
            paths,
        ),
        environment=environment,
    )
    return fault_of(drift.state, paths, damaged)


def set_properties(
    written: Collection[str], recorded: Collection[str], differences: Iterable[str]
) -> Collection[str]:
    """Return the properties that the definition of a resource sets. The definition of a member of a group is
    computed by a function; then these are the recorded ones and, if nothing is known about them, all.
    """
    if MEMBER not in written:
        return written
    return recorded or {path.partition(".")[0] for path in differences}


def is_in_group(types: Mapping[str, ResourceType], holders: Iterable[str]) -> bool:
    """Whether a stack belongs to a group; `holders` are the types of the resources around it."""
    return any(isinstance(types.get(name), GroupType) for name in holders)


def restricted_actions(environment: JsonMapping, name: str) -> frozenset[str]:
    """Return the actions that an environment forbids for a resource."""
    section = environment.get("resource_registry")
    if not section:
        return frozenset()
    try:
        return ResourceRegistry.build(section).restricted_actions(name)
    except InvalidTemplate:
        return frozenset({"update", "replace"})
