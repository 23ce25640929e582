"""Live attributes: read when a template uses them, or on demand; a change of theirs wakes nobody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.operations.outputs.live_attributes import LiveReader, read_for_resource
from orchestrator.operations.outputs.outputs import Output, resolve_outputs
from orchestrator.security.caller import Caller
from orchestrator.store.stacks.resources import get_resource
from tests.scenarios.attributes.cameras import Camera, camera_types
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

USER = "Cloud::Server"


@pytest.fixture
def filming(postgres_url: str, cloud: Cloud) -> Iterator[tuple[World, Camera]]:
    camera, types = camera_types(cloud)
    world = World(postgres_url, types=types, action_retry_limit=0)
    yield world, camera
    world.close()


def eye(**properties: Any) -> dict[str, Any]:
    return cloud_thing(type="Cloud::Camera", **properties)


def viewer(attribute: str, source: str = "eye") -> dict[str, Any]:
    return cloud_thing(type=USER, value={"get_attr": [source, attribute]})


def test_a_live_attribute_that_the_template_uses_is_read_once_after_the_resource_is_ready(filming):
    world, camera = filming
    camera.pictures["eye"] = "day"
    uuid = world.create("s", {"eye": eye(looks=2), "viewer": viewer("picture")})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert camera.read == [("eye", frozenset({"picture"}))]
    assert camera.cloud.values[world.resource("viewer").physical_id] == "day"
    assert camera.used == {frozenset({"picture"})}
    assert world.resource("eye").attributes == {"value": "", "picture": "day"}


def test_a_live_attribute_that_nobody_uses_is_not_read(filming):
    world, camera = filming
    world.create("s", {"eye": eye(), "viewer": viewer("value")})
    world.deliver_all()
    assert camera.read == []
    assert world.resource("eye").attributes == {"value": ""}
    assert camera.used == {frozenset()}


def test_a_changed_live_attribute_wakes_no_dependent(filming):
    world, camera = filming
    world.create("s", {"eye": eye(), "viewer": viewer("picture")})
    world.deliver_all()
    camera.pictures["eye"] = "night"
    before = world.resource("eye").value_digest
    world.update("s", {"eye": eye(value="turned"), "viewer": viewer("picture")})
    world.deliver_all()
    assert world.resource("eye").value_digest != before  # by `value`, which is not live
    camera.pictures["eye"] = "day"
    settled = world.resource("eye").value_digest
    camera.cloud.calls.clear()
    world.update("s", {"eye": eye(value="turned", looks=1), "viewer": viewer("picture")})
    world.deliver_all()
    assert world.resource("eye").value_digest == settled
    assert [call for call in camera.cloud.calls if call.endswith("viewer")] == []


def test_a_newly_used_live_attribute_is_read_by_the_update(filming):
    world, camera = filming
    world.create("s", {"eye": eye(), "viewer": cloud_thing(type=USER, value="x")})
    world.deliver_all()
    camera.pictures["eye"] = "day"
    world.update("s", {"eye": eye(), "viewer": viewer("picture")})
    world.deliver_all()
    assert camera.cloud.values[world.resource("viewer").physical_id] == "day"
    assert camera.read == [("eye", frozenset({"picture"}))]
    world.update("s", {"eye": eye(), "viewer": cloud_thing(type=USER, value="x")})
    world.deliver_all()
    assert world.resource("eye").attributes == {"value": ""}


def test_the_read_waits_for_an_outage_and_a_refusal_gives_null(filming):
    world, camera = filming
    camera.cloud.outage.add("read_attributes")
    uuid = world.create("s", {"eye": eye(), "viewer": viewer("picture")})
    world.retry(2)
    assert world.status("eye") == "CREATE_IN_PROGRESS"
    assert "no answer" in world.resource("eye").status_reason
    camera.cloud.outage.clear()
    camera.refuses = True
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.resource("eye").attributes == {"value": "", "picture": None}


def test_a_secret_live_attribute_that_is_used_is_encrypted(filming):
    world, _ = filming
    world.create("s", {"eye": eye(), "viewer": viewer("pin")})
    world.deliver_all()
    row = world.resource("eye")
    assert row.attributes is None
    assert world.cipher.open(row.sealed)["attributes"]["pin"] == "1234"


def outputs_of(world: World, *, seconds: float = 10.0) -> dict[str, Output]:
    reader = LiveReader(world.context, world.stack_row("s"), seconds)
    found = resolve_outputs(world.database, world.cipher, world.stack_row("s"), None, reader)
    return {output.key: output for output in found}


OUTPUTS = {
    "picture": {"value": {"get_attr": ["eye", "picture"]}},
    "shown": {"value": {"get_attr": ["eye", "show", "picture"]}},
    "value": {"value": {"get_attr": ["eye", "value"]}},
    "pin": {"value": {"get_attr": ["eye", "pin"]}},
}


def test_outputs_read_live_attributes_at_each_request(filming):
    world, camera = filming
    world.create("s", {"eye": eye(value="v")}, outputs=OUTPUTS)
    world.deliver_all()
    assert camera.read == []
    camera.pictures["eye"] = "day"
    first = outputs_of(world)
    assert {key: output.value for key, output in first.items()} == {
        "picture": "day",
        "shown": "day",
        "value": "v",
        "pin": "1234",
    }
    assert first["pin"].secret
    assert camera.read == [("eye", frozenset({"picture", "show", "pin"}))]  # one call
    camera.pictures["eye"] = "night"
    assert outputs_of(world)["picture"].value == "night"


@pytest.mark.parametrize("outage", [True, False])
def test_a_failed_read_gives_null_and_a_message(filming, outage):
    world, camera = filming
    world.create("s", {"eye": eye(value="v")}, outputs=OUTPUTS)
    world.deliver_all()
    camera.refuses = not outage
    camera.cloud.outage |= {"read_attributes"} if outage else set()
    found = outputs_of(world)
    message = "no answer" if outage else "no pictures today"
    assert found["picture"].value is None
    assert message in (found["picture"].error or "")
    assert (found["value"].value, found["value"].error) == ("v", None)


def test_a_slow_provider_does_not_delay_the_answer_beyond_the_deadline(filming, release_at_end):
    world, camera = filming
    world.create("s", {"eye": eye(value="v")}, outputs=OUTPUTS)
    world.deliver_all()
    camera.cloud.on["read_attributes"] = lambda _: release_at_end.wait()
    found = outputs_of(world, seconds=0.1)
    assert found["picture"].error == "The attributes of eye cannot be read: there was no answer in time"


def test_attributes_of_a_resource_are_read_when_it_is_shown(filming):
    world, camera = filming
    world.create("s", {"eye": eye(value="v")})
    world.deliver_all()
    camera.pictures["eye"] = "day"
    row = get_resource(world.database, world.stack_row("s"), "eye")
    read = read_for_resource(world.context, world.stack_row("s"), row, ["picture"])
    assert read.values == {"show": {"id": row.physical_id, "picture": "day"}, "picture": "day"}
    camera.refuses = True
    failed = read_for_resource(world.context, world.stack_row("s"), row, [])
    assert (failed.values, failed.error) == (
        {"show": None},
        "The attributes of eye cannot be read: ProviderError: no pictures today",
    )


CHILD = """
heat_template_version: 2021-04-16
resources:
  eye: {type: Cloud::Camera}
