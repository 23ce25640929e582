"""The visit that settles the last node of a child stack also completes it: no message is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engine.messages import CheckMessage
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.trees import CHILD, child, deliver, nested, text
from tests.scenarios.world import World

PLAIN = {"a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "value"}}}}
CALLING = {"a": cloud_thing(type="Cloud::Machine", value={"get_param": "value"})}


def sent(world: World) -> list[str]:
    """Deliver all messages, and those that follow; return the labels of all messages."""
    labels = []
    while world.messages:
        labels += [message.label for message in world.messages[:1] if isinstance(message, CheckMessage)]
        world.deliver(1)
    return labels


@pytest.mark.parametrize("resources", [PLAIN, CALLING], ids=["calls nobody", "calls a provider"])
def test_no_message_goes_for_the_end_of_a_child(world: World, resources: dict[str, Any]):
    uuid = world.create("s", {"child": nested(value="1")}, files={CHILD: text(resources)})
    assert sent(world).count("finish") == 1  # the root's
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.update("s", {"child": nested(value="2")}, files={CHILD: text(resources)})
    assert sent(world).count("finish") == 1
    assert (world.state(uuid), child(world).state) == ("UPDATE_COMPLETE", "UPDATE_COMPLETE")
    for action in ("suspend", "resume"):
        world.act("s", action)
        assert sent(world).count("finish") == 1
        assert child(world).state == world.state(uuid) == f"{action.upper()}_COMPLETE"
    world.delete("s")
    assert sent(world).count("finish") == 1
    assert (world.state(uuid), child(world).state) == ("DELETE_COMPLETE", "DELETE_COMPLETE")


@pytest.mark.parametrize("step", ["create", "update", "delete"])
def test_a_death_before_the_end_of_a_child_is_written_is_recovered(world: World, step: str):
    def dies() -> None:
        raise Crash

    uuid = ""
    for doing in ("create", "update", "delete"):
        if doing == step:
            world.before("complete_child", dies)
        if doing == "create":
            uuid = world.create("s", {"child": nested(value="1")}, files={CHILD: text(PLAIN)})
        elif doing == "update":
            world.update("s", {"child": nested(value="2")}, files={CHILD: text(PLAIN)})
        else:
            world.delete("s")
        if doing == step:
            with pytest.raises(Crash):
                deliver(world)
            assert child(world).state == f"{step.upper()}_IN_PROGRESS"
        world.deliver_all()
        assert world.state(uuid) == child(world).state == f"{doing.upper()}_COMPLETE"
        ends = world.rows(
            "SELECT 1 FROM event WHERE stack_id = :s AND action = :a AND status = 'COMPLETE'"
            " AND resource_type = 'OS::Heat::Stack'",
            s=child(world).id,
            a=doing.upper(),
        )
        assert len(ends) == 1


def test_an_update_at_the_moment_a_child_ends_takes_over(world: World):
    uuid = world.create("s", {"child": nested(value="1")}, files={CHILD: text(PLAIN)})
    world.before("complete_child", lambda: world.patch(child(world).uuid, parameters={"value": "2"}))
    deliver(world)
    world.deliver_all()
    assert (world.state(uuid), child(world).state) == ("CREATE_COMPLETE", "UPDATE_COMPLETE")
    assert world.rows("SELECT properties->>'value' AS value FROM resource WHERE name = 'a'")[0].value == "1"


def test_a_child_that_is_stopped_at_the_moment_it_ends_is_not_complete(world: World):
    uuid = world.create("s", {"child": nested()}, files={CHILD: text(PLAIN)})
    world.before("complete_child", lambda: world.act("s", "cancel_without_rollback"))
    deliver(world)
    world.deliver_all()
    assert (world.state(uuid), child(world).state) == ("CREATE_FAILED", "CREATE_FAILED")


def test_replaced_resources_of_a_child_are_deleted_before_it_ends(world: World, cloud: Cloud):
    files = {CHILD: text({"a": cloud_thing(value={"get_param": "value"})})}
    uuid = world.create("s", {"child": nested(value="1")}, files=files)
    deliver(world)
    at_end: list[int] = []
    cloud.on["delete"] = lambda _: at_end.append(child(world).status == "IN_PROGRESS")
    world.update("s", {"child": nested(value="2")}, files=files)
    deliver(world)
    assert world.state(uuid) == child(world).state == "UPDATE_COMPLETE"
    assert (len(cloud.things), at_end) == (1, [True])
