"""Neutron's API.

Objects are addressed by their collection, such as `PORTS`. Objects of a nested collection also have a parent:
the rule of a QoS policy, the port forwarding of a floating IP.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.network_agents import NetworkAgents
from orchestrator.errors import ProviderError, ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of objects: its path, the name of an object and the name of the list in bodies."""

    path: str
    singular: str
    plural: str

    def of(self, object_id: str = "", parent: str = "") -> str:
        """Return the path of the collection, or of an object in it."""
        path = self.path.format(parent=parent) if parent else self.path
        return f"{path}/{object_id}" if object_id else path


NETWORKS: Final = Collection("/networks", "network", "networks")
SUBNETS: Final = Collection("/subnets", "subnet", "subnets")
PORTS: Final = Collection("/ports", "port", "ports")
ROUTERS: Final = Collection("/routers", "router", "routers")
FLOATING_IPS: Final = Collection("/floatingips", "floatingip", "floatingips")
SECURITY_GROUPS: Final = Collection("/security-groups", "security_group", "security_groups")
SECURITY_GROUP_RULES: Final = Collection(
    "/security-group-rules", "security_group_rule", "security_group_rules"
)
TRUNKS: Final = Collection("/trunks", "trunk", "trunks")
SUBNET_POOLS: Final = Collection("/subnetpools", "subnetpool", "subnetpools")
ADDRESS_SCOPES: Final = Collection("/address-scopes", "address_scope", "address_scopes")
RBAC_POLICIES: Final = Collection("/rbac-policies", "rbac_policy", "rbac_policies")
SEGMENTS: Final = Collection("/segments", "segment", "segments")
METERING_LABELS: Final = Collection("/metering/metering-labels", "metering_label", "metering_labels")
METERING_RULES: Final = Collection(
    "/metering/metering-label-rules", "metering_label_rule", "metering_label_rules"
)
QOS_POLICIES: Final = Collection("/qos/policies", "policy", "policies")
BANDWIDTH_LIMIT_RULES: Final = Collection(
    "/qos/policies/{parent}/bandwidth_limit_rules", "bandwidth_limit_rule", "bandwidth_limit_rules"
)
DSCP_MARKING_RULES: Final = Collection(
    "/qos/policies/{parent}/dscp_marking_rules", "dscp_marking_rule", "dscp_marking_rules"
)
MINIMUM_BANDWIDTH_RULES: Final = Collection(
    "/qos/policies/{parent}/minimum_bandwidth_rules", "minimum_bandwidth_rule", "minimum_bandwidth_rules"
)
MINIMUM_PACKET_RATE_RULES: Final = Collection(
    "/qos/policies/{parent}/minimum_packet_rate_rules",
    "minimum_packet_rate_rule",
    "minimum_packet_rate_rules",
)
PORT_FORWARDINGS: Final = Collection(
    "/floatingips/{parent}/port_forwardings", "port_forwarding", "port_forwardings"
)