outputs:
  picture: {value: {get_attr: [eye, picture]}}
"""


def test_outputs_of_a_nested_stack_hand_live_attributes_up(filming):
    world, camera = filming
    camera.pictures["eye"] = "day"
    files = {"child.yaml": CHILD}
    world.create("s", {"child": {"type": "child.yaml"}, "viewer": viewer("picture", "child")}, files=files)
    world.deliver_all()
    assert camera.cloud.values[world.resource("viewer").physical_id] == "day"


@pytest.mark.parametrize(("role", "shown"), [("member", "open"), ("reader", None)])
def test_an_attribute_that_gives_access_is_for_callers_who_may_update(filming, role, shown):
    world, camera = filming
    outputs = {
        **{name: {"value": {"get_attr": ["eye", name]}} for name in ("door", "picture")},
        "all": {"value": {"get_attr": ["eye"]}},
    }
    world.create("s", {"eye": eye()}, outputs=outputs)
    world.deliver_all()
    world.context = replace(world.context, caller=Caller("p1", "x", (role,)))
    found = outputs_of(world)
    assert found["door"].value == shown
    assert (found["door"].error is None) == (shown is not None)
    assert (found["picture"].value, found["picture"].error) == ("dark", None)
    assert found["all"].error is None
    stack = world.stack_row("s")
    row = get_resource(world.database, stack, "eye")
    assert row is not None
    asked = read_for_resource(world.context, stack, row, ["door", "picture"])
    assert (asked.values["door"], asked.values["picture"]) == (shown, "dark")
    assert ("needs the permission stacks:update" in asked.error) == (shown is None)
    assert not read_for_resource(world.context, stack, row, []).error
    read = frozenset[str]().union(*(names for _, names in camera.read))
    assert ("door" in read) == (shown is not None)
