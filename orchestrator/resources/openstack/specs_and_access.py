"""Extra specs, and the projects that may use an object: of flavors in nova, and of volume types in cinder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class SpecsApi(Protocol):
    """The calls for the objects of a type."""

    def specs(self, id_: str) -> Mapping[str, Any]:
        """Return the extra specs of an object."""

    def set_specs(self, id_: str, specs: Mapping[str, str]) -> None:
        """Set extra specs; the others stay."""

    def delete_spec(self, id_: str, key: str) -> Any:
        """Delete an extra spec."""

    def projects(self, id_: str) -> set[str]:
        """Return the projects that may use an object that is not public."""

    def allow(self, id_: str, project_id: str) -> None:
        """Let a project use an object."""

    def deny(self, id_: str, project_id: str) -> None:
        """No longer let a project use an object."""


def apply_specs(api: SpecsApi, id_: str, desired: Mapping[str, str]) -> None:
    """Delete and set extra specs, as far as they differ."""
    actual = api.specs(id_)
    for key in actual.keys() - desired.keys():
        api.delete_spec(id_, key)
    if changed := {key: value for key, value in desired.items() if actual.get(key) != value}:
        api.set_specs(id_, changed)


def apply_access(api: SpecsApi, id_: str, desired: Iterable[str]) -> None:
    """Let exactly these projects use an object that is not public."""
    actual, projects = api.projects(id_), set(desired)
    for project in sorted(projects - actual):
        api.allow(id_, project)
    for project in sorted(actual - projects):
        api.deny(id_, project)
