"""Calls at Neutron for routers, floating addresses and security groups; a part of `neutron_calls`."""

from __future__ import annotations

from typing import Final

from parity.neutron_requests import NO_ID, delete, get, post, put

ROUTERS: Final = (
    get("/networks?name=public", save={"public": "networks.0.id", "public_subnet": "networks.0.subnets.0"}),
    get("/subnets/{public_subnet}"),
    post("/routers", {"router": {"name": "h5-router"}}, save={"router": "router.id"}),
    post("/routers", {"router": {"name": "h5-router", "external_gateway_info": {"network_id": "{net}"}}}),
    post("/routers", {"router": {"name": "h5-router", "external_gateway_info": {"network_id": NO_ID}}}),
    post(
        "/routers",
        {"router": {"name": "h5-router2", "external_gateway_info": {"network_id": "{public}"}}},
        save={"router2": "router.id"},
    ),
    put("/subnets/{sub}", {"subnet": {"gateway_ip": "10.91.0.1"}}),
    put("/routers/{router}/add_router_interface", {"subnet_id": "{sub}"}, save={"if_port": "port_id"}),
    put("/routers/{router}/add_router_interface", {"subnet_id": "{sub}"}),
    put("/routers/{router2}/add_router_interface", {"subnet_id": "{sub}"}),
    put("/routers/{router}/add_router_interface", {"subnet_id": NO_ID}),
    put("/routers/{router}/add_router_interface", {"port_id": NO_ID}),
    put("/routers/{router}/add_router_interface", {}),
    put("/routers/{router}/add_router_interface", {"port_id": "{p_fixed}"}),
    put("/routers/{router}/add_router_interface", {"subnet_id": "{small}"}),
    put(f"/routers/{NO_ID}/add_router_interface", {"subnet_id": "{sub}"}),
    get("/ports/{if_port}"),
    get("/routers/{router}"),
    delete("/ports/{if_port}"),
    delete("/routers/{router}"),
    delete("/subnets/{sub}"),
    put(
        "/routers/{router}",
        {"router": {"external_gateway_info": {"network_id": "{public}", "enable_snat": True}}},
    ),
    put(
        "/routers/{router}",
        {"router": {"routes": [{"destination": "10.200.0.0/24", "nexthop": "10.91.0.66"}]}},
    ),
    put(
        "/routers/{router}",
        {"router": {"routes": [{"destination": "10.200.0.0/24", "nexthop": "10.222.0.66"}]}},
    ),
    put(
        "/routers/{router}/add_extraroutes",
        {"router": {"routes": [{"destination": "10.201.0.0/24", "nexthop": "10.91.0.67"}]}},
    ),
    put(
        "/routers/{router}/remove_extraroutes",
        {"router": {"routes": [{"destination": "10.201.0.0/24", "nexthop": "10.91.0.67"}]}},
    ),
    put("/routers/{router}/remove_router_interface", {"subnet_id": "{sub}"}),
    put("/routers/{router}", {"router": {"routes": []}}),
    get("/ports?device_id={router}&device_owner=network:router_gateway"),
    get("/routers?name=h5-router"),
    get("/routers/{router}/l3-agents"),
    put("/routers/{router}", {"router": {"name": "h5-router-b", "admin_state_up": False}}),
    post("/routers", {"router": {"name": "x"}}, by="demo", save={"router3": "router.id"}),
    delete("/routers/{router3}"),
)
FLOATING_IPS: Final = (
    post(
        "/floatingips",
        {"floatingip": {"floating_network_id": "{public}"}},
        save={"fip": "floatingip.id", "fip_ip": "floatingip.floating_ip_address"},
    ),
    post("/floatingips", {"floatingip": {"floating_network_id": "{net}"}}),
    post("/floatingips", {"floatingip": {"floating_network_id": NO_ID}}),
    post(
        "/floatingips", {"floatingip": {"floating_network_id": "{public}", "floating_ip_address": "{fip_ip}"}}
    ),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}", "port_id": "{p_none}"}}),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}", "port_id": NO_ID}}),
    put("/floatingips/{fip}", {"floatingip": {"port_id": "{p_fixed}"}}),
    put("/floatingips/{fip}", {"floatingip": {"port_id": "{p_fixed}", "fixed_ip_address": "10.91.0.99"}}),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}", "port_id": "{p_fixed}"}}),
    get("/floatingips/{fip}"),
    get("/floatingips?port_id={p_fixed}"),
    put("/routers/{router}/remove_router_interface", {"subnet_id": "{sub}"}),
    put("/routers/{router}", {"router": {"external_gateway_info": {}}}),
    delete("/networks/{public}"),
    put("/floatingips/{fip}", {"floatingip": {"port_id": None}}),
    put("/floatingips/{fip}", {"floatingip": {"description": "text", "port_id": "{p_fixed}"}}),
    delete("/ports/{p_fixed}"),
    get("/floatingips/{fip}"),
    delete("/floatingips/{fip}"),
    delete("/floatingips/{fip}"),
    get(f"/floatingips/{NO_ID}"),
)
SECURITY_GROUPS: Final = (
    post(
        "/security-groups",
        {"security_group": {"name": "h5-sg", "description": "d"}},
        save={"sg": "security_group.id"},
    ),
    post("/security-groups", {"security_group": {"name": "default"}}),
    post(
        "/security-groups",
        {"security_group": {"name": "h5-sg2", "stateful": False}},
        save={"sg2": "security_group.id"},
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "protocol": "tcp",
                "port_range_min": 22,
                "port_range_max": 22,
                "ethertype": "IPv4",
            }
        },
        save={"rule": "security_group_rule.id"},
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "protocol": "tcp",
                "port_range_min": 22,
                "port_range_max": 22,
                "ethertype": "IPv4",
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "protocol": "tcp",
                "port_range_min": 80,
                "port_range_max": 22,
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "port_range_min": 80,
                "port_range_max": 80,
            }
        },
    ),
    post(
        "/security-group-rules",
        {"security_group_rule": {"security_group_id": "{sg}", "direction": "sideways"}},
    ),
    post(
        "/security-group-rules",
        {"security_group_rule": {"security_group_id": "{sg}", "direction": "ingress", "protocol": "bogus"}},
    ),
    post(
        "/security-group-rules", {"security_group_rule": {"security_group_id": NO_ID, "direction": "ingress"}}
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "remote_group_id": "{sg2}",
                "remote_ip_prefix": "10.0.0.0/8",
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "remote_group_id": "{sg2}",
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "remote_group_id": NO_ID,
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "ingress",
                "remote_ip_prefix": "10.1.2.3/24",
                "protocol": "icmp",
                "port_range_min": 8,
            }
        },
    ),
    post(
        "/security-group-rules",
        {
            "security_group_rule": {
                "security_group_id": "{sg}",
                "direction": "egress",
                "ethertype": "IPv6",
                "protocol": "17",
            }
        },
    ),
    get("/security-groups/{sg}"),
    get("/security-group-rules/{rule}"),
    get("/security-group-rules?security_group_id={sg}&direction=egress"),
    put("/security-groups/{sg}", {"security_group": {"name": "h5-sg-b", "description": "x"}}),
    put("/security-groups/{sg}", {"security_group": {"name": "default"}}),
    put("/ports/{port}", {"port": {"security_groups": ["{sg}"]}}),
    delete("/security-groups/{sg}"),
    delete("/security-groups/{sg2}"),
    delete("/security-group-rules/{rule}"),
    delete("/security-group-rules/{rule}"),
    put("/ports/{port}", {"port": {"security_groups": []}}),
    delete("/security-groups/{sg}"),
    delete("/security-groups/{sg}"),
    delete("/security-groups/{default_group}"),
    get("/security-groups?name=default&fields=name&fields=description&project_id={project}"),
)
