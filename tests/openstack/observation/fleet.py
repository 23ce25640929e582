"""Templates of the observed stacks."""

from __future__ import annotations

from typing import Any, Final

ROLE: Final = {"role": "web"}
MEMBER_FILE: Final = "member.yaml"

NETWORK: Final = {
    "net": {"type": "OS::Neutron::Net"},
    "subnet": {
        "type": "OS::Neutron::Subnet",
        "properties": {"network": {"get_resource": "net"}, "cidr": "10.64.0.0/16"},
    },
    "group": {"type": "OS::Neutron::SecurityGroup", "properties": {"rules": []}},
}


def fleet(servers: int, volumes: int = 0, *, names: str = "") -> dict[str, Any]:
    """Return a template of servers with a port each, and of volumes; each second volume is attached to the
    last servers. With `names` the template sets the names of all servers.
    """
    resources: dict[str, Any] = dict(NETWORK)
    for number in range(servers):
        resources[f"port{number}"] = _port("net", "subnet", "group")
        resources[f"server{number}"] = _server(f"port{number}")
        if names:
            resources[f"server{number}"]["properties"]["name"] = f"{names}-{number}"
    for number in range(volumes):
        resources[f"volume{number}"] = {
            "type": "OS::Cinder::Volume",
            "properties": {"size": 1, "metadata": ROLE},
        }
        if number % 2:
            resources[f"attachment{number}"] = {
                "type": "OS::Cinder::VolumeAttachment",
                "properties": {
                    "instance_uuid": {"get_resource": f"server{servers - 1 - number // 2}"},
                    "volume_id": {"get_resource": f"volume{number}"},
                },
            }
    return _template(resources)


def scaled(members: int) -> dict[str, Any]:
    """Return a template of a group whose members are servers with a port each."""
    member = {"type": MEMBER_FILE, "properties": {name: {"get_resource": name} for name in NETWORK}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": members, "resource_def": member}}
    return _template({**NETWORK, "members": group})


def member() -> dict[str, Any]:
    """Return the template of a member."""
    template = _template({"port": _port("net", "subnet", "group", of="get_param"), "server": _server("port")})
    return {**template, "parameters": {name: {"type": "string"} for name in NETWORK}}


def _template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def _port(net: str, subnet: str, group: str, of: str = "get_resource") -> dict[str, Any]:
    return {
        "type": "OS::Neutron::Port",
        "properties": {
            "network": {of: net},
            "fixed_ips": [{"subnet": {of: subnet}}],
            "security_groups": [{of: group}],
        },
    }


def _server(port: str) -> dict[str, Any]:
    return {
        "type": "OS::Nova::Server",
        "properties": {
            "flavor": "m1.nano",
            "image": "cirros",
            "networks": [{"port": {"get_resource": port}}],
            "metadata": dict(ROLE),
        },
    }
