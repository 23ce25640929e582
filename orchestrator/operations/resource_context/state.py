"""A visited resource's values in the open, and how a visit to it ended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from orchestrator.engine.check.outcome import Outcome
from orchestrator.engine.check.visit import NodeData, Visit
from orchestrator.resources.base import Observation
from orchestrator.security.encryption import Cipher
from orchestrator.template.definition import ResourceProxy
from orchestrator.template.functions import ALL

# Kept beside a type's own notes.
GIVEN_METADATA: Final = "template's metadata"
SHADOWED_BY_NONE: Final = "stood in for"


@dataclass(slots=True)
class ResourceState:
    """A resource's values in the open, sealed in its row or not: as they were, then as they are."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None
    physical_id: str | None = None
    reference_id: str | None = None
    attempt: int = 0
    op: str | None = None
    action: str = "INIT"
    secret: bool = False
    unanswered: bool = False  # a create was sent and its fate is unknown: it may still be carried out
    requires: tuple[int, ...] = ()
    input_digests: tuple[str, ...] = ()  # what each of them handed on; "" when it only stands on it still
    value_digest: str | None = None  # of what this one hands on
    definition_id: int | None = None  # what it is being built from
    given_metadata: Mapping[str, Any] | None = None  # the template's, once a signal has changed the metadata
    stood_in_for: bool = False  # by OS::Heat::None: it is there, and hands on no attributes


@dataclass(frozen=True, slots=True)
class StepResult:
    """How a visit ended, with the resource as it is now; `started` if its operation began in this visit."""

    outcome: Outcome
    known: ResourceState
    started: bool = False


def in_progress_event_written(visit: Visit, known: ResourceState) -> bool:
    """Whether users have already read that this action of the resource is in progress."""
    resource = visit.resource
    return resource is not None and (resource.action, resource.status) == (known.action, "IN_PROGRESS")


class OperationNotRecorded(Exception):
    """Our own database failed before anything was asked for."""


Begin = Callable[[Visit, ResourceState], bool]  # opens an operation durably; False: the lease is lost
# Notes a copy, by its token, and what was told of it; returns the token it was asked for with, and what is
# known of it.
KeepCopy = Callable[
    [Visit, ResourceState, str, Mapping[str, Any] | None], tuple[str, Mapping[str, Any] | None]
]


def load_state(visit: Visit, cipher: Cipher) -> ResourceState:
    """Return the visited resource's stored values, opened."""
    resource = visit.resource
    assert resource is not None
    opened: Mapping[str, Any] = cipher.open(resource.sealed.encode()) if resource.sealed else {}
    data = dict(opened.get("data", resource.data) or {})
    return ResourceState(
        given_metadata=data.pop(GIVEN_METADATA, None),
        stood_in_for=data.pop(SHADOWED_BY_NONE, False),
        properties=opened.get("properties", resource.properties) or {},
        attributes=opened.get("attributes", resource.attributes) or {},
        data=data,
        metadata=opened.get("metadata", resource.metadata),
        physical_id=resource.physical_id,
        reference_id=opened.get("reference_id", resource.reference_id),
        attempt=resource.attempt,
        op=resource.op,
        action=resource.action,
        secret=bool(opened),
        requires=tuple(resource.requires),
        input_digests=tuple(resource.input_digests),
        value_digest=resource.value_digest,
        definition_id=resource.definition_id,
    )


def to_columns(known: ResourceState) -> dict[str, Any]:
    """Return the values of which all are sealed when one is secret."""
    data = dict(known.data)
    if known.given_metadata is not None:
        data[GIVEN_METADATA] = known.given_metadata
    if known.stood_in_for:
        data[SHADOWED_BY_NONE] = True
    return {
        "properties": dict(known.properties),
        "attributes": dict(known.attributes),
        "data": data,
        "metadata": known.metadata,
        "reference_id": known.reference_id,
    }


def proxy(data: NodeData, cipher: Cipher, used: Collection[str] = (ALL,)) -> ResourceProxy:
    """Return what functions may see of a requirement: of its attributes those `used`."""
    opened: Mapping[str, Any] = cipher.open(data.sealed.encode()) if data.sealed else {}
    attributes = opened.get("attributes", data.attributes) or {}
    if opened and ALL not in used:
        attributes = {name: attributes[name] for name in used if name in attributes}
    return ResourceProxy(
        name=data.name,
        reference_id=opened.get("reference_id", data.reference_id) or data.physical_id,
        attributes=attributes,
        action=data.action,
        status=data.status,
        secret=bool(opened),
    )


def observation_from_state(known: ResourceState, reason: str = "") -> Observation:
    """Return an observation of just what is known already."""
    return Observation(True, attributes=known.attributes, reference_id=known.reference_id, reason=reason)


def output_digest(known: ResourceState) -> str:
    """Return a digest of what a resource hands on to those that require it
    (docs/internals/protocol.md rule 7).
    """
    text = orjson.dumps(
        [known.reference_id, known.physical_id, known.attributes], option=orjson.OPT_SORT_KEYS
    )
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def merged_requirements(
    before: ResourceState, after: ResourceState
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return what a resource stands on while it goes from one definition to another: both
    (docs/internals/protocol.md rule 9).

    What it only stands on still has no digest: whoever looks at the change later must not take it for what
    the change was begun with.
    """
    both = dict.fromkeys(before.requires, "")
    both |= zip(after.requires, after.input_digests, strict=True)
    return tuple(both), tuple(both.values())
