"""The decrypted values of a visited resource, and the result of a visit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import orjson

from orchestrator.engine.check.change import NO_NAMES
from orchestrator.engine.check.outcome import Outcome
from orchestrator.engine.check.visit import NodeData, ResourceVisit
from orchestrator.engine.output_digests import EARLY, SEPARATOR
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Observation
from orchestrator.security.encryption import Cipher
from orchestrator.template.definition import ResourceProxy
from orchestrator.template.functions import ALL
from orchestrator.template.secret_values import NO_SECRETS, SecretValues, both, bounded

# Stored keys: never change the texts. In the column `data`, next to the data of the type:
GIVEN_METADATA: Final = "template's metadata"
SHADOWED_BY_NONE: Final = "stood in for"
# In the body of a stored definition, the live attributes that its template uses:
USED_LIVE: Final = "used_live"
# The key of a stored definition with a type that the author of its revision may not use.
DENIED_TYPE: Final = "denied_type"
# Next to the encrypted columns:
SECRET_VALUES: Final = "secret_values"  # noqa: S105 - a key


@dataclass(slots=True)
class ResourceState:
    """The decrypted values of a resource: first as recorded, then updated by the steps of a visit.

    It is updated at once when the provider answers, so that an existing object reaches the row even if the
    next line of the step raises an error.
    """

    properties: JsonMapping = field(default_factory=dict)
    attributes: JsonMapping = field(default_factory=dict)
    data: JsonMapping = field(default_factory=dict)
    metadata: JsonMapping | None = None
    physical_id: str | None = None
    reference_id: str | None = None
    attempt: int = 0
    op: str | None = None
    action: str = "INIT"
    secret: bool = False
    secrets: SecretValues | None = NO_SECRETS  # None: any value may be secret
    desired_secrets: SecretValues | None = None  # of the definition, once it is evaluated
    unanswered: bool = False  # a request was sent and not answered: it may still be carried out
    refused: bool = False  # the request was refused for now: it is to be sent again, and does not arrive late
    requires: tuple[int, ...] = ()
    input_digests: tuple[str, ...] = ()  # parallel to `requires`; "" if only the old definition requires it
    value_digest: str | None = None  # of the outputs
    definition_id: int | None = None  # created or updated from this definition
    given_metadata: JsonMapping | None = None  # the template's, once a signal has changed the metadata
    shadowed: bool = False  # by OS::Heat::None: it exists, without attributes
    opened: bool = False  # this visit has recorded the start of an operation
    step: str | None = None  # of the open operation, started last
    corrected: bool = False  # recorded properties were replaced by observed ones
    requested: bool = False  # this visit's delete request was answered
    absent: bool = False  # after an outage: an absence was observed, and the object was not seen since
    # Of a scaling group: encrypted details of the signal that refreshes it after a failure.
    refresh_signal: bytes | None = None

    def hide(self, secrets: SecretValues | None) -> None:
        """Add secrets; None: any value may be secret."""
        self.secret, self.secrets = True, both(self.secrets, secrets)

    def is_secret(self, value: object, *, output: bool = False) -> bool:
        """Whether a property, or an `output` of a provider, contains a secret of the resource."""
        if not self.secret or self.secrets is None:
            return self.secret
        return self.secrets.may_be_in(value) if output else self.secrets.found_in(value)

    def forget_replaced_secrets(self) -> None:
        """Forget the secrets of an earlier definition once no value contains them."""
        if self.desired_secrets is None:  # not evaluated in this visit
            return
        if self.secrets is None:  # a row of an earlier version
            kept = SecretValues.within(self.data, self.metadata)
            self.secrets = both(self.desired_secrets, bounded(kept))
        else:
            values = (self.properties, self.attributes, self.data, self.metadata, self.reference_id)
            self.secrets = self.secrets.within_values(values)
        self.secret = self.secrets is None or bool(self.secrets)


class DesiredResource(NamedTuple):
    """An evaluated definition."""

    properties: JsonMapping
    metadata: Any
    secret: bool
    external_id: str | None
    secrets: SecretValues | None = NO_SECRETS


class StepResult(NamedTuple):
    """The outcome of a visit, and the resource's state after it; `started` if its operation began in it.

    `desired` is the evaluated definition of a resource to be replaced: its replacement uses it again.
    """

    outcome: Outcome
    state: ResourceState
    started: bool = False
    desired: DesiredResource | None = None


def in_progress_event_written(visit: ResourceVisit, state: ResourceState) -> bool:
    """Whether the event for the start of this action was already written."""
    resource = visit.resource
    return (resource.action, resource.status) == (state.action, "IN_PROGRESS")


class OperationNotRecorded(Exception):
    """Our own database failed before a request was sent to the provider."""


# Records the start of an operation durably; False: the lease is lost.
RecordStart = Callable[[ResourceVisit, ResourceState], bool]
# Records a resource snapshot by its token, with its data; returns the token of the first request and the
# recorded data.
RecordSnapshot = Callable[
    [ResourceVisit, ResourceState, str, JsonMapping | None], tuple[str, JsonMapping | None]
]


def load_state(visit: ResourceVisit, cipher: Cipher) -> ResourceState:
    """Return the recorded values of the visited resource, decrypted."""
    resource = visit.resource
    opened: JsonMapping = cipher.open(resource.sealed.encode()) if resource.sealed else {}
    data = dict(opened.get("data", resource.data) or {})
    return ResourceState(
        given_metadata=data.pop(GIVEN_METADATA, None),
        shadowed=data.pop(SHADOWED_BY_NONE, False),
        properties=opened.get("properties", resource.properties) or {},
        attributes=opened.get("attributes", resource.attributes) or {},
        data=data,
        metadata=opened.get("metadata", resource.metadata),
        physical_id=resource.physical_id,
        reference_id=opened.get("reference_id", resource.reference_id),
        attempt=resource.attempt,
        op=resource.op,
        step=resource.step,
        action=resource.action,
        secret=bool(opened),
        secrets=recorded_secrets(opened),
        requires=tuple(resource.requires),
        input_digests=tuple(resource.input_digests),
        value_digest=resource.value_digest,
        definition_id=resource.definition_id,
    )


def recorded_properties(properties: JsonMapping | None, sealed: str | None, cipher: Cipher) -> JsonMapping:
    """Return the recorded properties of a resource, decrypted."""
    opened: JsonMapping = cipher.open(sealed.encode()) if sealed else {}
    return opened.get("properties", properties) or {}


def to_columns(state: ResourceState) -> JsonObject:
    """Return the columns that are encrypted together if any of them is secret."""
    data = dict(state.data)
    if state.given_metadata is not None:
        data[GIVEN_METADATA] = state.given_metadata
    if state.shadowed:
        data[SHADOWED_BY_NONE] = True
    return {
        "properties": dict(state.properties),
        "attributes": dict(state.attributes),
        "data": data,
        "metadata": state.metadata,
        "reference_id": state.reference_id,
    }


def sealed_columns(state: ResourceState, values: JsonMapping, cipher: Cipher) -> str | None:
    """Return the columns of a secret resource, encrypted with its secret values; None for other resources."""
    if not state.secret:
        return None
    if state.secrets is not None:
        values = {**values, SECRET_VALUES: sorted(state.secrets.texts)}
    return cipher.seal(values).decode()


def recorded_secrets(opened: JsonMapping) -> SecretValues | None:
    """Return the secret values of a decrypted row; None if the row does not record them."""
    texts = opened.get(SECRET_VALUES)
    return (None if opened else NO_SECRETS) if texts is None else SecretValues(texts)


def proxy(data: NodeData, cipher: Cipher, used: Collection[str] = (ALL,)) -> ResourceProxy:
    """Return the view that functions have of a requirement, with only the `used` attributes if secret."""
    opened: JsonMapping = cipher.open(data.sealed.encode()) if data.sealed else {}
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
        secrets=recorded_secrets(opened),
    )


def observation_from_state(state: ResourceState, reason: str = "") -> Observation:
    """Return an observation of the recorded values, without asking the provider."""
    return Observation(True, attributes=state.attributes, reference_id=state.reference_id, reason=reason)


def output_digest(state: ResourceState, live: frozenset[str] = NO_NAMES) -> str:
    """Return a digest of the outputs that dependents use (docs/internals/protocol.md rule 7), without the
    `live` attributes: a change of theirs wakes no dependent.
    """
    attributes = without(state.attributes, live) if live else state.attributes
    text = orjson.dumps([state.reference_id, state.physical_id, attributes], option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def early_digest(state: ResourceState, early: frozenset[str] | None) -> str:
    """Return the digests of the ids and, unless it is None, of the ids and the `early` attributes."""
    digest = EARLY + output_digest(replace(state, attributes={}))
    if early is None:
        return digest
    attributes = {name: value for name, value in state.attributes.items() if name in early}
    return digest + SEPARATOR + EARLY + output_digest(replace(state, attributes=attributes))


def without(attributes: JsonMapping, live: frozenset[str]) -> JsonMapping:
    """Return the attributes that are not live."""
    return {name: value for name, value in attributes.items() if name not in live}


def merged_requirements(
    before: ResourceState, after: ResourceState
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the requirements of both definitions, for the duration of an update
    (docs/internals/protocol.md rule 9).

    A requirement of only the old definition has no digest: a later visit must not take it for an input of the
    update.
    """
    both = dict.fromkeys(before.requires, "")
    both |= zip(after.requires, after.input_digests, strict=True)
    return tuple(both), tuple(both.values())
