"""OS::Cinder::QoSAssociation: the volume types that specifications apply to.

The id is the specs'. A repeated create has no further effect: `find` needs no search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.clients.openstack.block_storage import QOS_SPECS
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule


class QoSAssociation(CinderType):
    """Associates specifications with volume types. Requires the role of an administrator."""

    name = "OS::Cinder::QoSAssociation"
    support_version = "8.0.0"
    unique = Unique((("qos_specs",), ("volume_types",)), "delete")
    properties: ClassVar[Mapping[str, Property]] = {
        "qos_specs": Property(
            "string", "Name or id of the specs.", required=True, constraints=(Custom("cinder.qos_specs"),)
        ),
        "volume_types": Property(
            "list",
            "Names or ids of volume types.",
            required=True,
            update_allowed=True,
            schema=Property("string", "A volume type.", constraints=(Custom("cinder.vtype"),)),
        ),
    }
    translation: ClassVar[tuple[Rule, ...]] = (
        Resolve(("qos_specs",), "cinder.qos_specs"),
        Resolve(("volume_types",), "cinder.vtype"),
    )

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Associate the types."""
        specs_id, wanted = props["qos_specs"], sorted(set(props["volume_types"]))
        for type_id in wanted:
            block_storage(ctx).associate(specs_id, type_id)
        return Created(specs_id, {"types": wanted})

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the id if a type is associated."""
        specs_id = ctx.properties["qos_specs"]
        return specs_id if block_storage(ctx).associated_types(specs_id) & _wanted(ctx.properties) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Compare the associations."""
        if block_storage(ctx).find(QOS_SPECS, physical_id) is None:
            return Observation(exists=False)
        associated = block_storage(ctx).associated_types(physical_id)
        if ctx.action == "DELETE":
            return Observation(exists=bool(associated & self._known(ctx)), ready=False)
        missing = _wanted(ctx.properties) - associated
        step = "associate" if missing and ctx.action in ("CREATE", "UPDATE") else ""
        shown = sorted(associated & self._known(ctx))
        return Observation(exists=True, ready=not step, step=step, properties={"volume_types": shown})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Withdraw former types and associate new types; types of further associations are left alone."""
        specs, wanted = block_storage(ctx), _wanted(props)
        associated = specs.associated_types(physical_id)
        for type_id in sorted((set(ctx.data.get("types") or ()) & associated) - wanted):
            specs.disassociate(physical_id, type_id)
        for type_id in sorted(wanted - associated):
            specs.associate(physical_id, type_id)
        return Created(physical_id, {"types": sorted(wanted)})

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Associate the missing types."""
        specs = block_storage(ctx)
        for type_id in sorted(_wanted(props) - specs.associated_types(physical_id)):
            specs.associate(physical_id, type_id)
        return Created(physical_id, {"types": sorted(_wanted(props))})

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return set(before or ()) == set(after or ()) if name == "volume_types" else bool(before == after)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Withdraw the types."""
        specs = block_storage(ctx)
        for type_id in sorted(self._known(ctx) & specs.associated_types(physical_id)):
            specs.disassociate(physical_id, type_id)

    def _known(self, ctx: Context) -> set[str]:
        return set(ctx.data.get("types") or ()) | _wanted(ctx.properties)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the associated types."""
        return {"volume_types": sorted(block_storage(ctx).associated_types(physical_id))}


def _wanted(props: Mapping[str, Value]) -> set[str]:
    return set(props.get("volume_types") or ())
