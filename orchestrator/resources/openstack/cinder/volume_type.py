"""OS::Cinder::VolumeType.

The name is unique in cinder, and cinder keeps no token: `find` takes a type with the name and the same
visibility for that of a lost create.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Unique, Value
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.settings import as_texts, equal_settings
from orchestrator.resources.openstack.specs_and_access import apply_access, apply_specs
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule


class VolumeType(CinderType):
    """A type of volumes, with requirements of the backend. Requires the role of an administrator."""

    name = "OS::Cinder::VolumeType"
    support_version = "2015.1"
    unique = Unique((("name",),), "rename", searched=True)
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the type.", required=True, update_allowed=True),
        "metadata": Property("map", "Extra specs: requirements of the backend.", update_allowed=True),
        "is_public": Property(
            "boolean", "Whether every project may use the type.", default=True, update_allowed=True
        ),
        "description": Property("string", "A description.", update_allowed=True),
        "projects": Property(
            "list",
            "Projects that may use a private type.",
            default=[],
            update_allowed=True,
            schema=Property("string", "Name or id of a project.", constraints=(Custom("keystone.project"),)),
        ),
    }
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("projects",), "keystone.project"),)

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A public type has no list of projects."""
        if properties.get("is_public") and properties.get("projects"):
            return (Fault('Can not specify property "projects" if the volume type is public.', alone=True),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the type; extra specs and projects are a further step."""
        request = {"name": props["name"], "os-volume-type-access:is_public": props.get("is_public", True)}
        if props.get("description"):
            request["description"] = props["description"]
        return Created(block_storage(ctx).types.create(request)["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the type with the name and the visibility."""
        public = ctx.properties.get("is_public", True)
        for volume_type in block_storage(ctx).types.listed():
            if volume_type["name"] == ctx.properties["name"]:
                return str(volume_type["id"]) if volume_type.get("is_public", True) is public else None
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the type, and compare its extra specs and projects."""
        volume_type = self.raw(ctx, physical_id)
        if volume_type is None or ctx.action == "DELETE":
            return Observation(exists=volume_type is not None, ready=False)
        specs, public = dict(volume_type.get("extra_specs") or {}), volume_type.get("is_public", True)
        actual: JsonObject = {
            "name": volume_type["name"],
            "description": volume_type.get("description"),
            "metadata": specs,
            "is_public": public,
        }
        wanted = set(ctx.properties.get("projects") or ())
        if not public:
            actual["projects"] = sorted(block_storage(ctx).types.projects(physical_id))
        differs = specs != as_texts(ctx.properties.get("metadata")) or (
            not public and wanted != set(actual["projects"])
        )
        step = "configure" if differs and ctx.action in ("CREATE", "UPDATE") else ""
        return Observation(exists=True, ready=not step, step=step, properties=actual)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the name, the description and the visibility; the others are a further step."""
        values: JsonObject = {}
        if "name" in changed:
            values["name"] = props["name"]
        if "is_public" in changed:
            values["is_public"] = props["is_public"]
        if "description" in changed:
            values["description"] = props.get("description") or ""
        if values:
            block_storage(ctx).types.update(physical_id, values)
        return Created(physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the extra specs and the projects."""
        types = block_storage(ctx).types
        apply_specs(types, physical_id, as_texts(props.get("metadata")))
        if not props.get("is_public", True):
            apply_access(types, physical_id, props.get("projects") or ())
        return None

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return equal_settings(name, before, after, members="projects", texts="metadata")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the type."""
        block_storage(ctx).types.delete(physical_id)

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        """Change the name of the type."""
        with suppress(ProviderNotFound):
            block_storage(ctx).types.update(physical_id, {"name": name})

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the type."""
        return block_storage(ctx).types.get(physical_id)
