"""Groups that are scaled by signals: the group moves, and the stack around it stands still."""

from __future__ import annotations

from typing import Any

import pytest

from api.v1.resources import metadata_of, shown_metadata
from orchestrator.store.stacks.resources import get_resource
from orchestrator.template.group_template import Members
from tests.scenarios.groups.test_groups import group, members, update, write
from tests.scenarios.world import World, test_resource


def scaling(desired: int = 2, **options: Any) -> dict[str, Any]:
    policy = {"auto_scaling_group_id": {"get_resource": "g"}, "adjustment_type": "change_in_capacity"}
    supplied = {
        "min_size": 1,
        "max_size": 4,
        "desired_capacity": desired,
        "resource": test_resource("v"),
        **options,
    }
    if not desired:
        del supplied["desired_capacity"]
    return {
        "g": {"type": "OS::Heat::AutoScalingGroup", "properties": supplied},
        "up": {"type": "OS::Heat::ScalingPolicy", "properties": {**policy, "scaling_adjustment": 1}},
        "down": {"type": "OS::Heat::ScalingPolicy", "properties": {**policy, "scaling_adjustment": -1}},
    }


SIZE = {"size": {"value": {"get_attr": ["g", "current_size"]}}, "ids": {"value": {"get_attr": ["g", "refs"]}}}


def metadata(world: World) -> dict[str, Any]:
    [row] = world.rows("SELECT metadata AS m FROM resource WHERE name = 'g'")
    return row.m


def test_a_signal_makes_a_group_larger_without_touching_the_stack_around_it(world: World) -> None:
    uuid = world.create("s", scaling(), outputs=SIZE)
    world.deliver_all()
    [before] = world.rows("SELECT traversal FROM stack WHERE uuid = :u", u=uuid)
    first = list(members(world))
    world.signal("s", "up")
    world.deliver_all()
    assert len(members(world)) == 3
    assert set(first) < set(members(world))
    [after] = world.rows("SELECT traversal FROM stack WHERE uuid = :u", u=uuid)
    assert after == before
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s")["size"] == 3
    assert len(world.outputs("s")["ids"]) == 3
    reported = metadata(world)
    assert reported["scaling_in_progress"] is False
    assert list(reported["cooldown_end"].values()) == ["change_in_capacity : 1"]
    assert world.rows("SELECT 1 FROM signal") == []


def instances(user_data: str = "old", size: int = 4, **policy: Any) -> dict[str, Any]:
    return {
        "conf": {
            "type": "AWS::AutoScaling::LaunchConfiguration",
            "properties": {"ImageId": "i", "InstanceType": "f", "UserData": user_data},
        },
        "g": {
            "type": "AWS::AutoScaling::AutoScalingGroup",
            "properties": {
                "AvailabilityZones": [],
                "LaunchConfigurationName": {"get_resource": "conf"},
                "MinSize": size,
                "MaxSize": 9,
            },
            "update_policy": {"AutoScalingRollingUpdate": policy},
        },
    }


INSTANCE = """
heat_template_version: 2018-08-31
parameters:
  {ImageId: {type: string}, InstanceType: {type: string}, UserData: {type: string}, Tags: {type: json}}
resources: {it: {type: OS::Heat::TestResource, properties: {value: {get_param: UserData}}}}
outputs: {PublicIp: {value: {get_attr: [it, output]}}}
"""
MAPPED = {
    "files": {"instance.yaml": INSTANCE},
    "environment": {"resource_registry": {"AWS::EC2::Instance": "instance.yaml"}},
}


def test_instances_use_the_users_environment_and_are_all_current_after_a_rolling_update(
    world: World,
) -> None:
    addresses = {"all": {"value": {"get_attr": ["g", "InstanceList"]}}}
    uuid = world.create("s", instances(), outputs=addresses, **MAPPED)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s")["all"] == "old,old,old,old"
    states = """SELECT r.name, r.type, r.action, r.status FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE s.name LIKE 's-g-%' AND s.depth = 1 AND NOT r.deposed"""
    first = {row.name for row in world.rows(states)}
    policy = {"MinInstancesInService": 3, "MaxBatchSize": 2}
    world.update("s", instances("new", **policy), outputs=addresses, **MAPPED)
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.outputs("s")["all"] == "new,new,new,new"
    after = world.rows(states)
    assert len(first & {row.name for row in after}) == 3  # a member was added, and the oldest was deleted
    assert {row[1:] for row in after} == {("OS::Heat::ScaledResource", "UPDATE", "COMPLETE")}


