"""Input and output of a forecast: a resource as it is, and its forecast change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.json_types import JsonMapping
from orchestrator.template.function_view import ResourceProxy
from orchestrator.template.secret_values import MASK, SecretValues

Turn = Literal["unchanged", "updated", "replaced", "added", "deleted"]


@dataclass(frozen=True, slots=True)
class CurrentResource:
    """A resource as recorded, values decrypted.

    If it is `secret`, its `secrets` must not be shown; None: none of its values.
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
    secrets: SecretValues | None
    marked_unhealthy: bool = False  # by a user

    def shown(self, value: object) -> Any:
        """Return a recorded value of a property with its secrets masked."""
        if not self.secret:
            return value
        return MASK if self.secrets is None else self.secrets.masked(value)

    @property
    def proxy(self) -> ResourceProxy:
        """The view that template functions have of it."""
        reference = self.reference_id or self.physical_id
        return ResourceProxy(
            self.name, reference, self.attributes, self.action, self.status, self.secret, self.secrets
        )


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
