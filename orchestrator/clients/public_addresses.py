"""Addresses of the public internet, by IANA's registries of special-purpose addresses.

The registries are listed here, because `ipaddress.is_global` differs between releases of Python. An IPv6
address that embeds an IPv4 address is public only if both are.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

# Ranges that are not globally reachable, and deprecated ranges.
_SPECIAL_V4: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared address space of carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, metadata services of clouds
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # IETF protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # automatic multicast tunneling
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# Only 2000::/3 is assigned for global unicast. It contains these special ranges.
_GLOBAL_V6: Final = ip_network("2000::/3")
_SPECIAL_V6: Final = tuple(
    map(
        ip_network,
        (
            "2001::/23",  # IETF protocol assignments: Teredo, benchmarks, ORCHID …
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: a tunnel to the embedded address
            "2620:4f:8000::/48",  # AS112
            "3ffe::/16",  # 6bone, returned
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64: Final = ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Whether an address is reachable from the public internet; a zone (`%eth0`) is ignored.

    IPv4-mapped addresses and NAT64's well-known prefix are judged by the embedded IPv4 address.
    6to4, Teredo and the local prefix of NAT64 are never public.
    """
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped
        if address in _NAT64:
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is None:
            return address in _GLOBAL_V6 and not any(address in special for special in _SPECIAL_V6)
        address = embedded
    return not any(address in special for special in _SPECIAL_V4)
