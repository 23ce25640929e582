"""Stand-ins for types that no longer exist: their resources can still be deleted."""

from __future__ import annotations

from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType


class UninstalledType(ResourceType):
    """Stands for a type that is not installed: resources that never began can still be removed."""

    calls_out = True  # there may be an object, which only the type could find

    def __init__(self, name: str) -> None:
        """Take the name of the type."""
        self.name = name  # type: ignore[misc]


class MissingType(NestedType):
    """Stands for a template that no longer exists: resources created from it can still be deleted."""

    def __init__(self, name: str) -> None:
        """Take the template's name."""
        self.name = name  # type: ignore[misc]
