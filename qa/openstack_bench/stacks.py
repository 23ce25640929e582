"""Stacks of ports and servers, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from qa.acceptance.installation import Failed, Installation

IMAGE, FLAVOR, NETWORK, EXTERNAL = "cirros", "m1.tiny", "private", "public"
LIMIT_SECONDS: Final = 3_600.0
POLL_SECONDS: Final = 0.1


def servers_with_ports(count: int) -> dict[str, Any]:
    """Return a template of ports with a server each."""
    resources: dict[str, Any] = {}
    for number in range(count):
        resources[f"port{number}"] = {"type": "OS::Neutron::Port", "properties": {"network": NETWORK}}
        resources[f"server{number}"] = _server([{"port": {"get_resource": f"port{number}"}}])
    return _template(resources)


def servers(count: int, flavors: int = 1, images: int = 1, networks: int = 1) -> dict[str, Any]:
    """Return a template of servers; the names of flavors, images and networks alternate."""
    flavor = ("m1.tiny", "m1.nano", "m1.small")
    image = ("cirros", "fedora")
    network = ("private", *(f"bench-net-{number}" for number in range(1, networks)))
    return _template(
        {
            f"server{number}": _server(
                [{"network": network[number % networks]}], flavor[number % flavors], image[number % images]
            )
            for number in range(count)
        }
    )


def three_tiers() -> dict[str, Any]:
    """Return a template of three tiers with 50 resources. In their user data, databases find their volume by
    its id, and servers the next tier by its addresses.
    """
    databases, applications, fronts = (
        [f"{tier}{number}" for number in range(count)]
        for tier, count in (("db", 4), ("app", 6), ("front", 6))
    )
    resources: dict[str, Any] = {
        "net": {"type": "OS::Neutron::Net"},
        "subnet": _resource("Neutron::Subnet", network=_id("net"), cidr="10.77.0.0/24"),
        "router": _resource("Neutron::Router", external_gateway_info={"network": EXTERNAL}),
        "interface": _resource("Neutron::RouterInterface", router=_id("router"), subnet=_id("subnet")),
        "ssh": _resource("Neutron::SecurityGroup", rules=[_rule(22)]),
        "web": _resource("Neutron::SecurityGroup", rules=[_rule(80)]),
    }
    for name in databases:
        volume = f"{name}_volume"
        resources |= _configured(name, [_id(volume)])
        resources[volume] = _resource("Cinder::Volume", size=1)
        resources[f"{name}_attachment"] = _resource(
            "Cinder::VolumeAttachment", instance_uuid=_id(name), volume_id=_id(volume)
        )
    for tier, below in ((applications, databases), (fronts, applications)):
        for name in tier:
            resources |= _configured(name, [{"get_attr": [other, "first_address"]} for other in below])
    for name in fronts[:2]:
        resources[f"{name}_ip"] = _resource("Neutron::FloatingIP", floating_network=EXTERNAL)
        resources[f"{name}_association"] = _resource(
            "Neutron::FloatingIPAssociation", floatingip_id=_id(f"{name}_ip"), port_id=_id(f"{name}_port")
        )
    return _template(resources)


def _configured(name: str, values: list[Any]) -> dict[str, Any]:
    """Return a server with a port, and values in its user data."""
    groups = [_id("ssh"), _id("web")]
    server = _server([{"port": _id(f"{name}_port")}])
    server["properties"] |= {"user_data_format": "RAW", "user_data": {"list_join": ["\n", values]}}
    return {
        f"{name}_port": _resource("Neutron::Port", network=_id("net"), security_groups=groups),
        name: server,
    }


def _rule(port: int) -> dict[str, Any]:
    return {"protocol": "tcp", "port_range_min": port, "port_range_max": port}


def _id(name: str) -> dict[str, str]:
    return {"get_resource": name}


def _resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": f"OS::{kind}", "properties": properties}


def without_cloud(count: int) -> dict[str, Any]:
    """Return a template as large as that of servers, which needs no look-ups."""
    body = {"type": "OS::Heat::TestResource", "properties": {"value": "-" * 100}}
    return _template({f"resource{number}": body for number in range(count)})


def _server(networks: list[dict[str, Any]], flavor: str = FLAVOR, image: str = IMAGE) -> dict[str, Any]:
    return {
        "type": "OS::Nova::Server",
        "properties": {"image": image, "flavor": flavor, "networks": networks},
    }


def _template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def create(
    on: Installation, name: str, template: dict[str, Any], poll_seconds: float = POLL_SECONDS
) -> float:
    """Create a stack, and ask for its status every `poll_seconds`; return the seconds until it is complete.

    Raises:
        Failed: it fails.
    """
    began = time.monotonic()
    on.request("POST", "/stacks", json={"stack_name": name, "template": template, "timeout_mins": 60})
    expect(on, name, "CREATE_COMPLETE", poll_seconds)
    return time.monotonic() - began


def delete(on: Installation, name: str, poll_seconds: float = POLL_SECONDS) -> float:
    """Delete a stack; return the seconds until it is gone."""
    began = time.monotonic()
    on.request("DELETE", f"/stacks/{name}")
    expect(on, name, "", poll_seconds)
    return time.monotonic() - began


def expect(on: Installation, name: str, expected: str, poll_seconds: float = POLL_SECONDS) -> None:
    """Wait for the end of an action.

    Raises:
        Failed: it has a different end.
    """
    status = on.wait(name, LIMIT_SECONDS, poll_seconds=poll_seconds)
    if status != expected:
        raise Failed(f"{name} is {status}: {on.causes(name)}")


def until_known(on: Installation, name: str) -> None:
    """Return when a stack exists."""
    until = time.monotonic() + LIMIT_SECONDS
    while on.stack(name) is None and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    began = time.monotonic()
    call()
    return time.monotonic() - began
