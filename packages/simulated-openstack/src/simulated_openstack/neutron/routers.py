"""Routers: their interfaces, gateways and routes."""

from __future__ import annotations

import ipaddress
from typing import ClassVar

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import Field
from simulated_openstack.neutron.ports import Ports
from simulated_openstack.service import Call, Service

INTERFACE = "network:router_interface"
GATEWAY = "network:router_gateway"


class Routers(Family):
    """Routers."""

    singular = "router"
    collection = "routers"
    label = "Router"
    not_found = "{label} {id} could not be found"
    not_found_kind = "RouterNotFound"
    quota = "router"
    admin_fields: ClassVar[frozenset[str]] = frozenset({"ha", "distributed"})
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "admin_state_up": Field(True, "boolean"),
        "external_gateway_info": Field(None, "any"),
        "description": Field(),
        "distributed": Field(False, "boolean", admin=True),
        "ha": Field(False, "boolean", admin=True),
        "availability_zone_hints": Field(list, "any", put=False),
        "routes": Field(list, "any", post=False),
        "flavor_id": Field(None, "any", put=False),
        "enable_ndp_proxy": Field(None, "any"),
    }

    def __init__(self, neutron: Service, families: Families, ports: Ports) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._ports = ports
        one = "/v2.0/routers/{id_}"
        add = neutron.router.add
        add("PUT", f"{one}/add_router_interface", self.add_interface)
        add("PUT", f"{one}/remove_router_interface", self.remove_interface)
        add("PUT", f"{one}/add_extraroutes", self.add_routes)
        add("PUT", f"{one}/remove_extraroutes", self.remove_routes)
        add("GET", f"{one}/l3-agents", self.agents)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new router."""
        values = {name: value for name, value in values.items() if name != "enable_ndp_proxy"}
        gateway = values["external_gateway_info"]
        if gateway:
            self._external(call, gateway["network_id"])
        values |= {"external_gateway_info": None, "routes": [], "status": "ACTIVE"}
        row = self.save_new(
            call, {**values, "distributed": values["distributed"] or False, "revision_number": 1}
        )
        row["ha"] = row["ha"] or False
        if gateway:
            self._set_gateway(call, row, gateway)
            row["revision_number"] += 1
        return self.table.save(row)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change."""
        values.pop("enable_ndp_proxy", None)
        if "external_gateway_info" in values:
            self._set_gateway(call, row, values.pop("external_gateway_info") or {})
        if "routes" in values:
            self._check_routes(row, values["routes"] or [])
            values["routes"] = _sorted_routes(values["routes"] or [])
        super().change(call, row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a router without interfaces; its gateway goes with it."""
        ports = self._ports.of_device(row["id"])
        attached = [port["id"] for port in ports if port["device_owner"] == INTERFACE]
        if attached:
            text = f"Router {row['id']} has ports still attached: {', '.join(attached)}"
            raise ApiError(409, text, "RouterInUse")
        for port in ports:
            self._ports.discard(port)
        super().remove(call, row)

    def connected(self, router_id: str, subnet_id: str) -> bool:
        """Whether a router has an interface on a subnet."""
        return any(
            fixed["subnet_id"] == subnet_id
            for port in self._ports.of_device(router_id)
            if port["device_owner"] == INTERFACE
            for fixed in port["fixed_ips"]
        )

    def _floating_ips(self, router_id: str, subnet_id: str | None = None) -> list[JsonObject]:
        """Return the floating addresses that use a router, for ports of a subnet if given."""
        rows = self.family("floatingip").table.where("router_id", router_id)
        return [row for row in rows if subnet_id in (None, row["_subnet_id"])]

    def between(self, subnet_id: str, network_id: str) -> JsonObject | None:
        """Return the router from a subnet to an external network, or None."""
        for row in self.table:
            gateway = row["external_gateway_info"]
            if gateway and gateway["network_id"] == network_id and self.connected(row["id"], subnet_id):
                return row
        return None

    # requests

    def add_interface(self, call: Call, id_: str) -> Response:
        """Connect a subnet or a port."""
        row = self.owned(call, id_, "add_router_interface")
        body = call.body or {}
        if "port_id" in body:
            port = self._attach_port(call, row, body["port_id"])
        elif "subnet_id" in body:
            port = self._attach_subnet(call, row, body["subnet_id"])
        else:
            raise _bad("Either subnet_id or port_id must be specified.")
        self.touch(row)
        return Response(200, self._interface(row, port))

    def remove_interface(self, call: Call, id_: str) -> Response:
        """Disconnect a subnet or a port."""
        row = self.owned(call, id_, "remove_router_interface")
        body = call.body or {}
        port_id, subnet_id = body.get("port_id"), body.get("subnet_id")
        if port_id is None and subnet_id is None:
            raise _bad("Either subnet_id or port_id must be specified.")
        for port in self._ports.of_device(row["id"]):
            subnets = [fixed["subnet_id"] for fixed in port["fixed_ips"]]
            if port["device_owner"] == INTERFACE and (port_id == port["id"] or subnet_id in subnets):
                for subnet in subnets:
                    self._require_unused(row, subnet)
                answer = self._interface(row, port)
                self._ports.discard(port)
                self.touch(row)
                return Response(200, answer)
        if subnet_id is not None:
            self.family("subnet").found(subnet_id)
            text = f"Router {row['id']} has no interface on subnet {subnet_id}"
            raise ApiError(404, text, "RouterInterfaceNotFoundForSubnet")
        text = f"Router {row['id']} does not have an interface with id {port_id}"
        raise ApiError(404, text, "RouterInterfaceNotFound")

    def add_routes(self, call: Call, id_: str) -> Response:
        """Add routes to those that exist."""
        row = self.owned(call, id_, "add_extraroutes")
        given = self.given(call).get("routes") or []
        routes = row["routes"] + [route for route in given if route not in row["routes"]]
        self._check_routes(row, routes)
        row["routes"] = _sorted_routes(routes)
        return Response(200, {"router": self._full_view(self.touch(row))})

    def remove_routes(self, call: Call, id_: str) -> Response:
        """Remove some of the routes."""
        row = self.owned(call, id_, "remove_extraroutes")
        given = self.given(call).get("routes") or []
        row["routes"] = [route for route in row["routes"] if route not in given]
        return Response(200, {"router": self._full_view(self.touch(row))})

    def agents(self, call: Call, id_: str) -> Response:
        """List the agents of a router: there are none."""
        self.visible(call, id_)
        return Response(200, {"agents": []})

    def view(self, row: JsonObject) -> JsonObject:
        """Return a router."""
        return {**super().view(row), "availability_zones": []}

    # interfaces and gateways

    def _attach_subnet(self, call: Call, row: JsonObject, subnet_id: str) -> JsonObject:
        subnet = self.family("subnet").visible(call, subnet_id)
        if subnet["gateway_ip"] is None:
            raise _bad("Subnet for router interface must have a gateway IP.")
        self._require_new(row, subnet)
        network = self.family("network").found(subnet["network_id"])
        fixed = {"subnet_id": subnet_id, "ip_address": subnet["gateway_ip"]}
        port: JsonObject = self._ports.add(network, row["project_id"], _port(row, INTERFACE, [fixed]))
        return port

    def _attach_port(self, call: Call, row: JsonObject, port_id: str) -> JsonObject:
        port = self._ports.visible(call, port_id)
        if port["device_id"]:
            raise ApiError(
                409,
                f"Unable to complete operation on port {port_id} for network {port['network_id']}. Port"
                " already has an"
                f" attached device {port['device_id']}.",
                "PortInUse",
            )
        if not port["fixed_ips"]:
            raise _bad("Router port must have at least one fixed IP")
        for fixed in port["fixed_ips"]:
            self._require_new(row, self.family("subnet").found(fixed["subnet_id"]))
        changes = {"device_id": row["id"], "device_owner": INTERFACE}
        changed: JsonObject = self._ports.apply(port, changes)
        return changed

    def _require_new(self, row: JsonObject, subnet: JsonObject) -> None:
        """Refuse a second interface on a subnet, and ranges that overlap."""
        if self.connected(row["id"], subnet["id"]):
            raise _bad(f"Router already has a port on subnet {subnet['id']}.")
        cidr = ipaddress.ip_network(subnet["cidr"])
        for port in self._ports.of_device(row["id"]):
            for fixed in port["fixed_ips"]:
                other = self.family("subnet").found(fixed["subnet_id"])
                if ipaddress.ip_network(other["cidr"]).overlaps(cidr):
                    raise _bad(
                        f"Cidr {subnet['cidr']} of subnet {subnet['id']} overlaps with cidr {other['cidr']}"
                        " of subnet"
                        f" {other['id']}."
                    )

    def _require_unused(self, row: JsonObject, subnet_id: str) -> None:
        """Refuse to disconnect a subnet that routes or floating addresses need."""
        cidr = ipaddress.ip_network(self.family("subnet").found(subnet_id)["cidr"])
        text = (
            f"Router interface for subnet {subnet_id} on router {row['id']} cannot be deleted, as it is"
            " required by"
        )
        if any(ipaddress.ip_address(route["nexthop"]) in cidr for route in row["routes"]):
            raise ApiError(409, f"{text} one or more routes.", "RouterInterfaceInUseByRoute")
        if self._floating_ips(row["id"], subnet_id):
            raise ApiError(409, f"{text} one or more floating IPs.", "RouterInterfaceInUseByFloatingIP")

    def _external(self, call: Call, network_id: str) -> JsonObject:
        network: JsonObject = self.family("network").visible(call, network_id)
        if not network["router:external"]:
            raise _bad(f"Network {network_id} is not an external network.")
        return network

    def _set_gateway(self, call: Call, row: JsonObject, info: JsonObject) -> None:
        """Connect a router to an external network; without `network_id`, disconnect it."""
        before = row["external_gateway_info"]
        network = self._external(call, info["network_id"]) if info.get("network_id") else None
        leaves = before and (network is None or network["id"] != before["network_id"])
        if leaves and self._floating_ips(row["id"]):
            raise ApiError(
                409,
                f"Gateway cannot be updated for router {row['id']}, since a gateway to external network"
                f" {before['network_id']} is required by one or more floating IPs.",
                "RouterExternalGatewayInUseByFloatingIp",
            )
        ports = [port for port in self._ports.of_device(row["id"]) if port["device_owner"] == GATEWAY]
        wanted = info.get("external_fixed_ips")
        keep = before and network is not None and network["id"] == before["network_id"] and not wanted
        if not keep:
            for port in ports:
                self._ports.discard(port)
            ports = []
        if network is None:
            row["external_gateway_info"] = None
            return
        if not ports:
            values = _port(row, GATEWAY, wanted) if wanted else _port(row, GATEWAY, None)
            ports = [self._ports.add(network, "", values)]
        row["external_gateway_info"] = {
            "network_id": network["id"],
            "external_fixed_ips": ports[0]["fixed_ips"],
            "enable_snat": info.get("enable_snat", (before or {}).get("enable_snat", True)),
        }

    def _check_routes(self, row: JsonObject, routes: list[JsonObject]) -> None:
        """Refuse routes whose next hop is on no connected subnet."""
        ranges = [
            ipaddress.ip_network(self.family("subnet").found(fixed["subnet_id"])["cidr"])
            for port in self._ports.of_device(row["id"])
            for fixed in port["fixed_ips"]
        ]
        for route in routes:
            hop = ipaddress.ip_address(route["nexthop"])
            if not any(hop in cidr for cidr in ranges):
                text = f"Invalid format for routes: {routes}, the nexthop is not connected with router"
                raise ApiError(400, text, "InvalidRoutes")

    def _interface(self, row: JsonObject, port: JsonObject) -> JsonObject:
        subnets = [fixed["subnet_id"] for fixed in port["fixed_ips"]]
        return {
            "id": row["id"],
            "project_id": row["project_id"],
            "port_id": port["id"],
            "network_id": port["network_id"],
            "subnet_id": subnets[0],
            "subnet_ids": subnets,
        }

    def _full_view(self, row: JsonObject) -> JsonObject:
        """Return a router as the answers about extra routes show it."""
        ports = self._ports.of_device(row["id"])
        gateway = next((port["id"] for port in ports if port["device_owner"] == GATEWAY), None)
        return {
            **self.view(row),
            "enable_snat": (row["external_gateway_info"] or {}).get("enable_snat", True),
            "gw_port_id": gateway,
            "ha_vr_id": 0,
            "enable_default_route_ecmp": False,
            "enable_default_route_bfd": False,
        }


def _port(row: JsonObject, owner: str, fixed_ips: list[JsonObject] | None) -> JsonObject:
    port = {
        "device_id": row["id"],
        "device_owner": owner,
        "port_security_enabled": False,
        "security_groups": [],
    }
    return port if fixed_ips is None else {**port, "fixed_ips": fixed_ips}


def _sorted_routes(routes: list[JsonObject]) -> list[JsonObject]:
    return sorted(routes, key=lambda route: (route["destination"], route["nexthop"]))


def _bad(text: str) -> ApiError:
    return ApiError(400, f"Bad router request: {text}", "BadRequest")
