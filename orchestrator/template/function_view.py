"""What a function may see: the values of parameters and a few facts of other resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        """Read well in messages and failed assertions."""
        return "UNKNOWN"


# Stands for a value that exists only once a resource does; seen while validating, never while carrying out.
UNKNOWN: Final = Unknown.UNKNOWN

# The pseudo parameters that hold what `resource_facade` gives; no template can name them.
FACADE: Final[Mapping[str, str]] = {
    key: f"OS::facade::{key}" for key in ("metadata", "deletion_policy", "update_policy")
}

FACADE_PARAMETERS: Final = frozenset(FACADE.values())

CREATED: Final = frozenset(
    {"CREATE", "ADOPT", "SUSPEND", "RESUME", "UPDATE", "ROLLBACK", "SNAPSHOT", "CHECK"}
)


@dataclass(frozen=True, slots=True)
class ResourceProxy:
    """Another resource as functions see it; the engine builds it from what a requirement left behind."""

    name: str
    reference_id: str | None
    attributes: Mapping[str, Any]
    action: str
    status: str
    secret: bool = False  # what it gives must not be shown

    @property
    def created(self) -> bool:
        """Whether its attributes count (docs/internals/hot-language.md §5.1), whatever the status."""
        return self.action in CREATED


@dataclass(frozen=True, slots=True)
class ParentResourceProxy:
    """The resource that a nested stack stands for, as `resource_facade` sees it: values, not expressions."""

    metadata: Any = None
    deletion_policy: Any = "Delete"
    update_policy: Any = None
    secret: bool = False  # what it gives must not be shown

    def values(self) -> dict[str, Any]:
        """Return the facade as pseudo parameters, so that it is kept, hidden and compared as those are."""
        return {
            FACADE["metadata"]: self.metadata or {},
            FACADE["deletion_policy"]: self.deletion_policy,
            FACADE["update_policy"]: self.update_policy or {},
        }


class View(Protocol):
    """The side of `StackDefinition` that functions get."""

    def resolved(self, value: Any) -> Any:
        """Return `value` with its functions evaluated."""

    def parameter(self, name: str) -> Any:
        """Return a parameter's value; raise FunctionError when there is none."""

    def resource(self, name: str) -> ResourceProxy:
        """Return a resource; raise FunctionError when it is not one that may be seen."""

    def file(self, name: str) -> str | None:
        """Return the text sent along under this name."""

    def not_yet(self) -> Any:
        """Return what stands for a value that is not there yet."""

    def reference(self, name: str) -> Any:
        """Return the reference id of a resource of this name, else the value of the parameter."""

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return one of the template's mappings; raise FunctionError when there is none."""

    def facade(self, key: str) -> Any:
        """Return a part of the parent resource; raise FunctionError in a root stack."""

    def zones(self) -> list[str]:
        """Return the names of the compute zones."""

    def holds(self, condition: Any) -> Any:
        """Return whether a condition holds; only where conditions are evaluated."""

    def charge(self, amount: int) -> None:
        """Take note of about how many bytes a function is about to make, or made; raise FunctionError when
        all of them together make too much.
        """