def test_a_nested_stack_lists_the_members_of_a_sibling_group_in_its_metadata(world: World) -> None:
    sibling = {
        "type": "AWS::EC2::Instance",
        "properties": {"ImageId": "i", "InstanceType": "f", "UserData": "u", "Tags": []},
        "metadata": {"members": {"get_attr": ["g", "refs_map"]}, "fixed": [1]},
    }
    resources = {**scaling(), "beside": sibling, "plain": test_resource("p")}
    world.create("s", resources, **MAPPED)
    world.deliver_all()
    world.signal("s", "up")
    world.deliver_all()

    def told(name: str) -> Any:
        row, stack = get_resource(world.database, world.stack_row("s"), name), world.stack_row("s")
        assert row is not None
        return metadata_of(row, stack, world.context)

    assert told("beside")["fixed"] == [1]
    assert sorted(told("beside")["members"]) == sorted(members(world).keys() - {"it"})
    assert told("plain") == {}


def test_when_a_group_scaled_is_no_secret_where_its_members_are(world: World) -> None:
    resources = scaling(resource={"type": "OS::Heat::RandomString"})
    world.create("s", resources, outputs={"v": {"value": {"get_attr": ["g", "outputs_list", "value"]}}})
    world.deliver_all()
    world.signal("s", "up")
    world.deliver_all()
    row = get_resource(world.database, world.stack_row("s"), "g")
    assert row is not None
    assert row.sealed is not None
    shown = shown_metadata(row, world.types, world.cipher)
    assert shown["scaling_in_progress"] is False
    assert list(shown["cooldown_end"].values()) == ["change_in_capacity : 1"]


def test_a_signal_makes_a_group_smaller_by_its_oldest(world: World) -> None:
    world.create("s", scaling(3), outputs=SIZE)
    world.deliver_all()
    [row] = world.rows("SELECT convert_from(body, 'UTF8') AS x FROM content WHERE body LIKE '{\"orch%'")
    oldest = Members.parse(row.x).name(0)
    other_items = [name for name in members(world) if name != oldest]
    world.signal("s", "down", {"current": "alarm", "previous": "ok", "reason": "quiet"})
    world.deliver_all()
    assert list(members(world)) == other_items
    [reported] = world.rows("SELECT reason FROM event WHERE resource_name = 'down' AND action = 'SIGNAL'")
    assert reported.reason == "alarm state changed from ok to alarm (quiet)"


def test_a_signal_at_the_bounds_or_in_the_cooldown_is_rejected_with_an_event(world: World) -> None:
    world.create("s", scaling(1, cooldown=600))
    world.deliver_all()
    write(world, "UPDATE resource SET metadata = '{}' WHERE name = 'g'")
    world.signal("s", "down")
    world.deliver_all()
    assert len(members(world)) == 1
    world.signal("s", "up")
    world.signal("s", "up")
    world.deliver_all()
    assert len(members(world)) == 2
    world.signal("s", "up")
    world.deliver_all()
    assert len(members(world)) == 2
    reported = world.rows("SELECT resource_name, reason FROM event WHERE action = 'SIGNAL' ORDER BY id")
    assert [row.resource_name for row in reported] == ["down", "up", "up", "up"]
    rejected = "Signal rejected by group g: "
    assert reported[0].reason == f"{rejected}at its minimum of 1 member"
    assert reported[1].reason == "No signal details provided"
    assert all(row.reason.startswith(f"{rejected}cooldown until 20") for row in reported[2:])
    assert world.rows("SELECT 1 FROM signal") == []


@pytest.mark.parametrize(
    ("adjustment_type", "amount", "size"), [("exact_capacity", 1, 1), ("percent_change_in_capacity", 50, 3)]
)
def test_the_adjustment_type_of_a_policy_is_respected(
    world: World, adjustment_type: str, amount: int, size: int
) -> None:
    resources = scaling(2)
    resources["up"]["properties"] |= {"adjustment_type": adjustment_type, "scaling_adjustment": amount}
    world.create("s", resources)
    world.deliver_all()
    world.signal("s", "up")
    world.deliver_all()
    assert len(members(world)) == size


def test_a_signal_may_name_the_members_to_delete_and_only_they_are_deleted(world: World) -> None:
    world.create("s", scaling(3))
    world.deliver_all()
    names = list(members(world))
    world.signal("s", "down", {"remove_members": [names[1]]})
    world.deliver_all()
    assert list(members(world)) == [names[0], names[2]]
    world.signal("s", "down", {"remove_members": ["nobody"]})
    world.deliver_all()
    assert list(members(world)) == [names[0], names[2]]
    reported = world.rows("SELECT reason, status FROM event WHERE action = 'SIGNAL' ORDER BY id")
    assert reported[-1].status == "FAILED"
    assert reported[-1].reason.endswith("not among the members of the group: nobody")


