"""Signals through temporary URLs of Swift, from agents without credentials."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import of, ref

Resources = dict[str, Any]


def waiting(count: int = 1, timeout: int = 600) -> Resources:
    """Return a handle, and a resource that waits for its signals."""
    signal = of("OS::Heat::SwiftSignal", handle=ref("handle"), timeout=timeout, count=count)
    return {"handle": of("OS::Heat::SwiftSignalHandle"), "signal": signal}


def url(world: CloudWorld) -> str:
    """Return the URL of the handle."""
    stored = world.outputs("s")["url"]
    assert isinstance(stored, str)
    return stored


OUTPUTS = {
    "url": {"value": {"get_resource": "handle"}},
    "endpoint": {"value": {"get_attr": ["handle", "endpoint"]}},
    "curl": {"value": {"get_attr": ["handle", "curl_cli"]}},
    "token": {"value": {"get_attr": ["handle", "token"]}},
    "data": {"value": {"get_attr": ["signal", "data"]}},
}


def begun(world: CloudWorld, **given: int) -> str:
    """Create a stack that waits for signals; return its uuid."""
    uuid = world.create("s", waiting(**given), outputs=OUTPUTS)
    world.retry(2)
    assert world.state(uuid) == "CREATE_IN_PROGRESS", world.causes()
    return uuid


def deleted(world: CloudWorld, uuid: str) -> None:
    world.delete("s")
    world.settle_by_time(uuid, "DELETE_COMPLETE")
    assert not [kind for kind, _ in world.objects() if kind in ("swift.object", "swift.container")]


def put(address: str, body: str) -> None:
    """Signal as an agent does."""
    assert httpx.put(address, content=body).status_code == 201


def test_a_signal_is_received_through_the_url(world: CloudWorld) -> None:
    uuid = begun(world, count=3)
    address = url(world)
    outputs = world.outputs("s")
    assert outputs["endpoint"] == address
    assert (outputs["curl"], outputs["token"]) == (f"curl -i -X PUT '{address}'", "")
    put(address, "")
    put(address, '{"id": "a", "data": "first"}')
    put(address, '{"id": "a", "data": "second"}')
    world.retry(1)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    put(address, '{"data": {"x": 1}}')
    world.retry(2)
    world.settle(uuid, "CREATE_COMPLETE")
    assert world.outputs("s")["data"] == '{"1": null, "a": "second", "4": {"x": 1}}'
    deleted(world, uuid)
    assert httpx.put(address, content="").status_code == 404


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"status": "FAILURE", "reason": "no disk"}', "SwiftSignalFailure: resources.signal: no disk"),
        ('{"status": "MAYBE"}', "Error: resources.signal: Unknown status: MAYBE"),
        ("nonsense", "Error: resources.signal: Failed to parse JSON data: nonsense"),
    ],
)
def test_a_signal_of_a_failure_fails_the_resource(world: CloudWorld, body: str, reason: str) -> None:
    uuid = begun(world)
    put(url(world), body)
    world.retry(2)
    world.settle(uuid, "CREATE_FAILED")
    assert ("signal", reason) in world.causes()
    deleted(world, uuid)


def test_the_wait_ends_after_its_timeout(world: CloudWorld) -> None:
    uuid = begun(world, count=2, timeout=60)
    put(url(world), "{}")
    world.elapse(61, "operation")
    world.retry(2)
    world.settle(uuid, "CREATE_FAILED")
    assert (
        "signal",
        "SwiftSignalTimeout: resources.signal: 1 of 2 received - Signal 1 received",
    ) in world.causes()
    deleted(world, uuid)


@pytest.mark.parametrize(
    ("handle", "part"),
    [("http://127.0.0.1/v1/AUTH_other/c/o", "Swift TempURL path"), ("nonsense", "Swift TempURL path")],
)
def test_a_handle_is_a_temporary_url_of_the_project(world: CloudWorld, handle: str, part: str) -> None:
    uuid = world.create("s", {"signal": of("OS::Heat::SwiftSignal", handle=handle, timeout=60)})
    world.settle(uuid, "CREATE_FAILED")
    ((_, reason),) = world.causes()
    assert reason.endswith(f"is not a valid SwiftSignalHandle.  The {part} is invalid")
