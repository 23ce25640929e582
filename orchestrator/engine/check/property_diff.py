"""Differences between recorded and desired properties: pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import orjson

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Change, Observation, ResourceType
from orchestrator.resources.substitutes import SUBSTITUTES
from orchestrator.schema.properties import immutable_changes
from orchestrator.template.resource_registry_entries import is_template

NOTHING_ELSE: Final[frozenset[str]] = frozenset()
NOTHING_CHOSEN: Final[JsonMapping] = {}
UNSET: Final = (None, "")


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """The change, and the properties that differ; `immutable` are those that must not differ."""

    change: Change
    changed: frozenset[str]
    immutable: tuple[str, ...] = ()


def property_change(
    resource_type: ResourceType,
    before: JsonMapping,
    after: JsonMapping,
    metadata_before: object = None,
    metadata_after: object = None,
    also: frozenset[str] = NOTHING_ELSE,
) -> PropertyChange:
    """Return the change from the properties `before` to `after`, both as stored.

    A change of only the metadata is an update of no property. `also` are properties that will differ with
    values that are not known yet; `after` has their old values.
    """
    changed = also | changed_properties(resource_type, before, after)
    immutable = [
        name for name in immutable_changes(resource_type.properties, before, after) if name in changed
    ]
    if also:
        declared = resource_type.properties
        immutable += sorted(name for name in also if name in declared and declared[name].immutable)
    change = resource_type.change(before, after, changed)
    if change == "keep" and (metadata_before or None) != (metadata_after or None):
        change = "update"
    return PropertyChange(change, changed, tuple(immutable))


def changed_properties(
    resource_type: ResourceType, before: JsonMapping, after: JsonMapping
) -> frozenset[str]:
    """Return the names of the properties whose values differ; the type decides about unlike values."""
    return frozenset(
        name
        for name in before.keys() | after.keys()
        if (old := before.get(name)) != (new := after.get(name)) and not resource_type.equal(name, old, new)
    )


def needs_other_type(recorded: str, desired: str) -> bool:
    """Return whether the recorded type must be replaced by the desired type, both by name.

    A template replaces another template in the existing child stack, and a substitute takes over a resource
    of its deprecated type (docs/internals/engine-semantics.md §6, rule 1).
    """
    if recorded == desired:
        return False
    return SUBSTITUTES.get(recorded) != desired and not (is_template(recorded) and is_template(desired))


def as_stored(properties: JsonMapping) -> JsonObject:
    """Return properties as they are read back from the database, after a round trip through JSON."""
    stored: JsonObject = orjson.loads(orjson.dumps(dict(properties)))
    return stored


def with_drift(
    resource_type: ResourceType,
    before: JsonMapping,
    after: JsonMapping,
    observation: Observation,
    only: Collection[str] | None = None,
    chosen: JsonMapping = NOTHING_CHOSEN,
) -> JsonObject:
    """Return the recorded properties, with observed values for updatable properties
    (docs/internals/engine-semantics.md §6), or for those of `only`, updatable or not.

    A drifted property then differs from the desired value, and an update repairs it. A property that cannot
    be updated gets its observed value only if that is the desired one: nothing is to be done. A property that
    neither the old nor the new definition sets belongs to the provider, unless it is `chosen` by the
    orchestrator; a property that is `theirs` belongs to others.
    """
    declared = resource_type.properties

    def counts(name: str, value: object) -> bool:
        if only is not None:
            return name in only
        return declared[name].update_allowed or (
            name in after and (after[name] == value or resource_type.equal(name, after[name], value))
        )

    def is_drifted(name: str, value: object) -> bool:
        if name not in declared or declared[name].theirs or not counts(name, value):
            return False
        if before.get(name) in UNSET and after.get(name) in UNSET and name in chosen:
            return value is not None and not resource_type.equal(name, chosen[name], value)
        known = name in before or name in after
        return known and not resource_type.equal(name, before.get(name), value)

    found = observation.properties or {}
    return {**before, **{name: value for name, value in found.items() if is_drifted(name, value)}}
