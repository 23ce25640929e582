"""Sizes, scaling, rolling updates and attributes of OS::Heat::AutoScalingGroup."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.auto_scaling_group import AutoScalingGroup
from orchestrator.resources.groups.group_metadata import KEY
from orchestrator.template.member_attributes import attribute_at, unmarked
from tests.unit.resources.group_world import Operated, faults


def group(**options):
    keys = ("metadata", "timeout")
    aside = {key: options.pop(key) for key in keys if key in options}
    supplied = {"min_size": 1, "max_size": 6, "resource": resource(), **options}
    return Operated(AutoScalingGroup(), supplied, **aside)


def resource(value="v"):
    return {"type": "T", "properties": {"value": value}}


def test_a_group_starts_with_the_desired_capacity_or_the_minimum():
    assert len(group(desired_capacity=3).apply()) == 3
    assert len(group(min_size=2).apply()) == 2
    assert len(group(min_size=0).apply()) == 0


def test_members_have_names_of_their_own():
    item = group(desired_capacity=3)
    names = item.apply()
    assert all(len(name) == 12 for name in names)
    item.apply(desired_capacity=2)
    grown = item.apply(desired_capacity=3)
    assert len(set(grown) | set(names)) == 4, "a name is never given twice"


def test_the_oldest_go_first_and_the_failed_before_them():
    item = group(desired_capacity=4)
    names = item.apply()
    item.child.sick = {names[2]}
    assert item.apply(desired_capacity=2) == [names[1], names[3]]


def test_a_template_without_a_size_keeps_the_size_set_by_policies():
    item = group()
    item.apply()
    assert item.scale(3)
    assert len(item.apply(max_size=5)) == 4
    assert len(item.apply(max_size=2)) == 2


def test_a_new_definition_comes_in_batches():
    item = group(desired_capacity=3)
    item.apply()
    item.apply(resource=resource("w"))
    assert len(item.way) == 3
    assert item.values("value") == ["w"] * 3
    item.apply(
        resource=resource("x"), rolling_updates={"max_batch_size": 2, "min_in_service": 2, "pause_time": 3}
    )
    assert item.values("value") == ["x"] * 3
    assert item.pauses == [3.0] * (len(item.way) - 1)


def test_a_new_definition_and_a_new_size_both_come_about():
    item = group(desired_capacity=3)
    item.apply()
    item.apply(resource=resource("w"), desired_capacity=5)
    assert item.values("value") == ["w"] * 5
    item.apply(resource=resource("x"), desired_capacity=2)
    assert item.values("value") == ["x"] * 2
    item.apply(resource=resource("y"), desired_capacity=2, min_size=0)
    assert item.values("value") == ["y"] * 2


@pytest.mark.parametrize("least", range(5))
@pytest.mark.parametrize("batch", range(1, 5))
def test_every_policy_ends_with_all_members_new(least, batch):
    item = group(desired_capacity=4)
    item.apply()
    item.apply(resource=resource("w"), rolling_updates={"max_batch_size": batch, "min_in_service": least})
    assert item.values("value") == ["w"] * 4
    assert max(len(names) for names in item.way) <= 4 + batch


def test_failed_members_are_replaced_by_a_rolling_update():
    item = group(desired_capacity=3)
    names = item.apply()
    item.child.sick = {names[1]}
    item.apply(resource=resource("w"))
    assert item.values("value") == ["w"] * 3
    assert names[1] not in item.names


def test_pauses_count_before_anything_is_changed():
    item = group(desired_capacity=4, rolling_updates={"pause_time": 20}, timeout=60)
    item.apply()
    before = item.child.template
    with pytest.raises(ProviderError, match="stack update timeout"):
        item.apply(resource=resource("w"))
    assert item.child.template == before


def test_scaling_stays_within_bounds_and_does_nothing_at_them():
    item = group(max_size=3)
    item.apply()
    assert item.scale(9)
    assert len(item.names) == 3
    assert not item.scale(1)
    assert item.scale(-9)
    assert len(item.names) == 1
    assert not item.scale(-1)


def test_scaling_changes_no_other_member():
    item = group(desired_capacity=2)
    names = item.apply()
    made = dict(item.child.made)
    assert item.scale(2)
    assert item.names[:2] == names
    assert {name: item.child.made[name] for name in names} == made
    assert item.scale(-3)
    assert item.names[0] not in names, "the oldest went"


def test_failed_members_do_not_count_for_a_growth_and_are_removed_first():
    item = group(desired_capacity=3)
    names = item.apply()
    item.child.sick = {names[2]}
    assert item.scale(2)
    assert len(item.names) == 4
    item.child.sick = {names[0]}
    healthy = item.names[1:]
    assert item.scale(-1)
    assert item.names == healthy


def test_a_group_that_cools_down_is_left_alone():
    item = group(cooldown=60)
    item.apply()
    assert list(item.metadata["cooldown_end"].values()) == ["ExactCapacity : 1"]
    assert not item.scale(1)
    [reason] = item.rejections
    assert reason.startswith("cooldown until 20")
    assert item.scale(1, later=61)
    item.metadata = {"scaling_in_progress": True}
    assert item.scale(1, later=999)


def test_a_scale_in_may_name_the_members_to_delete():
    item = group(desired_capacity=4)
    names = item.apply()
    assert item.scale(remove=(names[1], f"id-{names[3]}"))
    assert item.names == [names[0], names[2]]
    assert not item.scale(remove=(names[0], names[1], "nobody"))
    assert item.rejections == [f"not among the members of the group: {names[1]}, nobody"]
    assert item.names == [names[0], names[2]]
    assert not item.scale(remove=(names[0], names[2]))
    assert item.rejections == ["the group would have 0 members; the minimum is 1"]


def test_members_out_of_service_are_removed_first():
    item = group(desired_capacity=5)
    names = item.apply()
    item.child.stuck, item.child.sick, item.child.unready = {names[4]}, {names[4], names[3]}, {names[2]}
    assert item.scale(-1)
    assert item.names == names[:4]
    assert item.scale(-1)
    assert item.names == names[:3]
    item.child.stuck, item.child.sick, item.child.unready = set(), set(), {names[2]}
    assert item.apply(desired_capacity=2) == names[:2]
    grown = item.apply(desired_capacity=4)
    item.child.missing = {grown[0]}
    assert item.apply(desired_capacity=3) == grown[1:]


def test_members_out_of_service_are_the_first_step_of_a_rolling_update():
    item = group(desired_capacity=4)
    names = item.apply()
    item.child.stuck, item.child.unready = {names[1]}, {names[3]}
    item.begin(resource=resource("w"))
    assert item.values("value") == ["v", "w", "v", "w"]  # also a stuck member: no batch waits for it
    item.child.stuck, item.child.unready = set(), set()
    item.go_on()
    assert item.values("value") == ["w", "w", "v", "w"]
    assert item.apply() == names
    assert item.values("value") == ["w"] * 4


def test_a_rolling_update_to_a_smaller_size_removes_members_out_of_service_first():
    item = group(desired_capacity=3)
    names = item.apply()
    item.child.unready = {names[2]}
    item.apply(desired_capacity=2, resource=resource("w"))
    assert item.names == names[:2]
    assert item.values("value") == ["w", "w"]


def test_a_member_out_of_service_is_removed_at_any_time_and_replaced_at_the_minimum():
    item = group(min_size=2, cooldown=60)
    names = item.apply()
    item.child.stuck = {names[1]}
    assert not item.scale(1)
    assert item.scale(remove=(names[1],))
    assert item.names[0] == names[0]
    assert len(item.names) == 2


def test_the_reported_size_counts_existing_members():
    item = group(desired_capacity=4)
    names = item.apply()
    item.child.stuck, item.child.unready = {names[3]}, {names[2]}
    assert item.attribute("current_size") == 3


def test_a_template_may_name_a_member_to_replace():
    item = group(desired_capacity=3)
    names = item.apply()
    item.metadata = {KEY: {"remove": [names[1]]}}
    assert item.apply()[:2] == [names[0], names[2]]
    assert len(item.names) == 3
    again = item.names
    assert item.apply() == again, "who went before may stay listed"
    item.metadata = {KEY: {"remove": ["nobody"]}}
    with pytest.raises(ProviderError, match="nobody"):
        item.apply()
    assert item.names == again


@pytest.mark.parametrize(("victims", "left"), [("oldest", [2, 3]), ("newest", [0, 1])])
def test_a_template_may_name_the_members_to_delete_first(victims, left):
    item = group(desired_capacity=4, metadata={KEY: {"victims": victims}})
    names = item.apply()
    assert item.apply(desired_capacity=2) == [names[place] for place in left]


def test_batches_stop_by_themselves_when_members_are_unwell():
    item = group(desired_capacity=3, metadata={KEY: {"health_gate": True}})
    names = item.apply()
    item.begin(resource=resource("w"))
    item.child.sick = {names[0]}
    with pytest.raises(ProviderError, match=f"unhealthy members: {names[0]}"):
        item.go_on()
    assert item.values("value") == ["w", "v", "v"]


def test_attributes_of_a_scaling_group():
    item = group(desired_capacity=2)
    a, b = item.apply()
    assert item.attribute("current_size") == 2
    assert item.attribute("refs") == [f"id-{a}", f"id-{b}"]
    assert item.attribute("refs_map") == {a: f"id-{a}", b: f"id-{b}"}
    assert attribute_at(item.attribute("outputs"), ["ip"]) == {a: "10.0.0.0", b: "10.0.0.1"}
    assert attribute_at(item.attribute("outputs_list"), ["ip"]) == ["10.0.0.0", "10.0.0.1"]
    assert attribute_at(item.attribute("outputs_list"), ["nets", "a", 0]) == [a, b]
    assert unmarked(item.attribute("resource.1")) == f"id-{b}"
    assert attribute_at(item.attribute("resource.0"), ["ip"]) == "10.0.0.0"
    assert item.attribute("resource.2") is None
    item.child.sick = {a}
    assert item.attribute("current_size") == 1
    assert unmarked(item.attribute("resource.0")) == f"id-{b}"
    assert not item.kind.has_attribute("ip")
    assert item.kind.has_attribute("resource.0")


def test_how_large_a_large_group_is_takes_no_look_at_its_members():
    item = group(desired_capacity=500, max_size=500)
    item.apply()
    item.child.sick = set(item.names[:2])
    item.child.read = 0
    assert item.attribute("current_size") == 498
    assert item.scale(-2)
    assert item.child.read == 0
    assert len(item.names) == 498


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_size": 3, "max_size": 2}, "MinSize can not be greater than MaxSize"),
        (
            {"min_size": 1, "max_size": 2, "desired_capacity": 3},
            "DesiredCapacity must be between MinSize and MaxSize",
        ),
        ({"min_size": -1, "max_size": 2}, "-1 is out of range (min: 0)"),
        ({"min_size": 1, "max_size": 2, "resource": {}}, "Each resource must contain a type key."),
        (
            {"min_size": 1, "max_size": 2, "resource": {"type": "T", "propertys": {}}},
            '"propertys" is not a valid keyword inside a resource definition',
        ),
    ],
)
def test_faults_of_a_group(given, message):
    assert message in faults(AutoScalingGroup(), **{"resource": resource(), **given})
