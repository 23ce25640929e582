"""Stacks of ports and servers, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from tests.openstack.acceptance.installation import Failed, Installation

IMAGE, FLAVOR, NETWORK = "cirros", "m1.tiny", "private"
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


def _server(networks: list[dict[str, Any]], flavor: str = FLAVOR, image: str = IMAGE) -> dict[str, Any]:
    return {
        "type": "OS::Nova::Server",
        "properties": {"image": image, "flavor": flavor, "networks": networks},
    }


def _template(resources: dict[str, Any]) -> dict[str, Any]:
    return {"heat_template_version": "2021-04-16", "resources": resources}


def create(on: Installation, name: str, template: dict[str, Any]) -> float:
    """Create a stack; return the seconds until it is complete.

    Raises:
        Failed: it fails.
    """
    began = time.monotonic()
    on.request("POST", "/stacks", json={"stack_name": name, "template": template, "timeout_mins": 60})
    expect(on, name, "CREATE_COMPLETE")
    return time.monotonic() - began


def delete(on: Installation, name: str) -> float:
    """Delete a stack; return the seconds until it is gone."""
    began = time.monotonic()
    on.request("DELETE", f"/stacks/{name}")
    expect(on, name, "")
    return time.monotonic() - began


def expect(on: Installation, name: str, expected: str) -> None:
    """Wait for the end of an action.

    Raises:
        Failed: it has a different end.
    """
    status = on.wait(name, LIMIT_SECONDS, poll_seconds=POLL_SECONDS)
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
