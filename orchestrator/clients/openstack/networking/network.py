"""Neutron's API. Objects are addressed by their collection, such as `PORTS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.network_agents import NetworkAgents
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping

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
QUOTA_SETS: Final = Collection("/quotas", "quota", "")


class Network(NetworkAgents):
    """Neutron, called as a credential."""

    service: ClassVar[str] = "neutron"
    service_type: ClassVar[str] = "network"
    complete_lists: ClassVar[str | None] = ""
    project_filter: ClassVar[str] = "project_id"

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

    def _put_existing(self, path: str, body: JsonMapping) -> None:
        try:
            self.put(path, body)
        except ProviderNotFound:
            return
