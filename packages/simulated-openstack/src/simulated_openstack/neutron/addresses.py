"""The addresses of subnets: used and free."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from simulated_openstack.http import ApiError
from simulated_openstack.json_types import JsonMapping, JsonObject
from simulated_openstack.neutron.family import Family
from simulated_openstack.neutron.fields import bad_request


class Addresses:
    """The used addresses of all subnets, by subnet, with their ports."""

    def __init__(self, subnets: Family) -> None:
        """Start with free addresses only."""
        self._subnets = subnets
        self._used: dict[str, dict[str, str]] = {}
        self._next: dict[str, int] = {}  # by subnet: number of the address to try first

    def port_ids(self, subnet_id: str) -> list[str]:
        """Return the ports with an address of a subnet."""
        return list(dict.fromkeys(self._used.get(subnet_id, {}).values()))

    def take(self, port_id: str, fixed_ips: Iterable[JsonMapping]) -> None:
        """Mark addresses as used."""
        for fixed in fixed_ips:
            self._used.setdefault(fixed["subnet_id"], {})[fixed["ip_address"]] = port_id

    def free(self, fixed_ips: Iterable[JsonMapping]) -> None:
        """Mark addresses as free."""
        for fixed in fixed_ips:
            self._used.get(fixed["subnet_id"], {}).pop(fixed["ip_address"], None)

    def allocate(
        self,
        network: JsonObject,
        requested: list[JsonObject] | None,
        mac: str,
        kept: Iterable[JsonMapping] = (),
    ) -> list[JsonObject]:
        """Return the addresses of a port: as requested; for None an address of each IP version.

        `kept` are its present addresses, which it may keep.
        """
        subnets = self._subnets.table.where("network_id", network["id"])
        own = {(fixed["subnet_id"], fixed["ip_address"]) for fixed in kept}
        if requested is None:
            return self._automatic(network, subnets, mac)
        fixed_ips: list[JsonObject] = []
        try:
            for item in requested:
                fixed_ips.append(self._one(network, subnets, dict(item), own, mac))
                own.discard((fixed_ips[-1]["subnet_id"], fixed_ips[-1]["ip_address"]))
        except ApiError:
            self._free_reserved(fixed_ips)
            raise
        return fixed_ips

    def _free_reserved(self, fixed_ips: Iterable[JsonMapping]) -> None:
        """Free addresses that no port has received."""
        self.free(f for f in fixed_ips if not self._used.get(f["subnet_id"], {}).get(f["ip_address"], "x"))

    def _automatic(self, network: JsonObject, subnets: list[JsonObject], mac: str) -> list[JsonObject]:
        fixed_ips = []
        for version in (4, 6):
            same = [row for row in subnets if row["ip_version"] == version]
            automatic = [row for row in same if row["ipv6_address_mode"] in {"slaac", "dhcpv6-stateless"}]
            for row in automatic:
                fixed_ips.append({"subnet_id": row["id"], "ip_address": _slaac(row["cidr"], mac)})
            others = [row for row in same if row not in automatic]
            if others:
                fixed_ips.append(self._any(network, others))
        return fixed_ips

    def _one(
        self,
        network: JsonObject,
        subnets: list[JsonObject],
        item: JsonObject,
        own: set[tuple[str, str]],
        mac: str,
    ) -> JsonObject:
        """Return a requested address."""
        subnet_id, address = item.get("subnet_id"), item.get("ip_address")
        if subnet_id:
            subnet = self._subnets.found(subnet_id)
            if subnet["network_id"] != network["id"]:
                raise ApiError(
                    400,
                    "Invalid input for operation: Failed to create port on network"
                    f" {network['id']}, because fixed_ips included invalid subnet {subnet_id}.",
                    "InvalidInput",
                )
        if address:
            return self._exact(subnets, subnet_id, address, own)
        if not subnet_id:
            raise bad_request("IP allocation requires subnet_id or ip_address")
        if subnet["ipv6_address_mode"] in {"slaac", "dhcpv6-stateless"}:
            return {"subnet_id": subnet_id, "ip_address": _slaac(subnet["cidr"], mac)}
        present = next((text for id_, text in own if id_ == subnet_id), None)
        if present is not None:
            return {"subnet_id": subnet_id, "ip_address": present}
        return self._any(network, [subnet])

    def _exact(
        self, subnets: list[JsonObject], subnet_id: str | None, address: str, own: set[tuple[str, str]]
    ) -> JsonObject:
        """Return a requested address of the subnet that contains it."""
        try:
            number = ipaddress.ip_address(address)
        except ValueError as error:
            raise bad_request(
                f"Invalid input for fixed_ips. Reason: '{address}' is not a valid IP address."
            ) from error
        containing = [row for row in subnets if number in ipaddress.ip_network(row["cidr"])]
        if subnet_id is not None:
            containing = [row for row in containing if row["id"] == subnet_id]
        if not containing:
            if subnet_id is not None:
                text = f"IP address {address} is not a valid IP for the specified subnet."
                raise ApiError(400, text, "InvalidIpForSubnet")
            text = f"IP address {address} is not a valid IP for any of the subnets on the specified network."
            raise ApiError(400, text, "InvalidIpForNetwork")
        subnet, text = containing[0], str(number)
        if text in self._used.get(subnet["id"], {}) and (subnet["id"], text) not in own:
            raise ApiError(
                409,
                f"IP address {address} already allocated in subnet {subnet['id']}",
                "IpAddressAlreadyAllocated",
            )
        return {"subnet_id": subnet["id"], "ip_address": text}

    def _any(self, network: JsonObject, subnets: list[JsonObject]) -> JsonObject:
        """Return the next free address of the first subnet with a free address."""
        for subnet in subnets:
            used = self._used.setdefault(subnet["id"], {})
            for number in self._candidates(subnet):
                address = str(_address(subnet, number))
                if address not in used:
                    self._next[subnet["id"]] = number + 1
                    used[address] = ""  # until the port is kept
                    return {"subnet_id": subnet["id"], "ip_address": address}
        raise ApiError(
            409,
            f"No more IP addresses available on network {network['id']}.",
            "IpAddressGenerationFailure",
        )

    def _candidates(self, subnet: JsonObject) -> Iterator[int]:
        """Yield the numbers of the pools, those after the last allocated number first."""
        pools = [
            range(int(ipaddress.ip_address(pool["start"])), int(ipaddress.ip_address(pool["end"])) + 1)
            for pool in subnet["allocation_pools"]
        ]
        first = self._next.get(subnet["id"], 0)
        for pool in pools:
            yield from range(max(first, pool.start), pool.stop)
        for pool in pools:
            yield from range(pool.start, min(first, pool.stop))


def _address(subnet: JsonObject, number: int) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.IPv4Address(number) if subnet["ip_version"] == 4 else ipaddress.IPv6Address(number)


def _slaac(cidr: str, mac: str) -> str:
    """Return the address that a host with a MAC address gives itself (EUI-64)."""
    parts = [int(part, 16) for part in mac.split(":")]
    parts[0] ^= 2
    octets = [*parts[:3], 0xFF, 0xFE, *parts[3:]]
    host = int.from_bytes(bytes(octets), "big")
    return str(ipaddress.IPv6Address(int(ipaddress.ip_network(cidr).network_address) + host))
