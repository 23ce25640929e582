"""OS::Neutron::Trunk: several networks on a port of a server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from orchestrator.clients.openstack.networking.network import TRUNKS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Property, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.neutron.base import NeutronType, attributes, network
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
    has_status = True
    has_token = False  # users read the description of a trunk, and its port has only one
    finds_by_token = False
    api_names = {"port": "port_id"}
    unordered = frozenset({"sub_ports"})
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

    def to_api(self, name: str, value: Value) -> Value:
        """Return subports with ids."""
        return [_request(subport) for subport in value or ()] if name == "sub_ports" else value

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return subports with the names in templates."""
        if name != "sub_ports":
            return super().from_api(name, actual)
        return [
            {
                "port": subport["port_id"],
                "segmentation_type": subport["segmentation_type"],
                "segmentation_id": subport["segmentation_id"],
            }
            for subport in actual["sub_ports"]
        ]

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Compare subports without regard to their order."""
        if name == "sub_ports" and isinstance(before, list) and isinstance(after, list):
            return _keys(map(_request, before)) == _keys(map(_request, after))
        return super().equal(name, before, after)

    def find(self, ctx: Context, token: str) -> Sequence[str]:
        """Return the trunk of the port, if it has the name and is not older than the operation."""
        props = ctx.properties
        name = props.get("name") or ctx.physical_name
        found = network(ctx).search(TRUNKS, port_id=props["port"], fields=("id", "name", "created_at"))
        return [
            trunk["id"]
            for trunk in found
            if trunk.get("name") == name and is_created_by(ctx, trunk.get("created_at"))
        ]

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


def _key(subport: JsonMapping) -> tuple[Value, ...]:
    return subport["port_id"], subport["segmentation_type"], subport["segmentation_id"]


def _keys(subports: Iterable[JsonMapping]) -> set[tuple[Value, ...]]:
    return {_key(subport) for subport in subports}
