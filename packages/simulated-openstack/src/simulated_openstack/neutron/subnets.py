"""Subnets and their addresses."""

from __future__ import annotations

import ipaddress
from typing import ClassVar, Final

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.addresses import Addresses
from simulated_openstack.neutron.family import Families, Family
from simulated_openstack.neutron.fields import REQUIRED, Field, bad_request, invalid_input
from simulated_openstack.neutron.sharing import Network, SubnetPools
from simulated_openstack.service import Call, Service

UNSET: Final = "\0unset"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Subnets(Family):
    """Subnets."""

    singular = "subnet"
    collection = "subnets"
    label = "Subnet"
    not_found_kind = "SubnetNotFound"
    quota = "subnet"
    indexes: ClassVar[tuple[str, ...]] = ("network_id",)
    fields: ClassVar[dict[str, Field]] = {
        "name": Field(),
        "network_id": Field(REQUIRED, "uuid", put=False),
        "ip_version": Field(REQUIRED, "integer", put=False),
        "cidr": Field(None, "any", put=False),
        "subnetpool_id": Field(None, "any", put=False),
        "prefixlen": Field(None, "any", put=False),
        "gateway_ip": Field(UNSET, "any"),
        "allocation_pools": Field(None, "any"),
        "enable_dhcp": Field(True, "boolean"),
        "ipv6_ra_mode": Field(None, "any", put=False),
        "ipv6_address_mode": Field(None, "any", put=False),
        "host_routes": Field(list, "any"),
        "dns_nameservers": Field(list, "any"),
        "description": Field(),
        "service_types": Field(list, "any"),
        "segment_id": Field(None, "any"),
        "dns_publish_fixed_ip": Field(None, "any"),
    }

    def __init__(self, neutron: Service, families: Families, pools: SubnetPools) -> None:
        """Add the routes."""
        super().__init__(neutron, families)
        self._pools = pools
        self.addresses = Addresses(self)

    def ports_on(self, subnet_id: str) -> list[JsonObject]:
        """Return the ports with an address of a subnet."""
        ports = self.family("port").table
        return [row for id_ in self.addresses.port_ids(subnet_id) if (row := ports.get(id_)) is not None]

    def create(self, call: Call, values: JsonObject) -> JsonObject:
        """Keep a new subnet with its gateway and its pools of addresses."""
        for name in ("prefixlen", "dns_publish_fixed_ip"):
            values.setdefault(name, None)
        prefixlen = values.pop("prefixlen")
        values.pop("dns_publish_fixed_ip")
        cidr = self._cidr(values, prefixlen)
        network = self.family("network").visible(call, values["network_id"])
        if network["project_id"] != call.caller.project_id and not call.caller.is_admin:
            self.disallow("create")
        values["cidr"] = str(cidr)
        gateway = values["gateway_ip"]
        if gateway == UNSET:
            values["gateway_ip"] = str(_first(cidr, values))
        values["allocation_pools"] = _pools(cidr, values)
        self._check_gateway(values["gateway_ip"], values["allocation_pools"])
        self._require_apart(network["id"], cidr, values["subnetpool_id"])
        values["host_routes"] = values["host_routes"] or []
        return self.save_new(call, values)

    def change(self, call: Call, row: JsonObject, values: JsonObject) -> None:
        """Apply a change."""
        cidr = ipaddress.ip_network(row["cidr"])
        if values.get("allocation_pools") is not None:
            values["allocation_pools"] = _pools(cidr, {**row, **values})
        after = {**row, **values}
        self._check_gateway(after["gateway_ip"], after["allocation_pools"])
        if "gateway_ip" in values and values["gateway_ip"] != row["gateway_ip"]:
            for port in self.ports_on(row["id"]):
                if port["device_owner"] == "network:router_interface" and any(
                    fixed["ip_address"] == row["gateway_ip"] for fixed in port["fixed_ips"]
                ):
                    raise ApiError(
                        409,
                        f"Current gateway ip {row['gateway_ip']} already in use by port {port['id']}."
                        " Unable to update.",
                        "GatewayIpInUse",
                    )
        super().change(call, row, values)

    def remove(self, call: Call, row: JsonObject) -> None:
        """Remove a subnet without ports."""
        ports = self.ports_on(row["id"])
        if any(port["device_owner"] != "network:dhcp" for port in ports):
            raise ApiError(
                409,
                f"Unable to complete operation on subnet {row['id']}: One or more ports have an IP"
                " allocation from"
                " this subnet.",
                "SubnetInUse",
            )
        super().remove(call, row)

    def view(self, row: JsonObject) -> JsonObject:
        """Return a subnet; it is external as its network."""
        network = self.family("network").table.get(row["network_id"]) or {}
        return {**super().view(row), "router:external": network.get("router:external", False)}

    def is_visible(self, call: Call, row: JsonObject) -> bool:
        """Whether the caller may use a subnet: as its network, but not of external networks alone."""
        network = self.family("network").table.get(row["network_id"])
        if super().is_visible(call, row) or network is None:
            return super().is_visible(call, row)
        return bool(self.family("network").is_visible(call, network))

    def _cidr(self, values: JsonObject, prefixlen: object) -> Network:
        """Return the range of a new subnet: as given, or from a pool."""
        version = values["ip_version"]
        if version not in (4, 6):
            raise bad_request(f"Invalid input for ip_version. Reason: {version} is not in valid_values.")
        if values["cidr"] is None:
            pool = values["subnetpool_id"]
            if pool is None:
                text = "Bad subnets request: a subnetpool must be specified in the absence of a cidr."
                raise ApiError(400, text, "BadRequest")
            allocated: Network = self._pools.allocate(pool, prefixlen)
            return allocated
        try:
            cidr = ipaddress.ip_network(str(values["cidr"]), strict=False)
            if "/" not in str(values["cidr"]):
                raise ValueError
        except ValueError as error:
            raise invalid_input(f"{values['cidr']} is not in a CIDR format.") from error
        if cidr.version != version:
            raise invalid_input(f"cidr '{values['cidr']}' does not match the ip_version '{version}'.")
        return cidr

    def _require_apart(self, network_id: str, cidr: Network, pool_id: str | None) -> None:
        for other in self.table.where("network_id", network_id):
            if other["subnetpool_id"] != pool_id and other["ip_version"] == cidr.version:
                text = "Subnets hosted on the same network must be allocated from the same subnet pool."
                raise ApiError(400, text, "NetworkSubnetPoolAffinityError")
            if ipaddress.ip_network(other["cidr"]).overlaps(cidr):
                raise invalid_input(
                    f"Requested subnet with cidr: {cidr} for network: {network_id} overlaps with another"
                    " subnet."
                )

    def _check_gateway(self, gateway: str | None, pools: list[JsonObject]) -> None:
        if gateway is None:
            return
        address = ipaddress.ip_address(gateway)
        for pool in pools:
            if in_pool(address, pool):
                raise ApiError(
                    409,
                    f"Gateway ip {gateway} conflicts with allocation pool {pool['start']}-{pool['end']}.",
                    "GatewayConflictWithAllocationPools",
                )


