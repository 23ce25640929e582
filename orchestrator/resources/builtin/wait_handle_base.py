"""Common base of wait condition handles: received signals, stored as metadata by id
(docs/internals/resource-types.md §A8).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import orjson

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Context,
    Created,
    Grant,
    Observation,
    ResourceType,
    Signalled,
    Value,
)
from orchestrator.resources.ec2_signatures import access_key, new_secret, signal_url

SUCCESS: Final = "SUCCESS"
FAILURE: Final = "FAILURE"
INVALID: Final = "Metadata format invalid"
# JSON of all signals of a handle: some 13,000 short signals. Each signal rewrites all of it.
MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SignalKeys:
    """The keys of a signal."""

    status: str
    reason: str
    data: str
    id: str

    @property
    def all(self) -> frozenset[str]:
        """All keys."""
        return frozenset((self.status, self.reason, self.data, self.id))


HEAT: Final = SignalKeys("status", "reason", "data", "id")
AWS: Final = SignalKeys("Status", "Reason", "Data", "UniqueId")


class Handle(ResourceType):
    """Stores received signals, which a wait condition watches."""

    calls_out = False
    open_metadata = True
    keys: ClassVar[SignalKeys]

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create a signing key."""
        key, secret = access_key(ctx.token), new_secret()
        url = signal_url(ctx.location, key, secret, "waitcondition", at=dt.datetime.now(dt.UTC))
        return Created(ctx.physical_name, {"url": url}, secret=True, access=Grant(key, secret))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """It is there until it is deleted; its reference id is where to signal."""
        return Observation(exists=ctx.action != "DELETE", reference_id=ctx.data.get("url"))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the signals are stored in our own row, and the key is revoked with it."""

    def signal(self, ctx: Context, physical_id: str, details: Value) -> Signalled:
        """Store a signal under its id, in place of an earlier signal with the same id."""
        keys, signal = self.keys, self.completed(dict(details or {}), len(ctx.metadata) + 1)
        status, id_ = signal.get(keys.status), signal.get(keys.id)
        if signal.keys() != keys.all or status not in (SUCCESS, FAILURE):
            raise ValueError(INVALID)
        stored = {keys.data: signal[keys.data], keys.reason: signal[keys.reason], keys.status: status}
        metadata = {**ctx.metadata, _key(id_): stored}
        if len(orjson.dumps(metadata)) > MAX_BYTES:
            raise ValueError(f"The signals of the handle have more than {MAX_BYTES // 1024} KiB altogether")
        return Signalled(f"status:{status} reason:{signal[keys.reason]}", metadata=metadata)

    def completed(self, details: JsonObject, number: int) -> JsonObject:
        """Return a signal with defaults for absent parts; `number` counts the signals."""
        return details


def _key(id_: object) -> str:
    """Return an id as the key of a JSON object that it becomes."""
    if isinstance(id_, bool) or id_ is None:
        return {True: "true", False: "false", None: "null"}[id_]
    if isinstance(id_, str | int | float):
        return str(id_)
    raise ValueError(INVALID)
