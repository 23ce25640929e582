"""OS::Cinder::QoSSpecs. The physical name is unique: `find` looks it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.settings import as_texts


class QoSSpecs(CinderType):
    """Specifications of the quality of service of volumes. Requires the role of an administrator."""

    name = "OS::Cinder::QoSSpecs"
    support_version = "7.0.0"
    unique = Unique((("name",),), "delete", searched=True)
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the specifications, unique in the cloud."),
        "specs": Property("map", "The specifications.", required=True, update_allowed=True),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the specs."""
        specs = block_storage(ctx).qos_specs.create(_name(ctx, props), as_texts(props["specs"]))
        return Created(specs["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the specs with the name."""
        name, listed = _name(ctx, ctx.properties), block_storage(ctx).qos_specs.listed()
        return next((str(specs["id"]) for specs in listed if specs["name"] == name), None)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the specs."""
        specs = self.raw(ctx, physical_id)
        if specs is None or ctx.action == "DELETE":
            return Observation(exists=specs is not None, ready=False)
        return Observation(exists=True, properties={"specs": dict(specs.get("specs") or {})})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Remove and set keys."""
        actual, wanted = (self.raw(ctx, physical_id) or {}).get("specs") or {}, as_texts(props["specs"])
        specs = block_storage(ctx).qos_specs
        if removed := sorted(actual.keys() - wanted.keys()):
            specs.delete_keys(physical_id, removed)
        if actual != wanted:
            specs.set_keys(physical_id, wanted)
        return Created(physical_id)

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return as_texts(before) == as_texts(after) if name == "specs" else bool(before == after)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the specs."""
        block_storage(ctx).qos_specs.delete(physical_id)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the specs."""
        return block_storage(ctx).qos_specs.get(physical_id)


def _name(ctx: Context, props: Mapping[str, Value]) -> str:
    return str(props.get("name") or ctx.physical_name)
