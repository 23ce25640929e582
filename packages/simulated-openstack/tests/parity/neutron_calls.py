"""Calls at Neutron: life cycles, conflicts, refusals, filters and pages."""

from __future__ import annotations

from typing import Final

from parity.neutron_requests import NO_ID, delete, get, post, put
from parity.neutron_routing import FLOATING_IPS, ROUTERS, SECURITY_GROUPS

NETWORKS: Final = (
    post("/networks", {"network": {"name": "h5-net"}}, save={"net": "network.id"}),
    post("/networks", {"network": {"name": "h5-net", "bogus": 1}}),
    post("/networks", {"network": {"name": "h5-net", "tags": ["a"]}}),
    post("/networks", {"network": {"name": 5}}),
    post("/networks", {"network": {"name": "x" * 300}}),
    post("/networks", {"network": {"name": "h5-net", "admin_state_up": "maybe"}}),
    post("/networks", {"network": {"name": "h5-shared", "shared": True}}, by="demo"),
    post("/networks", {"network": {"name": "h5-other", "tenant_id": "f" * 32}}, by="demo"),
    post("/networks", {"bogus": {}}),
    post(
        "/networks",
        {
            "network": {
                "name": "h5-net2",
                "admin_state_up": False,
                "description": "d",
                "port_security_enabled": False,
                "mtu": 1400,
                "dns_domain": "example.org.",
            }
        },
        save={"net2": "network.id"},
    ),
    get("/networks/{net}"),
    get(f"/networks/{NO_ID}"),
    get("/networks/no-uuid"),
    get("/networks?name=h5-net"),
    get("/networks?name=h5-net&fields=id&fields=name"),
    get("/networks?limit=1&sort_key=name&sort_dir=desc&name=h5-net&name=h5-net2"),
    get("/networks?bogus=1"),
    put("/networks/{net}", {"network": {"name": "h5-net-b", "description": "text"}}),
    put("/networks/{net}", {"network": {"id": NO_ID}}),
    put("/networks/{net}", {"network": {"bogus": 1}}),
    put(f"/networks/{NO_ID}", {"network": {"name": "x"}}),
    put("/networks/{net}/tags", {"tags": ["a", "b"]}),
    get("/networks/{net}/tags"),
    put("/networks/{net}/tags/c"),
    get("/networks?tags=a,b&fields=tags&name=h5-net-b"),
    delete("/networks/{net}/tags/c"),
    delete("/networks/{net}/tags/zz"),
    get("/networks/{net}/dhcp-agents"),
    delete(f"/networks/{NO_ID}"),
)
SUBNETS: Final = (
    post(
        "/subnets",
        {"subnet": {"network_id": "{net}", "cidr": "10.91.0.0/24", "ip_version": 4, "name": "h5-sub"}},
        save={"sub": "subnet.id"},
    ),
    post("/subnets", {"subnet": {"network_id": "{net}", "cidr": "10.91.0.0/25", "ip_version": 4}}),
    post("/subnets", {"subnet": {"network_id": NO_ID, "cidr": "10.91.0.0/25", "ip_version": 4}}),
    post("/subnets", {"subnet": {"network_id": "{net}", "cidr": "10.92.0.0/24", "ip_version": 6}}),
    post("/subnets", {"subnet": {"network_id": "{net}", "cidr": "bogus", "ip_version": 4}}),
    post("/subnets", {"subnet": {"network_id": "{net}", "cidr": "10.92.0.0/24"}}),
    post("/subnets", {"subnet": {"network_id": "{net}", "ip_version": 4}}),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "10.92.0.0/24",
                "ip_version": 4,
                "gateway_ip": "10.95.0.1",
            }
        },
    ),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "10.92.0.0/24",
                "ip_version": 4,
                "allocation_pools": [{"start": "10.92.0.50", "end": "10.92.0.20"}],
            }
        },
    ),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "10.92.0.0/24",
                "ip_version": 4,
                "allocation_pools": [{"start": "10.93.0.5", "end": "10.93.0.20"}],
            }
        },
    ),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "10.92.0.0/24",
                "ip_version": 4,
                "allocation_pools": [{"start": "10.92.0.1", "end": "10.92.0.20"}],
            }
        },
    ),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "10.94.0.0/30",
                "ip_version": 4,
                "gateway_ip": None,
                "enable_dhcp": False,
                "dns_nameservers": ["8.8.8.8", "8.8.4.4"],
                "host_routes": [{"destination": "10.1.0.0/16", "nexthop": "10.94.0.1"}],
                "name": "h5-small",
            }
        },
        save={"small": "subnet.id"},
    ),
    post(
        "/subnets",
        {
            "subnet": {
                "network_id": "{net}",
                "cidr": "fd00:5::/64",
                "ip_version": 6,
                "ipv6_ra_mode": "slaac",
                "ipv6_address_mode": "slaac",
                "name": "h5-six",
            }
        },
        save={"six": "subnet.id"},
    ),
    get("/subnets/{sub}"),
    get("/networks/{net}"),
    get("/subnets?network_id={net}&cidr=10.91.0.0/24"),
    put(
        "/subnets/{sub}",
        {
            "subnet": {
                "name": "h5-sub-b",
                "dns_nameservers": ["1.1.1.1"],
                "enable_dhcp": False,
                "allocation_pools": [{"start": "10.91.0.10", "end": "10.91.0.20"}],
            }
        },
    ),
    put("/subnets/{sub}", {"subnet": {"cidr": "10.92.0.0/24"}}),
    put("/subnets/{sub}", {"subnet": {"gateway_ip": "10.91.0.15"}}),
    put("/subnets/{sub}", {"subnet": {"gateway_ip": "10.91.0.254"}}),
    put("/subnets/{sub}/tags", {"tags": ["s"]}),
    delete("/subnets/{six}"),
    delete(f"/subnets/{NO_ID}"),
)
PORTS: Final = (
    post(
        "/ports",
        {
            "port": {
                "network_id": "{net}",
                "name": "h5-port",
                "tags": ["t"],
                "fixed_ips": [{"subnet_id": "{sub}"}],
            }
        },
        save={
            "port": "port.id",
            "port_ip": "port.fixed_ips.0.ip_address",
            "mac": "port.mac_address",
            "default_group": "port.security_groups.0",
        },
    ),
    post("/ports", {"port": {"network_id": NO_ID}}),
    post("/ports", {"port": {"name": "x"}}),
    post("/ports", {"port": {"network_id": "{net}", "fixed_ips": [{"subnet_id": NO_ID}]}}),
    post("/ports", {"port": {"network_id": "{net}", "fixed_ips": [{"ip_address": "192.0.2.5"}]}}),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "fixed_ips": [{"subnet_id": "{sub}", "ip_address": "{port_ip}"}]}},
    ),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "fixed_ips": [{"subnet_id": "{sub}", "ip_address": "10.99.0.1"}]}},
    ),
    post("/ports", {"port": {"network_id": "{net}", "mac_address": "{mac}"}}),
    post("/ports", {"port": {"network_id": "{net}", "security_groups": [NO_ID]}}),
    post("/ports", {"port": {"network_id": "{net}", "mac_address": "bogus"}}),
    post("/ports", {"port": {"network_id": "{net2}", "name": "h5-none"}}, save={"p_none": "port.id"}),
    post(
        "/ports",
        {
            "port": {
                "network_id": "{net}",
                "name": "h5-fixed",
                "security_groups": [],
                "fixed_ips": [{"ip_address": "10.91.0.40"}],
                "admin_state_up": False,
                "description": "d",
                "device_id": "dev",
                "device_owner": "own",
                "dns_name": "host1",
                "allowed_address_pairs": [{"ip_address": "10.91.0.77"}],
            }
        },
        save={"p_fixed": "port.id"},
    ),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "name": "h5-small1", "fixed_ips": [{"subnet_id": "{small}"}]}},
        save={"p_s1": "port.id"},
    ),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "name": "h5-small2", "fixed_ips": [{"subnet_id": "{small}"}]}},
        save={"p_s2": "port.id"},
    ),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "name": "h5-small3", "fixed_ips": [{"subnet_id": "{small}"}]}},
    ),
    post(
        "/ports",
        {
            "port": {
                "network_id": "{net}",
                "name": "h5-unsecured",
                "port_security_enabled": False,
                "security_groups": [],
            }
        },
        save={"p_unsec": "port.id"},
    ),
    post(
        "/ports",
        {
            "port": {
                "network_id": "{net}",
                "port_security_enabled": False,
                "security_groups": ["{default_group}"],
            }
        },
    ),
    get("/ports/{port}"),
    get(f"/ports/{NO_ID}"),
    get("/ports?network_id={net}&name=h5-port"),
    get("/ports?network_id={net}&fixed_ips=ip_address%3D10.91.0.40&fields=name"),
    get("/ports?network_id={net}&tags=t&fields=name"),
    get("/ports?network_id={net}&device_owner=own&fields=id&fields=name"),
    get("/ports?network_id={net}&limit=2&sort_key=name&sort_dir=asc&fields=name"),
    put("/ports/{port}", {"port": {"name": "h5-port-b", "security_groups": [], "admin_state_up": False}}),
    put("/ports/{port}", {"port": {"fixed_ips": [{"subnet_id": "{sub}", "ip_address": "10.91.0.66"}]}}),
    put("/ports/{port}", {"port": {"fixed_ips": [{"subnet_id": "{sub}", "ip_address": "10.91.0.40"}]}}),
    put("/ports/{port}", {"port": {"network_id": "{net2}"}}),
    put("/ports/{port}", {"port": {"bogus": 1}}),
    put("/ports/{port}", {"port": {"security_groups": [NO_ID]}}),
    put("/ports/{port}", {"port": {"fixed_ips": []}}),
    put(
        "/ports/{port}",
        {
            "port": {
                "allowed_address_pairs": [{"ip_address": "10.0.0.0/8"}],
                "extra_dhcp_opts": [{"opt_name": "mtu", "opt_value": "1400"}],
            }
        },
    ),
    put("/ports/{p_unsec}", {"port": {"port_security_enabled": True}}),
    put(f"/ports/{NO_ID}", {"port": {"name": "x"}}),
    delete("/networks/{net}"),
    delete("/subnets/{sub}"),
    delete("/ports/{p_s2}"),
    delete("/ports/{p_s2}"),
)
CLEANUP: Final = (
    put("/routers/{router}/remove_router_interface", {"subnet_id": "{sub}"}),
    delete("/routers/{router}"),
    delete("/routers/{router2}"),
    delete("/ports/{port}"),
    delete("/ports/{p_none}"),
    delete("/ports/{p_s1}"),
    delete("/ports/{p_unsec}"),
    delete("/subnets/{sub}"),
    delete("/subnets/{sub}"),
    delete("/networks/{net}"),
    delete("/networks/{net2}"),
)
CALLS: Final = (*NETWORKS, *SUBNETS, *PORTS, *ROUTERS, *FLOATING_IPS, *SECURITY_GROUPS, *CLEANUP)
