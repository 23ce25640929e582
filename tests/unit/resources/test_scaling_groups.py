"""Groups whose size changes by itself: OS::Heat::AutoScalingGroup, OS::Heat::InstanceGroup and Amazon's."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context
from orchestrator.resources.groups.auto_scaling_group import AutoScalingGroup
from orchestrator.resources.groups.group_metadata import KEY
from orchestrator.resources.groups.instance_group import AwsAutoScalingGroup, InstanceGroup, pause_seconds
from orchestrator.resources.groups.launch_configuration import LaunchConfiguration
from orchestrator.resources.groups.scaling_policy import AwsScalingPolicy, ScalingPolicy
from orchestrator.resources.nested_type import Sibling
from orchestrator.template.member_attributes import attribute_at, unmarked
from tests.unit.resources.group_world import Operated


def group(**more):
    keys = ("metadata", "timeout")
    aside = {key: more.pop(key) for key in keys if key in more}
    given = {"min_size": 1, "max_size": 6, "resource": resource(), **more}
    return Operated(AutoScalingGroup(), given, **aside)


def resource(value="v"):
    return {"type": "T", "properties": {"value": value}}


def faults(kind, **properties):
    given, wrong = kind.read_properties(properties)
    return [fault.message for fault in wrong] + [fault.message for fault in kind.validate(given, 60)]


def rested(one):
    """Let it have cooled down."""
    one.metadata.pop("cooldown_end", None)
    return one


def test_a_group_starts_with_the_desired_capacity_or_the_minimum():
    assert len(group(desired_capacity=3).apply()) == 3
    assert len(group(min_size=2).apply()) == 2
    assert len(group(min_size=0).apply()) == 0


def test_members_have_names_of_their_own():
    one = group(desired_capacity=3)
    names = one.apply()
    assert all(len(name) == 12 for name in names)
    one.apply(desired_capacity=2)
    grown = one.apply(desired_capacity=3)
    assert len(set(grown) | set(names)) == 4, "a name is never given twice"


def test_the_oldest_go_first_and_the_failed_before_them():
    one = group(desired_capacity=4)
    names = one.apply()
    one.child.sick = {names[2]}
    assert one.apply(desired_capacity=2) == [names[1], names[3]]


def test_a_template_without_a_size_keeps_the_size_set_by_policies():
    one = group()
    one.apply()
    assert one.scale(3)
    assert len(one.apply(max_size=5)) == 4
    assert len(one.apply(max_size=2)) == 2


def test_a_new_definition_comes_in_batches():
    one = group(desired_capacity=3)
    one.apply()
    one.apply(resource=resource("w"))
    assert len(one.way) == 3
    assert one.values("value") == ["w"] * 3
    one.apply(
        resource=resource("x"), rolling_updates={"max_batch_size": 2, "min_in_service": 2, "pause_time": 3}
    )
    assert one.values("value") == ["x"] * 3
    assert one.pauses == [3.0] * (len(one.way) - 1)


def test_a_new_definition_and_a_new_size_both_come_about():
    one = group(desired_capacity=3)
    one.apply()
    one.apply(resource=resource("w"), desired_capacity=5)
    assert one.values("value") == ["w"] * 5
    one.apply(resource=resource("x"), desired_capacity=2)
    assert one.values("value") == ["x"] * 2
    one.apply(resource=resource("y"), desired_capacity=2, min_size=0)
    assert one.values("value") == ["y"] * 2


@pytest.mark.parametrize("least", range(5))
@pytest.mark.parametrize("batch", range(1, 5))
def test_every_policy_ends_with_all_members_new(least, batch):
    one = group(desired_capacity=4)
    one.apply()
    one.apply(resource=resource("w"), rolling_updates={"max_batch_size": batch, "min_in_service": least})
    assert one.values("value") == ["w"] * 4
    assert max(len(names) for names in one.way) <= 4 + batch


def test_failed_members_are_replaced_by_a_rolling_update():
    one = group(desired_capacity=3)
    names = one.apply()
    one.child.sick = {names[1]}
    one.apply(resource=resource("w"))
    assert one.values("value") == ["w"] * 3
    assert names[1] not in one.names


def test_pauses_count_before_anything_is_changed():
    one = group(desired_capacity=4, rolling_updates={"pause_time": 20}, timeout=60)
    one.apply()
    before = one.child.template
    with pytest.raises(ProviderError, match="stack update timeout"):
        one.apply(resource=resource("w"))
    assert one.child.template == before


def test_scaling_stays_within_bounds_and_does_nothing_at_them():
    one = group(max_size=3)
    one.apply()
    assert one.scale(9)
    assert len(one.names) == 3
    assert not one.scale(1)
    assert one.scale(-9)
    assert len(one.names) == 1
    assert not one.scale(-1)


def test_scaling_changes_no_other_member():
    one = group(desired_capacity=2)
    names = one.apply()
    made = dict(one.child.made)
    assert one.scale(2)
    assert one.names[:2] == names
    assert {name: one.child.made[name] for name in names} == made
    assert one.scale(-3)
    assert one.names[0] not in names, "the oldest went"


def test_failed_members_do_not_count():
    one = group(desired_capacity=3)
    names = one.apply()
    one.child.sick = {names[2]}
    assert one.scale(2)
    assert len(one.names) == 4
    one.child.sick = {names[0]}
    assert one.scale(-1)
    assert len(one.names) == 2
    assert names[0] not in one.names


def test_a_group_that_cools_down_is_left_alone():
    one = group(cooldown=60)
    one.apply()
    assert list(one.metadata["cooldown_end"].values()) == ["ExactCapacity : 1"]
    assert not one.scale(1)
    assert one.scale(1, later=61)
    one.metadata = {"scaling_in_progress": True}
    assert not one.scale(1, later=999)


def test_a_scale_in_may_name_the_members_to_delete():
    one = group(desired_capacity=4)
    names = one.apply()
    assert one.scale(remove=(names[1], f"id-{names[3]}"))
    assert one.names == [names[0], names[2]]
    with pytest.raises(ProviderError, match=f"^not among the members of the group: {names[1]}, nobody$"):
        one.scale(remove=(names[0], names[1], "nobody"))
    assert one.names == [names[0], names[2]]
    with pytest.raises(ProviderError, match="the group would have 0 members; the minimum is 1"):
        one.scale(remove=(names[0], names[2]))


def test_a_template_may_name_a_member_to_replace():
    one = group(desired_capacity=3)
    names = one.apply()
    one.metadata = {KEY: {"remove": [names[1]]}}
    assert one.apply()[:2] == [names[0], names[2]]
    assert len(one.names) == 3
    again = one.names
    assert one.apply() == again, "who went before may stay listed"
    one.metadata = {KEY: {"remove": ["nobody"]}}
    with pytest.raises(ProviderError, match="nobody"):
        one.apply()
    assert one.names == again


@pytest.mark.parametrize(("victims", "left"), [("oldest", [2, 3]), ("newest", [0, 1])])
def test_a_template_may_name_the_members_to_delete_first(victims, left):
    one = group(desired_capacity=4, metadata={KEY: {"victims": victims}})
    names = one.apply()
    assert one.apply(desired_capacity=2) == [names[place] for place in left]


def test_batches_stop_by_themselves_when_members_are_unwell():
    one = group(desired_capacity=3, metadata={KEY: {"health_gate": True}})
    names = one.apply()
    one.begin(resource=resource("w"))
    one.child.sick = {names[0]}
    with pytest.raises(ProviderError, match=f"unhealthy members: {names[0]}"):
        one.go_on()
    assert one.values("value") == ["w", "v", "v"]


def test_attributes_of_a_scaling_group():
    one = group(desired_capacity=2)
    a, b = one.apply()
    assert one.attribute("current_size") == 2
    assert one.attribute("refs") == [f"id-{a}", f"id-{b}"]
    assert one.attribute("refs_map") == {a: f"id-{a}", b: f"id-{b}"}
    assert attribute_at(one.attribute("outputs"), ["ip"]) == {a: "10.0.0.0", b: "10.0.0.1"}
    assert attribute_at(one.attribute("outputs_list"), ["ip"]) == ["10.0.0.0", "10.0.0.1"]
    assert attribute_at(one.attribute("outputs_list"), ["nets", "a", 0]) == [a, b]
    assert unmarked(one.attribute("resource.1")) == f"id-{b}"
    assert attribute_at(one.attribute("resource.0"), ["ip"]) == "10.0.0.0"
    assert one.attribute("resource.2") is None
    one.child.sick = {a}
    assert one.attribute("current_size") == 1
    assert unmarked(one.attribute("resource.0")) == f"id-{b}"
    assert not one.kind.has_attribute("ip")
    assert one.kind.has_attribute("resource.0")


def test_how_large_a_large_group_is_takes_no_look_at_its_members():
    one = group(desired_capacity=500, max_size=500)
    one.apply()
    one.child.sick = set(one.names[:2])
    one.child.read = 0
    assert one.attribute("current_size") == 498
    assert one.scale(-2)
    assert one.child.read == 0
    assert len(one.names) == 496


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


# CloudFormation's.

CONF = Sibling("conf", {"ImageId": "i", "InstanceType": "m", "InstanceId": "x"}, {"m": 1})


def instances(kind=InstanceGroup, **more):
    policy = more.pop("update_policy", {})
    sizes = {"Size": 2} if kind is InstanceGroup else {"MinSize": 1, "MaxSize": 5, "DesiredCapacity": 2}
    given = {"AvailabilityZones": [], "LaunchConfigurationName": "conf-1", **sizes, **more}
    one = Operated(kind(), given, policy)
    one.child.neighbours = {"conf-1": CONF, "conf-2": Sibling("conf2", {"ImageId": "j"}, {})}
    return one


def test_instances_are_made_from_the_launch_configuration():
    one = instances(Tags=[{"Key": "a", "Value": "b"}])
    one.apply()
    [first, _] = one.child.made.values()
    assert first["type"] == "OS::Heat::ScaledResource"
    assert first["metadata"] == {"m": 1}
    assert first["properties"] == {
        "ImageId": "i",
        "InstanceType": "m",
        "Tags": [{"Key": "a", "Value": "b"}, {"Key": "metering.groupname", "Value": "s-g-abc"}],
    }
    assert one.attribute("InstanceList") == "1.1.1.0,1.1.1.1"
    assert one.metadata == {}


def test_without_a_policy_instances_keep_their_definition():
    one = instances()
    one.apply()
    one.apply(LaunchConfigurationName="conf-2", Size=3)
    assert one.values("ImageId") == ["i", "i", "j"]


def test_with_a_policy_instances_change_in_batches():
    policy = {"RollingUpdate": {"MaxBatchSize": 1, "MinInstancesInService": 1, "PauseTime": "PT1M"}}
    one = instances(update_policy=policy)
    one.apply()
    one.apply(LaunchConfigurationName="conf-2")
    assert one.values("ImageId") == ["j", "j"]
    assert one.pauses == [60.0]


def test_a_missing_launch_configuration_is_reported():
    one = instances(LaunchConfigurationName="other")
    with pytest.raises(
        ProviderError, match=r"LaunchConfigurationName \(other\) reference can not be found\."
    ):
        one.apply()


def test_amazons_group_scales_and_cools_down():
    one = instances(AwsAutoScalingGroup, Cooldown=60, VPCZoneIdentifier=["net"])
    one.apply()
    assert one.values("SubnetId") == ["net", "net"]
    assert one.values("Tags")[0][-1] == {"Key": "metering.AutoScalingGroupName", "Value": "s-g-abc"}
    assert not one.scale(1)
    assert one.scale(1, later=61)
    assert len(one.names) == 3


def test_an_amazon_group_needs_exactly_one_source():
    either = "Either 'InstanceId' or 'LaunchConfigurationName' must be provided."
    both = faults(
        AwsAutoScalingGroup(),
        AvailabilityZones=[],
        MinSize=1,
        MaxSize=1,
        InstanceId="a",
        LaunchConfigurationName="b",
    )
    assert both == [either]
    one = instances(AwsAutoScalingGroup)
    del one.properties["LaunchConfigurationName"]
    with pytest.raises(ProviderError, match=either):
        one.apply()
    wrong = faults(
        AwsAutoScalingGroup(), AvailabilityZones=[], MinSize=1, MaxSize=1, VPCZoneIdentifier=["a", "b"]
    )
    assert wrong == ["Anything other than one VPCZoneIdentifier is not supported."]


@pytest.mark.parametrize(("text", "seconds"), [("PT0S", 0), ("PT1M30S", 90), ("PT1H", 3600)])
def test_durations(text, seconds):
    assert pause_seconds(text) == seconds


@pytest.mark.parametrize("text", ["PT1H1S", "5", "P1D", ""])
def test_durations_that_are_none_or_too_long(text):
    with pytest.raises(ProviderError):
        pause_seconds(text)


def test_a_launch_configuration_takes_volumes_from_snapshots_only():
    kind = LaunchConfiguration()
    assert faults(kind, BlockDeviceMappings=[{"DeviceName": "a"}]) == [
        "Ebs is missing, this is required when specifying BlockDeviceMappings."
    ]
    assert faults(kind, BlockDeviceMappings=[{"DeviceName": "a", "Ebs": {"VolumeSize": "1"}}]) == [
        "SnapshotId is missing, this is required when specifying BlockDeviceMappings."
    ]


POLICY = {"auto_scaling_group_id": "g", "scaling_adjustment": 2, "adjustment_type": "change_in_capacity"}


def signalled(kind, details, **properties):
    given, wrong = kind.read_properties(properties)
    assert wrong == []
    return kind.signal(Context("p", "s-p", "t", "CHECK", properties=given), "p", details).resize


@pytest.mark.parametrize("details", [None, "x", {}, {"current": "ok"}])
def test_a_policy_requests_its_adjustment_for_any_signal(details):
    asked = signalled(ScalingPolicy(), details, **POLICY, cooldown=5)
    assert asked.group == "g"
    assert (asked.request["amount"], asked.request["kind"], asked.request["cooldown"]) == (
        2,
        "change_in_capacity",
        5,
    )


def test_amazons_policy_says_the_same_in_other_words():
    asked = signalled(
        AwsScalingPolicy(),
        None,
        AutoScalingGroupName="g",
        ScalingAdjustment=10,
        AdjustmentType="PercentChangeInCapacity",
        MinAdjustmentStep=2,
    )
    assert asked.request == {
        "amount": 10,
        "kind": "percent_change_in_capacity",
        "min_step": 2,
        "cooldown": None,
        "type_label": "PercentChangeInCapacity",
    }


def test_a_signal_may_name_the_members_to_delete():
    assert signalled(ScalingPolicy(), {"remove_members": ["a"]}, **POLICY).request["remove"] == ["a"]
    for wrong in ("a", [], [1]):
        with pytest.raises(ProviderError, match="remove_members must be a list of names or ids"):
            signalled(ScalingPolicy(), {"remove_members": wrong}, **POLICY)


def test_a_least_step_is_for_percentages():
    told = "min_adjustment_step property should only be specified for adjustment_type with value "
    assert faults(ScalingPolicy(), **POLICY, min_adjustment_step=1) == [f"{told}percent_change_in_capacity."]
    assert faults(ScalingPolicy(), **{**POLICY, "adjustment_type": "percent_change_in_capacity"}) == []
