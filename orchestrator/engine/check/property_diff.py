"""What it takes to turn a resource into what is wanted: pure.

Decided in one place for the check that does it and for the preview that only says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from orchestrator.resources.base import Change, Observation, ResourceType
from orchestrator.schema.properties import immutable_changes
from orchestrator.template.resource_registry_entries import is_template

NOTHING_ELSE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """The change, and the properties that differ; `immutable` are those of them that may not."""

    change: Change
    changed: frozenset[str]
    immutable: tuple[str, ...] = ()


def property_change(
    kind: ResourceType,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    metadata_before: Any = None,
    metadata_after: Any = None,
    also: frozenset[str] = NOTHING_ELSE,
) -> PropertyChange:
    """Return what turning the properties `before` into `after`, both as stored, takes.

    Other metadata alone is a change in place of no property. `also` are properties that will differ although
    their values are not known yet: of them `after` has the old ones.
    """
    changed = also | {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    immutable = immutable_changes(kind.properties, before, after)
    if also:
        declared = kind.properties
        immutable += sorted(name for name in also if name in declared and declared[name].immutable)
    change = kind.change(before, after, changed)
    if change == "keep" and (metadata_before or None) != (metadata_after or None):
        change = "update"
    return PropertyChange(change, changed, tuple(immutable))


def needs_other_type(there: str, wanted: str) -> bool:
    """Return whether what is `there` has to be replaced by what is `wanted`, both names of types.

    One template takes the place of another in the stack that is there (docs/internals/engine-semantics.md §6,
    rule 1).
    """
    return there != wanted and not (is_template(there) and is_template(wanted))


def as_stored(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties as they come back from the database: what JSON makes of them."""
    stored: dict[str, Any] = orjson.loads(orjson.dumps(dict(properties)))
    return stored


def with_drift(
    kind: ResourceType, before: Mapping[str, Any], after: Mapping[str, Any], seen: Observation
) -> dict[str, Any]:
    """Return the properties a resource was built with, those that can be changed in place as they were found
    (docs/internals/engine-semantics.md §6).

    What has drifted then differs from what is wanted, and an update repairs it. A property that was left to
    the provider, and still is, is none of ours.
    """
    declared = kind.properties
    drifted = {
        name: value
        for name, value in (seen.properties or {}).items()
        if (name in before or name in after) and name in declared and declared[name].update_allowed
    }
    return {**before, **drifted}
