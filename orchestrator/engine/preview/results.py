"""Input and output of a forecast: a resource as it is, and its forecast change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.json_types import JsonMapping
from orchestrator.template.function_view import ResourceProxy

Turn = Literal["unchanged", "updated", "replaced", "added", "deleted"]


@dataclass(frozen=True, slots=True)
class CurrentResource:
    """A resource as recorded, values decrypted.

    If it is `secret`, its outputs must not be shown, nor its `secret_properties` (None: all of them).
    """

    id: int
    uuid: str
    name: str
    type: str
    resource_type: str
    action: str
    status: str
    status_reason: str
    op: str | None
    physical_id: str | None
    reference_id: str | None
    properties: JsonMapping
    attributes: JsonMapping
    data: JsonMapping
    metadata: JsonMapping | None
    secret: bool
    secret_properties: frozenset[str] | None
    marked_unhealthy: bool = False  # by a user

    def is_secret(self, name: str) -> bool:
        """Whether the recorded value of a property must not be shown."""
        names = self.secret_properties
        return self.secret and (names is None or name in names)

    @property
    def proxy(self) -> ResourceProxy:
        """The view that template functions have of it."""
        reference = self.reference_id or self.physical_id
        return ResourceProxy(self.name, reference, self.attributes, self.action, self.status, self.secret)


@dataclass(frozen=True, slots=True)
class ForecastResource:
    """The forecast change of a resource.

    `changed` maps properties to their values before and after, masked where secret; the new values of
    `unknown` are not known yet. A change that depends on unknown values is not `certain`.
    """

    name: str
    turn: Turn
    because: str = ""
    certain: bool = True
    changed: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    metadata: Any = None  # of an added resource, as far as known
    restricted: str = ""  # the action that the environment forbids: the update would fail