def in_pool(address: Address, pool: JsonObject) -> bool:
    """Whether an address is in a pool."""
    start, end = ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])
    return start.version == address.version and int(start) <= int(address) <= int(end)


def _first(cidr: Network, values: JsonObject) -> Address:
    """Return the default gateway: the first address; of a SLAAC range the address of all routers."""
    automatic = values["ipv6_ra_mode"] == "slaac" or values["ipv6_address_mode"] == "slaac"
    offset = 0 if cidr.version == 6 and automatic else 1
    return cidr.network_address + offset


def _pools(cidr: Network, values: JsonObject) -> list[JsonObject]:
    """Return the pools of addresses: as given, or all usable addresses except the gateway."""
    given = values.get("allocation_pools")
    if given is not None:
        for pool in given:
            _check_pool(cidr, pool)
        return [{"start": pool["start"], "end": pool["end"]} for pool in given]
    first, last = int(cidr.network_address) + 1, int(cidr.broadcast_address) - (cidr.version == 4)
    gateway = values["gateway_ip"]
    number = None if gateway is None else int(ipaddress.ip_address(gateway))
    ranges = [(first, last)]
    if number is not None and first <= number <= last and ipaddress.ip_address(gateway) in cidr:
        ranges = [(first, number - 1), (number + 1, last)]
    kind = type(cidr.network_address)
    return [{"start": str(kind(low)), "end": str(kind(high))} for low, high in ranges if low <= high]


def _check_pool(cidr: Network, pool: JsonObject) -> None:
    try:
        start, end = ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])
    except (KeyError, ValueError) as error:
        raise ApiError(400, f"The allocation pool {pool} is not valid.", "InvalidAllocationPool") from error
    if int(start) > int(end):
        raise ApiError(400, f"The allocation pool {pool} is not valid.", "InvalidAllocationPool")
    if start not in cidr or end not in cidr:
        raise ApiError(
            400,
            f"The allocation pool {start}-{end} spans beyond the subnet cidr {cidr}.",
            "OutOfBoundsAllocationPool",
        )