def test_a_policy_whose_group_is_none_says_so(world: World) -> None:
    world.create(
        "s",
        {
            "g": group(1),
            "p": {
                "type": "OS::Heat::ScalingPolicy",
                "properties": {
                    "auto_scaling_group_id": "nobody",
                    "scaling_adjustment": 1,
                    "adjustment_type": "exact_capacity",
                },
            },
        },
    )
    world.deliver_all()
    world.signal("s", "p")
    world.deliver_all()
    [reported] = world.rows("SELECT reason FROM event WHERE action = 'SIGNAL'")
    assert reported.reason.endswith('Alarm p could not find scaling group named "nobody"')


def test_a_template_without_a_size_keeps_the_scaled_size_and_a_given_size_overrides_it(world: World) -> None:
    uuid = world.create("s", scaling(0))
    world.deliver_all()
    for _ in range(2):
        world.signal("s", "up")
        world.deliver_all()
    assert len(members(world)) == 3
    update(world, scaling(0, resource=test_resource("w")))
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert list(members(world).values()) == ["w"] * 3
    update(world, scaling(2, resource=test_resource("w")))
    assert len(members(world)) == 2


def test_a_signal_waits_for_the_update_of_the_group(world: World) -> None:
    uuid = world.create("s", scaling(1), outputs=SIZE)
    world.deliver_all()
    update(world, scaling(1, resource=test_resource("w", action_wait_secs={"update": -1})))
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal("s", "up")
    world.deliver_all()
    assert world.rows("SELECT 1 FROM event WHERE action = 'SIGNAL'") == []
    assert len(members(world)) == 1
    assert len(world.rows("SELECT 1 FROM signal WHERE due_at = 'infinity'")) == 1


def test_marking_a_group_healthy_resets_its_flag_of_scaling(world: World) -> None:
    world.create("s", scaling(1))
    world.deliver_all()
    write(world, """UPDATE resource SET metadata = '{"scaling_in_progress": true}' WHERE name = 'g'""")
    world.mark("s", "g", unhealthy=False)
    assert metadata(world) == {"scaling_in_progress": False}
    write(world, """UPDATE resource SET metadata = '{"scaling_in_progress": true}' WHERE name = 'g'""")
    world.signal("s", "up")
    world.deliver_all()
    assert len(members(world)) == 2


def test_a_member_that_cannot_be_made_leaves_the_rest_to_the_next_update(world: World) -> None:
    member = {
        "type": "OS::Heat::TestResource",
        "properties": {"value": "v", "fail": {"get_param": "fail"}},
    }
    parameters = {"fail": {"type": "boolean", "default": False}}
    uuid = world.create("s", scaling(1, resource=member), parameters=parameters, outputs=SIZE)
    world.deliver_all()
    for column in ("data", "properties"):  # as if members could not be made any more
        write(
            world,
            f"UPDATE resource SET {column} ="
            f" regexp_replace({column}::text, '(\"fail\"): ?false', '\\1: true')::json WHERE name = 'g'",
        )
    world.signal("s", "up")
    world.deliver_all()
    reported = world.rows("SELECT reason, status FROM event WHERE action = 'SIGNAL' AND resource_name = 'g'")
    assert [row.status for row in reported] == ["FAILED"]
    assert "Test Resource failed" in reported[0].reason
    assert metadata(world)["scaling_in_progress"] is False
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.update("s", scaling(1, resource=member), parameters=parameters, outputs=SIZE)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(members(world)) == 1
    assert world.outputs("s")["size"] == 1


@pytest.mark.parametrize("seed", range(6))
def test_signals_and_updates_in_any_order_leave_a_sound_group(world: World, seed: int) -> None:
    world.random.seed(seed)
    uuid = world.create("s", scaling(0), outputs=SIZE)
    world.deliver_all(shuffle=True, repeat=0.2)
    for step in range(4):
        world.signal("s", world.random.choice(["up", "down"]))
        if step % 2:
            world.update("s", scaling(0, resource=test_resource(f"w{step}")), outputs=SIZE)
        world.deliver(world.random.randrange(10))
    world.deliver_all(shuffle=True, repeat=0.2, lose=0.1)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    now = members(world)
    assert set(now.values()) == {"w3"}
    assert 1 <= len(now) <= 4
    assert world.rows("SELECT 1 FROM signal") == []
    assert metadata(world)["scaling_in_progress"] is False
    world.update("s", scaling(0, resource=test_resource("w3")), outputs=SIZE)
    world.deliver_all()
    assert world.outputs("s")["size"] == len(now)


def test_a_scaled_group_goes_with_its_stack(world: World) -> None:
    uuid = world.create("s", scaling())
    world.deliver_all()
    world.signal("s", "up")
    world.deliver(3)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.rows("SELECT 1 FROM signal") == []
