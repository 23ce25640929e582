"""Declarations of the types for a project's quotas in a service.

A project has one set of quotas: the physical id is the project, and `find` compares the quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Context,
    Created,
    Fault,
    Observation,
    Property,
    Unique,
    Value,
)
from orchestrator.resources.openstack.collection_type import CollectionType
from orchestrator.resources.openstack.written_values import unspecified
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Resolve, Rule
from orchestrator.template.definition import ResourceDefinition


class ProjectQuotas(CollectionType):
    """Quotas of a project. Requires the role of an administrator."""

    quotas: ClassVar[Mapping[str, str]]  # the counted objects, by property
    unique: ClassVar[Unique | None] = Unique((("project",),), "delete")
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("project",), "keystone.project"),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """Require a quota."""
        return unspecified(name, resources, sorted(self.quotas))

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Set the quotas."""
        self.api(ctx).update(self.collection, props["project"], self._given(props))
        return Created(props["project"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the project if it has the quotas."""
        project: str = ctx.properties["project"]
        actual = self.api(ctx).find(self.collection, project) or {}
        return project if self._given(ctx.properties).items() <= actual.items() else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the quotas; after a delete they are the defaults."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        actual = self.api(ctx).find(self.collection, physical_id) or {}
        shown = {name: actual[name] for name in self.quotas if name in actual}
        return Observation(exists=True, properties=shown)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Set the quotas; a quota that is no longer given keeps its value."""
        return self.create(ctx, {**props, "project": physical_id})

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
