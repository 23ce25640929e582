"""A stack of ten resources of Nova, Neutron and Cinder, in two versions, and its objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from qa.acceptance.inventory import Item

# Objects of the complete stack. Rules: two by Neutron (egress), and ours.
OBJECTS: Final = Counter(
    {
        "networks": 1,
        "subnets": 1,
        "security_groups": 1,
        "security_group_rules": 3,
        "ports": 2,
        "servers": 2,
        "volumes": 1,
        "keypairs": 1,
        "server_groups": 1,
    }
)
UNCOUNTED: Final = frozenset({"segments"})  # Neutron's, one for each network


def template(*, changed: bool = False, suffix: str = "") -> dict[str, Any]:
    """Return the template; `changed`: with other values of properties that are updated in place."""
    value, port = ("after", 8443) if changed else ("before", 443)
    rule = {"protocol": "tcp", "port_range_min": port, "port_range_max": port}
    resources: dict[str, Any] = {
        "net": _of("Neutron::Net", value_specs={"description": value}),
        "subnet": _of(
            "Neutron::Subnet",
            network={"get_resource": "net"},
            cidr="10.77.0.0/24",
            dns_nameservers=["192.0.2.1" if changed else "192.0.2.2"],
        ),
        "group": _of("Neutron::SecurityGroup", rules=[rule]),
        "affinity": _of("Nova::ServerGroup", policies=["soft-anti-affinity"]),
        "key": _of("Nova::KeyPair", name=f"ten-{suffix}"),
        "volume": _of("Cinder::Volume", size=1, description=value, metadata={"version": value}),
        "attachment": _of(
            "Cinder::VolumeAttachment",
            instance_uuid={"get_resource": "web1"},
            volume_id={"get_resource": "volume"},
        ),
    }
    for number in (1, 2):
        port_name = f"port{number}"
        if number == 1:
            resources[port_name] = _of(
                "Neutron::Port",
                network={"get_resource": "net"},
                fixed_ips=[{"subnet": {"get_resource": "subnet"}}],
                security_groups=[{"get_resource": "group"}],
            )
        networks: Any = (
            [{"port": {"get_resource": port_name}}] if number == 1 else [{"network": {"get_resource": "net"}}]
        )
        resources[f"web{number}"] = _of(
            "Nova::Server",
            image="cirros",
            flavor="m1.tiny",
            key_name={"get_resource": "key"},
            networks=networks,
            scheduler_hints={"group": {"get_resource": "affinity"}},
            metadata={"version": value},
        )
    return {"heat_template_version": "2021-04-16", "resources": resources}


def wrong_counts(items: Iterable[Item], *, stacks: int = 1) -> str:
    """Return how the objects differ from complete stacks', "" if they do not."""
    found = Counter(item.collection for item in items)
    counted = (found | OBJECTS).keys() - UNCOUNTED
    expected = {key: stacks * OBJECTS[key] for key in counted}
    wrong = {key: (found[key], expected[key]) for key in sorted(counted) if found[key] != expected[key]}
    return ", ".join(f"{count} {key}, not {right}" for key, (count, right) in wrong.items())


def _of(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"OS::{kind}", "properties": properties}