class Network(NetworkAgents):
    """Neutron, called as a credential."""

    service: ClassVar[str] = "neutron"
    service_type: ClassVar[str] = "network"
    complete_lists: ClassVar[str | None] = ""
    project_filter: ClassVar[str] = "project_id"

    def create(self, collection: Collection, values: JsonMapping, *, parent: str = "") -> JsonObject:
        """Create an object; return it."""
        return self._object(
            collection, self.post(collection.of(parent=parent), {collection.singular: values})
        )

    def find(self, collection: Collection, object_id: str, *, parent: str = "") -> JsonObject | None:
        """Return an object, None if it does not exist."""
        answer = self.find_one(collection.of(object_id, parent))
        return None if answer is None else self._object(collection, answer)

    def observed_object(
        self, collection: Collection, object_id: str, *, parent: str = ""
    ) -> JsonObject | None:
        """Return an object for an observation, None if it does not exist."""
        return self.observed(
            collection.of(parent=parent), collection.singular, object_id, list_key=collection.plural
        )

    def update(
        self, collection: Collection, object_id: str, values: JsonMapping, *, parent: str = ""
    ) -> JsonObject:
        """Change an object; return it."""
        path = collection.of(object_id, parent)
        return self._object(collection, self.put(path, {collection.singular: values}))

    def remove(self, collection: Collection, object_id: str, *, parent: str = "") -> bool:
        """Delete an object. Return whether it existed."""
        return self.delete(collection.of(object_id, parent))

    def search(
        self, collection: Collection, *, parent: str = "", fields: Sequence[str] = (), **filters: Any
    ) -> Iterator[JsonObject]:
        """Yield the objects with these values; of nested collections, all objects with these values."""
        query = {**filters, **({"fields": list(fields)} if fields else {})}
        return self.listed(collection.of(parent=parent), collection.plural, query)

    def id_of(self, collection: Collection, name_or_id: str) -> str:
        """Return the id of the object with this name or id.

        Raises:
            ProviderError: no object, or several objects, have this name.
        """
        if self.find(collection, name_or_id) is not None:
            return name_or_id
        found = [item["id"] for item in self.search(collection, name=name_or_id, fields=("id",))]
        if len(found) != 1:
            problem = "could not be found" if not found else "is not unique: use the id"
            raise ProviderError(f"The {collection.singular} ({name_or_id}) {problem}.", "EntityNotFound")
        return str(found[0])

    def set_tags(self, collection: Collection, object_id: str, tags: Sequence[str]) -> None:
        """Replace the tags of an object."""
        self.put(f"{collection.of(object_id)}/tags", {"tags": list(tags)})

    def add_rules(self, rules: Sequence[JsonMapping]) -> None:
        """Create rules of security groups in a single request: all or none."""
        self.post(SECURITY_GROUP_RULES.path, {SECURITY_GROUP_RULES.plural: list(rules)})

    def add_router_interface(self, router_id: str, target: JsonMapping) -> None:
        """Attach a subnet or a port, `{"subnet_id": …}` or `{"port_id": …}`, to a router."""
        self.put(f"{ROUTERS.of(router_id)}/add_router_interface", target)

    def remove_router_interface(self, router_id: str, target: JsonMapping) -> None:
        """Detach a subnet or a port from a router; a missing interface or router is no error."""
        self._put_existing(f"{ROUTERS.of(router_id)}/remove_router_interface", target)

    def set_gateway(self, router_id: str, gateway: JsonMapping) -> None:
        """Set the gateway of a router, `{}` for none."""
        self.update(ROUTERS, router_id, {"external_gateway_info": gateway})

    def add_extra_routes(self, router_id: str, routes: Sequence[JsonMapping]) -> None:
        """Add routes to a router atomically; existing routes are no error."""
        self.put(f"{ROUTERS.of(router_id)}/add_extraroutes", {"router": {"routes": list(routes)}})

    def remove_extra_routes(self, router_id: str, routes: Sequence[JsonMapping]) -> None:
        """Remove routes from a router atomically; missing routes and a missing router are no error."""
        self._put_existing(
            f"{ROUTERS.of(router_id)}/remove_extraroutes", {"router": {"routes": list(routes)}}
        )

    def add_subports(self, trunk_id: str, subports: Sequence[JsonMapping]) -> None:
        """Add subports to a trunk."""
        self.put(f"{TRUNKS.of(trunk_id)}/add_subports", {"sub_ports": list(subports)})

    def remove_subports(self, trunk_id: str, port_ids: Sequence[str]) -> None:
        """Remove subports from a trunk."""
        subports = [{"port_id": port_id} for port_id in port_ids]
        self.put(f"{TRUNKS.of(trunk_id)}/remove_subports", {"sub_ports": subports})

    @staticmethod
    def _object(collection: Collection, answer: JsonMapping) -> JsonObject:
        return dict(answer.get(collection.singular) or {})

    def _put_existing(self, path: str, body: JsonMapping) -> None:
        try:
            self.put(path, body)
        except ProviderNotFound:
            return
