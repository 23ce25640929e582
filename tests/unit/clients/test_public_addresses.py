"""Addresses of the public internet, with the same answers on every supported release of Python."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from orchestrator.clients.public_addresses import is_public

# IANA's registries of special-purpose addresses, and the embeddings of IPv4 addresses.
SPECIAL = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
    192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/31 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
    192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
    240.0.0.0/4 255.255.255.255/32
    ::/128 ::1/128 ::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
    2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32
    2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32
    2002::/16 2620:4f:8000::/48 3ffe::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
    ::ffff:127.0.0.0/104 ::ffff:10.0.0.0/104 ::ffff:169.254.169.254/128 ::ffff:100.64.0.0/106
    64:ff9b::7f00:0/104 64:ff9b::a00:0/104 64:ff9b::a9fe:a9fe/128
"""


@pytest.mark.parametrize("range_", SPECIAL.split())
def test_no_address_of_a_special_range_is_public(range_: str) -> None:
    network = ip_network(range_)
    addresses = (network[0], network[-1], network[network.num_addresses // 2])
    assert not any(is_public(str(address)) for address in addresses)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.32.0.0",
        "192.0.1.0",
        "198.20.0.0",
        "223.255.255.255",
        "2001:4860:4860::8888",
        "2001:200::1",
        "2003::1",
        "2606:4700::1111",
        "3ffd::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_a_zone_is_ignored() -> None:
    assert not is_public("fe80::1%eth0")
