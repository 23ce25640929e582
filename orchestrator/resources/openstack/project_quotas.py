"""Declarations of the types for a project's quotas in nova and in cinder.

A project has one set of quotas: the physical id is the project, and `find` compares the quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Unique,
    Value,
)
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Resolve, Rule
from orchestrator.template.definition import ResourceDefinition

UNSPECIFIED: Final = "At least one of the following properties must be specified: "


class QuotaApi(Protocol):
    """The calls of a service that has quotas."""

    def quotas(self, project_id: str) -> JsonObject:
        """Return the quotas of a project."""

    def set_quotas(self, project_id: str, quotas: JsonMapping) -> None:
        """Change quotas of a project."""

    def reset_quotas(self, project_id: str) -> bool:
        """Return the quotas of a project to their defaults."""


class ProjectQuotas(ResourceType):
    """Quotas of a project. Requires the role of an administrator."""

    live_show = True
    quotas: ClassVar[Mapping[str, str]]  # the counted objects, by property
    unique = Unique((("project",),), "delete")
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("project",), "keystone.project"),)

    def api(self, ctx: Context) -> QuotaApi:
        """Return the service, called with the stack's credential."""
        raise NotImplementedError(self.name)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require a quota."""
        given = resources[name].body.get("properties") or {}
        if any(given.get(quota) is not None for quota in self.quotas):
            return ()
        return (Fault(f"{UNSPECIFIED}{', '.join(sorted(self.quotas))}.", alone=True),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Set the quotas."""
        self.api(ctx).set_quotas(props["project"], self._given(props))
        return Created(props["project"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the project if it has the quotas."""
        project: str = ctx.properties["project"]
        actual = self.api(ctx).quotas(project)
        return project if self._given(ctx.properties).items() <= actual.items() else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the quotas; after a delete they are the defaults."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        actual = self.api(ctx).quotas(physical_id)
        shown = {name: actual[name] for name in self.quotas if name in actual}
        return Observation(exists=True, properties=shown)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Set the quotas; a quota that is no longer given keeps its value."""
        return self.create(ctx, {**props, "project": physical_id})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Return the project to the default quotas."""
        self.api(ctx).reset_quotas(physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return `show`, the only live attribute."""
        return {"show": self.raw(ctx, physical_id)} if "show" in names else {}

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the service's view of the quotas."""
        return self.api(ctx).quotas(physical_id)

    def _given(self, props: Mapping[str, Value]) -> JsonObject:
        return {name: props[name] for name in self.quotas if props.get(name) is not None}


def quota_properties(
    quotas: Mapping[str, str], deprecated: Mapping[str, str] = MappingProxyType({})
) -> Mapping[str, Property]:
    """Return the properties of a type for quotas; -1 is no limit. `deprecated`: warnings by property."""
    return {
        "project": Property(
            "string",
            "Name or id of the project.",
            required=True,
            constraints=(Custom("keystone.project"),),
        ),
        **{
            name: Property(
                "integer",
                f"Largest number of {text}; -1: no limit.",
                update_allowed=True,
                constraints=(Range(min=-1),),
                deprecated=deprecated.get(name, ""),
            )
            for name, text in quotas.items()
        },
    }
