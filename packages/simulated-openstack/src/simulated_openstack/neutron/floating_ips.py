"""Floating addresses and their port forwardings."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import REQUIRED, Field
from simulated_openstack.neutron.ports import Ports
from simulated_openstack.neutron.routers import Routers
from simulated_openstack.service import Call, Service, new_id

OWNER: Final = "network:floatingip"
SHOWN: Final = ("name", "network_id", "mac_address", "admin_state_up", "status", "device_id", "device_owner")


class FloatingIps(Family):
    """Floating addresses."""

    singular = "floatingip"
    collection = "floatingips"
    label = "Floating IP"
    not_found = "{label} {id} could not be found"
    not_found_kind = "FloatingIPNotFound"
    quota = "floatingip"
    indexes: ClassVar[tuple[str, ...]] = ("port_id", "router_id")
    fields: ClassVar[dict[str, Field]] = {
        "floating_network_id": Field(REQUIRED, "uuid", put=False),
        "subnet_id": Field(None, "any", put=False),
        "floating_ip_address": Field(None, "any", put=False),
        "port_id": Field(None, "any"),
        "fixed_ip_address": Field(None, "any"),
        "description": Field(),
        "qos_policy_id": Field(None, "any"),
        "dns_domain": Field("", "any", put=False),
        "dns_name": Field("", "any", put=False),
        "router_id": Field(None, "any", post=False, put=False),
    }

    def __init__(self, neutron: Service, families: Families, ports: Ports, routers: Routers) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._ports, self._routers = ports, routers
        ports.on_addresses.append(self._release_unmatched)
        root = "/v2.0/floatingips/{id_}/port_forwardings"
        add = neutron.router.add
        add("GET", root, self.forwardings)
        add("POST", root, self.add_forwarding)
        for method, handler in (
            ("GET", self.forwarding),
            ("PUT", self.change_forwarding),
            ("DELETE", self.remove_forwarding),
        ):
            add(method, root + "/{forwarding_id}", handler)

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new floating address."""
        network = self.family("network").visible(call, values["floating_network_id"])
        if not network["router:external"]:
            raise _bad(f"Network {network['id']} is not a valid external network.")
        project = str(values.get("project_id") or values.get("tenant_id") or call.caller.project_id)
        self.quotas.require(self.quota, project)
        id_ = new_id()
        wanted = {
            key: value
            for key, value in (
                ("subnet_id", values.pop("subnet_id")),
                ("ip_address", values["floating_ip_address"]),
            )
            if value
        }
        port = {
            "device_id": id_,
            "device_owner": OWNER,
            "port_security_enabled": False,
            "security_groups": [],
        }
        if wanted:
            port["fixed_ips"] = [wanted]
        own = self._ports.add(network, "", port)
        values["floating_ip_address"] = own["fixed_ips"][0]["ip_address"]
        row = {
            "id": id_,
            **values,
            "router_id": None,
            "status": "DOWN",
            "port_forwardings": [],
            "_subnet_id": None,
        }
        try:
            self._associate(call, row, values)
        except ApiError:
            self._ports.discard(own)
            raise
        return self.save_new(call, {**row, "_port_id": own["id"]})

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change; without `port_id` the port stays."""
        if values.get("port_id") and row["port_forwardings"]:
            text = f"Floating IP {row['id']} in use by Port Forwarding resources."
            raise ApiError(409, text, "FipInUseByPortForwarding")
        if "port_id" in values:
            self._associate(call, row, values)
        super().change(
            call, row, {k: v for k, v in values.items() if k not in {"port_id", "fixed_ip_address"}}
        )

    def remove(self, call: Call, row: JsonObject) -> None:
        """Give the address back."""
        port = self._ports.table.get(row["_port_id"])
        if port is not None:
            self._ports.discard(port)
        super().remove(call, row)

    def _release_unmatched(self, port_id: str, fixed_ips: list[JsonObject]) -> None:
        """Free the floating addresses of a port whose fixed address it no longer has."""
        addresses = {fixed["ip_address"] for fixed in fixed_ips}
        for row in self.table.where("port_id", port_id):
            if row["fixed_ip_address"] not in addresses:
                self.touch(self._freed(row))
        for row in self.table:  # forwardings to the address end, too
            kept = [
                item
                for item in row["port_forwardings"]
                if item["internal_port_id"] != port_id or item["internal_ip_address"] in addresses
            ]
            if len(kept) < len(row["port_forwardings"]):
                row |= {"port_forwardings": kept, "router_id": row["router_id"] if kept else None}
                self.touch(row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a floating address with a summary of its port."""
        port = self._ports.table.get(row["port_id"]) if row["port_id"] else None
        forwardings = [
            {key: value for key, value in item.items() if key != "description"}
            for item in row["port_forwardings"]
        ]
        details = port and {name: port[name] for name in SHOWN}
        return {**super().view(row), "port_forwardings": forwardings, "port_details": details}

    def _associate(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Connect a floating address with a port, or with none."""
        port_id, address = values.get("port_id"), values.get("fixed_ip_address")
        if port_id is None:
            self._freed(row)
            return
        port = self._ports.visible(call, port_id)
        fixed = [item for item in port["fixed_ips"] if ":" not in item["ip_address"]]
        if not fixed:
            raise _bad(f"Cannot add floating IP to port {port_id} that has no fixed IPv4 addresses.")
        if address:
            fixed = [item for item in fixed if item["ip_address"] == address]
            if not fixed:
                raise _bad(f"Port {port_id} does not have fixed ip {address}.")
        elif len(fixed) > 1:
            raise _bad(
                f"Port {port_id} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address."
            )
        self._require_free(row, port_id, fixed[0]["ip_address"])
        router = self._routers.between(fixed[0]["subnet_id"], row["floating_network_id"])
        if router is None:
            raise ApiError(
                404,
                f"External network {row['floating_network_id']} is not reachable from subnet"
                f" {fixed[0]['subnet_id']}."
                f"  Therefore, cannot associate Port {port_id} with a Floating IP.",
                "ExternalGatewayForFloatingIPNotFound",
            )
        row |= {"port_id": port_id, "fixed_ip_address": fixed[0]["ip_address"], "router_id": router["id"]}
        row["_subnet_id"] = fixed[0]["subnet_id"]

    def _require_free(self, row: JsonObject, port_id: str, address: str) -> None:
        for other in self.table.where("port_id", port_id):
            if (
                other["id"] != row["id"]
                and other["fixed_ip_address"] == address
                and other["floating_network_id"] == row["floating_network_id"]
            ):
                raise ApiError(
                    409,
                    f"Cannot associate floating IP {row['floating_ip_address']} ({row['id']}) with port"
                    f" {port_id} using"
                    f" fixed IP {address}, as that fixed IP already has a floating IP on external network"
                    f" {row['floating_network_id']}.",
                    "FloatingIPPortAlreadyAssociated",
                )

    def _freed(self, row: JsonObject) -> JsonObject:
        row |= {"port_id": None, "fixed_ip_address": None, "router_id": None, "_subnet_id": None}
        return row

    # port forwardings

    def forwardings(self, call: Call, id_: str) -> Response:
        """List port forwardings."""
        return Response(
            200, {"port_forwardings": [_ranges(item) for item in self.visible(call, id_)["port_forwardings"]]}
        )

    def add_forwarding(self, call: Call, id_: str) -> Response:
        """Add a port forwarding."""
        row = self.owned(call, id_, "update")
        given = dict((call.body or {}).get("port_forwarding") or {})
        self._ports.visible(call, given.get("internal_port_id", ""))
        port = given.get("internal_port")
        for item in row["port_forwardings"]:
            if (item["internal_port"], item["protocol"]) == (port, given.get("protocol")):
                raise ApiError(
                    400,
                    "Bad port_forwarding request: There is a port collision with the internal_port_range. The"
                    f" following ranges collide: {port}:{port} and {port}:{port}.",
                    "BadRequest",
                )
        fixed = self._ports.found(given["internal_port_id"])["fixed_ips"]
        network = row["floating_network_id"]
        router = self._routers.between(fixed[0]["subnet_id"], network) if fixed else None
        row["router_id"] = router and router["id"]
        entry = {"description": "", **given, "id": new_id()}
        row["port_forwardings"] = [*row["port_forwardings"], entry]
        self.touch(row)
        return Response(201, {"port_forwarding": _ranges(entry)})

    def forwarding(self, call: Call, id_: str, forwarding_id: str) -> Response:
        """Show a port forwarding."""
        return Response(
            200, {"port_forwarding": _ranges(self._forwarding(self.visible(call, id_), forwarding_id))}
        )

    def change_forwarding(self, call: Call, id_: str, forwarding_id: str) -> Response:
        """Change a port forwarding."""
        row = self.owned(call, id_, "update")
        entry = self._forwarding(row, forwarding_id)
        entry.update((call.body or {}).get("port_forwarding") or {})
        self.touch(row)
        return Response(200, {"port_forwarding": _ranges(entry)})

    def remove_forwarding(self, call: Call, id_: str, forwarding_id: str) -> Response:
        """Remove a port forwarding."""
        row = self.owned(call, id_, "update")
        entry = self._forwarding(row, forwarding_id)
        row["port_forwardings"] = [item for item in row["port_forwardings"] if item is not entry]
        if not row["port_forwardings"]:
            row["router_id"] = None
        self.touch(row)
        return Response(204)

    def _forwarding(self, row: JsonObject, id_: str) -> JsonObject:
        for entry in row["port_forwardings"]:
            if entry["id"] == id_:
                found: JsonObject = entry
                return found
        raise ApiError(404, f"Port Forwarding {id_} could not be found.", "PortForwardingNotFound")


def _bad(text: str) -> ApiError:
    return ApiError(400, f"Bad floatingip request: {text}", "BadRequest")


def _ranges(entry: JsonObject) -> JsonObject:
    """Return a port forwarding with its ranges of ports."""
    ranges = {f"{name}_range": f"{entry[name]}:{entry[name]}" for name in ("internal_port", "external_port")}
    return {**entry, **ranges}
