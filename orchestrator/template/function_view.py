"""The interface of functions: parameter values and selected facts about resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, Self

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.secret_values import SecretValues


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        """Read well in messages and failed assertions."""
        return "UNKNOWN"


# A value that exists only after a resource is created; used in validation, never in execution.
UNKNOWN: Final = Unknown.UNKNOWN

# Pseudo parameters with the values of `resource_facade`; templates cannot refer to them.
FACADE: Final[Mapping[str, str]] = {
    key: f"OS::facade::{key}" for key in ("metadata", "deletion_policy", "update_policy")
}

FACADE_PARAMETERS: Final = frozenset(FACADE.values())

CREATED: Final = frozenset(
    {"CREATE", "ADOPT", "SUSPEND", "RESUME", "UPDATE", "ROLLBACK", "SNAPSHOT", "CHECK"}
)


@dataclass(frozen=True, slots=True)
class ResourceProxy:
    """A resource as functions see it; the engine builds it from the outputs of a requirement.

    If it is `secret`, its `secrets` must not be shown; None: no value of it.
    """

    name: str
    reference_id: str | None
    attributes: JsonMapping
    action: str
    status: str
    secret: bool = False
    secrets: SecretValues | None = None

    @classmethod
    def uncreated(cls, name: str) -> Self:
        """Return a resource that is not created yet: it has neither a reference id nor attributes."""
        return cls(name, None, {}, "INIT", "COMPLETE")

    @property
    def created(self) -> bool:
        """Return whether its attributes are available (docs/internals/hot-language.md §5.1), for any
        status.
        """
        return self.action in CREATED


@dataclass(frozen=True, slots=True)
class ParentResourceProxy:
    """The parent resource of a nested stack, for `resource_facade`: values, not expressions."""

    metadata: Any = None
    deletion_policy: Any = "Delete"
    update_policy: Any = None
    secret: bool = False  # its values must not be shown

    def values(self) -> JsonObject:
        """Return the facade as pseudo parameters, so that it is stored, hidden and compared like them."""
        return {
            FACADE["metadata"]: self.metadata or {},
            FACADE["deletion_policy"]: self.deletion_policy,
            FACADE["update_policy"]: self.update_policy or {},
        }


class View(Protocol):
    """The side of `StackDefinition` that functions get."""

    def resolved(self, value: object) -> Any:
        """Return `value` with its functions evaluated."""

    def parameter(self, name: str) -> Any:
        """Return a parameter's value; raise FunctionError if it has no value."""

    def resource(self, name: str) -> ResourceProxy:
        """Return a resource; raise FunctionError if it is not accessible."""

    def taken(self, proxy: ResourceProxy, value: Any) -> Any:
        """Return a value of a resource; record whether it is secret."""

    def file(self, name: str) -> str | None:
        """Return the text sent along under this name."""

    def not_yet(self) -> Any:
        """Return the placeholder of a value that does not exist yet."""

    def reference(self, name: str) -> Any:
        """Return the reference id of a resource of this name, else the value of the parameter."""

    def mapping(self, name: str) -> JsonMapping:
        """Return a mapping of the template; raise FunctionError if it does not exist."""

    def facade(self, key: str) -> Any:
        """Return a part of the parent resource; raise FunctionError in a root stack."""

    def zones(self) -> list[str]:
        """Return the names of the compute zones."""

    def holds(self, condition: object) -> Any:
        """Return whether a condition holds; only where conditions are evaluated."""

    def charge(self, amount: int) -> None:
        """Count the approximate bytes of a function result; raise FunctionError if the total exceeds the
        limit.
        """
