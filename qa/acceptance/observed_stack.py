"""A stack of servers with ports, volumes and routers, whose objects are observed."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

ROLE: Final = {"role": "web"}
EXTERNAL: Final = "public"
# Resources of a number that belong together; at most a single resource of a family is damaged.
FAMILY: Final = {"port": "server", "attachment": "server", "disk": "server"}


def template(servers: int, volumes: int) -> dict[str, Any]:
    """Return the template; a half of the volumes is attached, each to a server."""
    rule = {"protocol": "tcp", "port_range_min": 80, "port_range_max": 80}
    resources: dict[str, Any] = {
        "net": _of("Neutron::Net"),
        "subnet": _of("Neutron::Subnet", network=_id("net"), cidr="10.78.0.0/22"),
        "group": _of("Neutron::SecurityGroup", rules=[rule]),
        "router": _of("Neutron::Router", external_gateway_info={"network": EXTERNAL}),
        "interface": _of("Neutron::RouterInterface", router=_id("router"), subnet=_id("subnet")),
        "spare_net": _of("Neutron::Net"),
        "spare_subnet": _of("Neutron::Subnet", network=_id("spare_net"), cidr="10.79.0.0/24"),
        "spare_router": _of("Neutron::Router", external_gateway_info={"network": EXTERNAL}),
        "spare_interface": _of(
            "Neutron::RouterInterface", router=_id("spare_router"), subnet=_id("spare_subnet")
        ),
        "address": _of("Neutron::FloatingIP", floating_network=EXTERNAL),
        "association": _of(
            "Neutron::FloatingIPAssociation", floatingip_id=_id("address"), port_id=_id("guest_port")
        ),
        "guest_port": _port(),
    }
    for number in range(servers):
        resources[f"port{number}"] = _port()
        resources[f"server{number}"] = _of(
            "Nova::Server",
            image="cirros",
            flavor="m1.tiny",
            metadata=ROLE,
            networks=[{"port": _id(f"port{number}")}],
        )
    attached = _attached(volumes)
    for number in range(volumes - attached):
        resources[f"volume{number}"] = _of("Cinder::Volume", size=1, metadata=ROLE)
    for number in range(attached):
        resources[f"disk{number}"] = _of("Cinder::Volume", size=1)
        resources[f"attachment{number}"] = _of(
            "Cinder::VolumeAttachment", instance_uuid=_id(f"server{number}"), volume_id=_id(f"disk{number}")
        )
    return {"heat_template_version": "2021-04-16", "resources": resources}


def counts(servers: int, volumes: int) -> Counter[str]:
    """Return the number of objects by collection; routers and floating IPs have ports as well."""
    return Counter(
        servers=servers,
        ports=servers + 1 + 2 + 2 + 1,
        volumes=volumes,
        networks=2,
        subnets=2,
        routers=2,
        floatingips=1,
        security_groups=1,
    )


def _attached(volumes: int) -> int:
    return volumes // 2


def _port() -> dict[str, Any]:
    return _of(
        "Neutron::Port",
        network=_id("net"),
        fixed_ips=[{"subnet": _id("subnet")}],
        security_groups=[_id("group")],
    )


def _id(name: str) -> dict[str, str]:
    return {"get_resource": name}


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"OS::{kind}", "properties": properties}
