"""Calls at Neutron's extensions: QoS, trunks, sharing, pools, scopes, segments, metering, forwardings,
quotas.
"""

from __future__ import annotations

from typing import Final

from parity.neutron_requests import NO_ID, delete, get, post, put

SETUP: Final = (
    post("/networks", {"network": {"name": "h5-x"}}, save={"net": "network.id"}, compare=False),
    post(
        "/subnets",
        {"subnet": {"network_id": "{net}", "cidr": "10.71.0.0/24", "ip_version": 4}},
        save={"sub": "subnet.id"},
        compare=False,
    ),
    post(
        "/ports",
        {"port": {"network_id": "{net}", "name": "h5-x1"}},
        save={"p1": "port.id", "p1_ip": "port.fixed_ips.0.ip_address"},
        compare=False,
    ),
    post("/ports", {"port": {"network_id": "{net}", "name": "h5-x2"}}, save={"p2": "port.id"}, compare=False),
)
QOS: Final = (
    post(
        "/qos/policies",
        {"policy": {"name": "h5-q", "description": "d", "shared": True}},
        save={"q": "policy.id"},
    ),
    post("/qos/policies", {"policy": {"name": "h5-q"}}, by="demo"),
    get("/qos/policies/{q}"),
    get(f"/qos/policies/{NO_ID}"),
    get("/qos/policies?name=h5-q"),
    put("/qos/policies/{q}", {"policy": {"description": "e", "shared": False}}),
    post(
        "/qos/policies/{q}/bandwidth_limit_rules",
        {"bandwidth_limit_rule": {"max_kbps": 1000}},
        save={"bw": "bandwidth_limit_rule.id"},
    ),
    post("/qos/policies/{q}/bandwidth_limit_rules", {"bandwidth_limit_rule": {"max_kbps": 1000}}),
    get("/qos/policies/{q}/bandwidth_limit_rules/{bw}"),
    put("/qos/policies/{q}/bandwidth_limit_rules/{bw}", {"bandwidth_limit_rule": {"max_burst_kbps": 5}}),
    post(
        "/qos/policies/{q}/dscp_marking_rules",
        {"dscp_marking_rule": {"dscp_mark": 10}},
        save={"ds": "dscp_marking_rule.id"},
    ),
    put("/qos/policies/{q}/dscp_marking_rules/{ds}", {"dscp_marking_rule": {"dscp_mark": 12}}),
    post(
        "/qos/policies/{q}/minimum_bandwidth_rules",
        {"minimum_bandwidth_rule": {"min_kbps": 10, "direction": "egress"}},
        save={"mb": "minimum_bandwidth_rule.id"},
    ),
    get("/qos/policies/{q}/minimum_bandwidth_rules/{mb}"),
    get(f"/qos/policies/{{q}}/minimum_bandwidth_rules/{NO_ID}"),
    get("/qos/policies/{q}"),
    put("/ports/{p1}", {"port": {"qos_policy_id": "{q}"}}),
    delete("/qos/policies/{q}"),
    put("/ports/{p1}", {"port": {"qos_policy_id": None}}, compare=False),
    delete("/qos/policies/{q}/bandwidth_limit_rules/{bw}"),
    delete("/qos/policies/{q}"),
    delete("/qos/policies/{q}"),
)
TRUNKS: Final = (
    post("/trunks", {"trunk": {"port_id": "{p1}", "name": "h5-t"}}, save={"t": "trunk.id"}),
    post("/trunks", {"trunk": {"port_id": "{p1}", "name": "h5-t"}}),
    post("/trunks", {"trunk": {"port_id": NO_ID}}),
    put(
        "/trunks/{t}/add_subports",
        {"sub_ports": [{"port_id": "{p2}", "segmentation_type": "vlan", "segmentation_id": 7}]},
    ),
    put(
        "/trunks/{t}/add_subports",
        {"sub_ports": [{"port_id": "{p2}", "segmentation_type": "vlan", "segmentation_id": 7}]},
    ),
    get("/trunks/{t}"),
    get(f"/trunks/{NO_ID}"),
    get("/trunks?port_id={p1}"),
    get("/trunks/{t}/get_subports"),
    get("/ports/{p1}"),
    put("/trunks/{t}", {"trunk": {"name": "h5-t2", "admin_state_up": False}}),
    delete("/ports/{p1}"),
    delete("/ports/{p2}"),
    put("/trunks/{t}/remove_subports", {"sub_ports": [{"port_id": "{p2}"}]}),
    put("/trunks/{t}", {"trunk": {"admin_state_up": True}}),
    put("/trunks/{t}/remove_subports", {"sub_ports": [{"port_id": "{p2}"}]}),
    put("/trunks/{t}/remove_subports", {"sub_ports": [{"port_id": "{p2}"}]}),
    delete("/trunks/{t}"),
    delete("/trunks/{t}"),
)
SHARING: Final = (
    post(
        "/rbac-policies",
        {
            "rbac_policy": {
                "object_type": "network",
                "object_id": "{net}",
                "action": "access_as_shared",
                "target_tenant": "*",
            }
        },
        save={"rb": "rbac_policy.id"},
    ),
    post(
        "/rbac-policies",
        {
            "rbac_policy": {
                "object_type": "network",
                "object_id": "{net}",
                "action": "access_as_shared",
                "target_tenant": "*",
            }
        },
    ),
    post(
        "/rbac-policies",
        {
            "rbac_policy": {
                "object_type": "network",
                "object_id": NO_ID,
                "action": "access_as_shared",
                "target_tenant": "{project}",
            }
        },
    ),
    post(
        "/rbac-policies",
        {
            "rbac_policy": {
                "object_type": "bogus",
                "object_id": NO_ID,
                "action": "access_as_shared",
                "target_tenant": "{project}",
            }
        },
    ),
    get("/rbac-policies/{rb}"),
    get("/rbac-policies?object_id={net}"),
    get("/networks/{net}"),
    put("/rbac-policies/{rb}", {"rbac_policy": {"target_tenant": "{project}"}}),
    delete("/rbac-policies/{rb}"),
    delete("/rbac-policies/{rb}"),
)
POOLS: Final = (
    post(
        "/address-scopes",
        {"address_scope": {"name": "h5-as", "ip_version": 4}},
        save={"as": "address_scope.id"},
    ),
    get("/address-scopes/{as}"),
    get(f"/address-scopes/{NO_ID}"),
    get("/address-scopes?name=h5-as"),
    put("/address-scopes/{as}", {"address_scope": {"name": "h5-as2", "shared": True}}),
    post(
        "/subnetpools",
        {
            "subnetpool": {
                "name": "h5-sp",
                "prefixes": ["10.60.0.0/16"],
                "default_prefixlen": 24,
                "address_scope_id": "{as}",
            }
        },
        save={"sp": "subnetpool.id"},
    ),
    post("/subnetpools", {"subnetpool": {"name": "h5-sp"}}),
    get("/subnetpools/{sp}"),
    get(f"/subnetpools/{NO_ID}"),
    get("/subnetpools?name=h5-sp"),
    put(
        "/subnetpools/{sp}", {"subnetpool": {"name": "h5-sp2", "prefixes": ["10.60.0.0/16", "10.61.0.0/16"]}}
    ),
    post("/networks", {"network": {"name": "h5-pn"}}, save={"pn": "network.id"}, compare=False),
    post(
        "/subnets",
        {"subnet": {"network_id": "{pn}", "ip_version": 4, "subnetpool_id": "{sp}"}},
        save={"ps": "subnet.id"},
    ),
    post(
        "/subnets",
        {"subnet": {"network_id": "{pn}", "ip_version": 4, "subnetpool_id": "{sp}", "prefixlen": 10}},
    ),
    post("/subnets", {"subnet": {"network_id": "{net}", "ip_version": 4, "subnetpool_id": "{sp}"}}),
    delete("/subnetpools/{sp}"),
    delete("/address-scopes/{as}"),
    delete("/subnets/{ps}"),
    delete("/networks/{pn}", compare=False),
    delete("/subnetpools/{sp}"),
    delete("/address-scopes/{as}"),
    delete("/address-scopes/{as}"),
)
SEGMENTS: Final = (
    get("/segments?network_id={net}", save={"first": "segments.0.id"}),
    post(
        "/segments",
        {
            "segment": {
                "network_id": "{net}",
                "network_type": "vlan",
                "physical_network": "physnet1",
                "segmentation_id": 351,
                "name": "h5-s",
            }
        },
        save={"sg": "segment.id"},
    ),
    get("/segments/{sg}"),
    get(f"/segments/{NO_ID}"),
    put("/segments/{sg}", {"segment": {"name": "h5-s2", "description": "d"}}),
    delete("/segments/{sg}"),
    delete("/segments/{sg}"),
    post(
        "/networks",
        {
            "network": {
                "name": "h5-v",
                "provider:network_type": "vlan",
                "provider:physical_network": "physnet1",
                "provider:segmentation_id": 352,
            }
        },
        save={"v": "network.id"},
    ),
    post(
        "/networks",
        {
            "network": {
                "name": "h5-v2",
                "provider:network_type": "vlan",
                "provider:physical_network": "physnet1",
                "provider:segmentation_id": 352,
            }
        },
    ),
    post("/networks", {"network": {"name": "h5-v2", "provider:network_type": "bogus"}}),
    post(
        "/networks",
        {
            "network": {
                "name": "h5-v2",
                "provider:network_type": "vlan",
                "provider:physical_network": "nophys",
                "provider:segmentation_id": 352,
            }
        },
    ),
    delete("/networks/{v}"),
)
METERING: Final = (
    post(
        "/metering/metering-labels",
        {"metering_label": {"name": "h5-m", "description": "d"}},
        save={"m": "metering_label.id"},
    ),
    get("/metering/metering-labels/{m}"),
    get(f"/metering/metering-labels/{NO_ID}"),
    post(
        "/metering/metering-label-rules",
        {
            "metering_label_rule": {
                "metering_label_id": "{m}",
                "direction": "ingress",
                "remote_ip_prefix": "10.0.0.0/8",
            }
        },
        save={"mr": "metering_label_rule.id"},
    ),
    post(
        "/metering/metering-label-rules",
        {
            "metering_label_rule": {
                "metering_label_id": NO_ID,
                "direction": "ingress",
                "remote_ip_prefix": "10.0.0.0/8",
            }
        },
    ),
    get("/metering/metering-label-rules/{mr}"),
    get(f"/metering/metering-label-rules/{NO_ID}"),
    delete("/metering/metering-label-rules/{mr}"),
    delete("/metering/metering-label-rules/{mr}"),
    delete("/metering/metering-labels/{m}"),
    delete("/metering/metering-labels/{m}"),
)
FORWARDING: Final = (
    get("/networks?name=public", save={"public": "networks.0.id"}, compare=False),
    post(
        "/routers",
        {"router": {"name": "h5-xr", "external_gateway_info": {"network_id": "{public}"}}},
        save={"r": "router.id"},
        compare=False,
    ),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}"}}, save={"f": "floatingip.id"}),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}", "port_id": "{p1}"}}),
    put("/routers/{r}/add_router_interface", {"subnet_id": "{sub}"}),
    post(
        "/floatingips/{f}/port_forwardings",
        {
            "port_forwarding": {
                "internal_port_id": "{p1}",
                "internal_ip_address": "{p1_ip}",
                "internal_port": 80,
                "external_port": 8080,
                "protocol": "tcp",
            }
        },
        save={"pf": "port_forwarding.id"},
    ),
    post(
        "/floatingips/{f}/port_forwardings",
        {
            "port_forwarding": {
                "internal_port_id": "{p1}",
                "internal_ip_address": "{p1_ip}",
                "internal_port": 80,
                "external_port": 8080,
                "protocol": "tcp",
            }
        },
    ),
    get("/floatingips/{f}/port_forwardings/{pf}"),
    get(f"/floatingips/{{f}}/port_forwardings/{NO_ID}"),
    put("/floatingips/{f}/port_forwardings/{pf}", {"port_forwarding": {"external_port": 8081}}),
    get("/floatingips/{f}"),
    put("/floatingips/{f}", {"floatingip": {"port_id": "{p1}"}}),
    delete("/floatingips/{f}/port_forwardings/{pf}"),
    delete("/floatingips/{f}/port_forwardings/{pf}"),
    delete("/floatingips/{f}"),
    put("/routers/{r}/remove_router_interface", {"subnet_id": "{sub}"}),
    put("/routers/{r}/remove_router_interface", {"subnet_id": "{sub}"}),
    delete("/routers/{r}", compare=False),
)
QUOTAS: Final = (
    get("/quotas/{project}"),
    get("/quotas/{project}/default"),
    put("/quotas/h5none", {"quota": {"network": 5}}),
    put("/quotas/h5none", {"quota": {"bogus": 5}}),
    get("/quotas/h5none"),
    get("/quotas/h5none", by="demo"),
    put("/quotas/{project}", {"quota": {"network": 1}}, by="demo"),
    post("/networks", {"network": {"name": "h5-q0", "project_id": "h5none"}}, save={"q0": "network.id"}),
    put(
        "/quotas/h5none",
        {"quota": {"network": 1, "port": 0, "router": 0, "floatingip": 0, "security_group": 1, "subnet": 0}},
    ),
    post("/networks", {"network": {"name": "h5-q1", "project_id": "h5none"}}),
    post(
        "/subnets",
        {"subnet": {"network_id": "{q0}", "cidr": "10.1.0.0/24", "ip_version": 4, "project_id": "h5none"}},
    ),
    post("/ports", {"port": {"network_id": "{q0}", "project_id": "h5none"}}),
    post("/routers", {"router": {"name": "h5-q1", "project_id": "h5none"}}),
    post("/security-groups", {"security_group": {"name": "h5-q1", "project_id": "h5none"}}),
    post("/floatingips", {"floatingip": {"floating_network_id": "{public}", "project_id": "h5none"}}),
    delete("/networks/{q0}"),
    get("/security-groups?project_id=h5none", save={"qsg": "security_groups.0.id"}, compare=False),
    delete("/security-groups/{qsg}"),
    delete("/quotas/h5none"),
    delete("/quotas/h5none"),
    get("/extensions/router", compare=False),
    get("/agents"),
    get("/bogus"),
    get("/networks", by="none"),
)
CLEANUP: Final = (
    delete("/ports/{p1}", compare=False),
    delete("/ports/{p2}", compare=False),
    delete("/subnets/{sub}", compare=False),
    delete("/networks/{net}", compare=False),
)
CALLS: Final = (*SETUP, *QOS, *TRUNKS, *SHARING, *POOLS, *SEGMENTS, *METERING, *FORWARDING, *QUOTAS, *CLEANUP)
