"""OS::Neutron::Trunk: several networks on a port of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import TRUNKS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Property, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import BUILT, NeutronType, attributes, network
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

_SUBPORT: Final = Property(
    "map",
    "A subport.",
    schema={
        "port": Property(
            "string", "Name or id of the port.", required=True, constraints=(Custom("neutron.port"),)
        ),
        "segmentation_type": Property(
            "string", "Type of segmentation.", required=True, constraints=(AllowedValues(("vlan",)),)
        ),
        "segmentation_id": Property(
            "integer",
            "Id with which the server sees the network.",
            required=True,
            constraints=(Range(1, 4094),),
        ),
    },
)


class Trunk(NeutronType):
    """Several networks on a port of a server, each as a subport with its own segmentation id."""

    name = "OS::Neutron::Trunk"
    support_version = "9.0.0"
    collection = TRUNKS
    status = BUILT
    # Users read the description of a trunk, and its port has only one.
    mark = EqualValues(("port",), ("name",), is_new=True)
    finds_by_token = False
    fields = {
        "port": "port_id",
        "sub_ports": Field(
            to_api=lambda subports: [_request(subport) for subport in subports or ()],
            from_api=lambda subports: [_written(subport) for subport in subports],
            equal=lambda before, after: _same_subports(before or (), after or ()),
        ),
    }
    properties = {
        "name": Property("string", "Name of the trunk.", update_allowed=True),
        "port": Property(
            "string",
            "Name or id of the port of the server.",
            required=True,
            immutable=True,
            constraints=(Custom("neutron.port"),),
        ),
        "sub_ports": Property("list", "Subports.", update_allowed=True, schema=_SUBPORT),
        "description": Property("string", "Description of the trunk.", update_allowed=True),
        "admin_state_up": Property(
            "boolean",
            "Whether subports may be added and removed, and the trunk deleted.",
            update_allowed=True,
        ),
    }
    attributes = attributes(port_id="Port of the server.")
    translation = (
        Resolve(("port",), "neutron.port"),
        Resolve(("sub_ports", "port"), "neutron.port"),
    )

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request; subports of an existing trunk have their own requests."""
        values = super().request_values(ctx, props, names)
        if ctx.action != "CREATE":
            values.pop("sub_ports", None)
        return values

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the trunk, then remove subports, then add subports: a port is in one trunk at a time."""
        updated = super().update(ctx, physical_id, props, changed)
        if "sub_ports" in changed:
            with temporary_conflicts():
                self._set_subports(
                    ctx, physical_id, [_request(item) for item in props.get("sub_ports") or ()]
                )
        return updated

    def _set_subports(self, ctx: Context, trunk_id: str, wanted: list[JsonObject]) -> None:
        neutron = network(ctx)
        current = (neutron.find(TRUNKS, trunk_id) or {}).get("sub_ports") or []
        wanted_keys, current_keys = _keys(wanted), _keys(current)
        stale = [subport["port_id"] for subport in current if _key(subport) not in wanted_keys]
        missing = [subport for subport in wanted if _key(subport) not in current_keys]
        if stale:
            neutron.remove_subports(trunk_id, stale)
        if missing:
            neutron.add_subports(trunk_id, missing)


def _request(subport: JsonMapping) -> JsonObject:
    return {
        "port_id": subport["port"],
        "segmentation_type": subport["segmentation_type"],
        "segmentation_id": subport["segmentation_id"],
    }


def _written(subport: JsonMapping) -> JsonObject:
    """Return a subport with the names in templates."""
    return {
        "port": subport["port_id"],
        "segmentation_type": subport["segmentation_type"],
        "segmentation_id": subport["segmentation_id"],
    }


def _key(subport: JsonMapping) -> tuple[Value, ...]:
    return subport["port_id"], subport["segmentation_type"], subport["segmentation_id"]


def _same_subports(before: Iterable[JsonMapping], after: Iterable[JsonMapping]) -> bool:
    """Return whether two lists have the same subports: their order has no meaning."""
    return _keys(map(_request, before)) == _keys(map(_request, after))


def _keys(subports: Iterable[JsonMapping]) -> set[tuple[Value, ...]]:
    return {_key(subport) for subport in subports}
