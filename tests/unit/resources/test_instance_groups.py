"""Groups of instances in CloudFormation's terms, and their launch configurations."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.groups.instance_group import AwsAutoScalingGroup, InstanceGroup, pause_seconds
from orchestrator.resources.groups.launch_configuration import LaunchConfiguration
from orchestrator.resources.nested_type import Sibling
from tests.unit.resources.group_world import Operated, faults

CONF = Sibling("conf", {"ImageId": "i", "InstanceType": "m", "InstanceId": "x"}, {"m": 1})


def instances(kind=InstanceGroup, **options):
    policy = options.pop("update_policy", {})
    sizes = {"Size": 2} if kind is InstanceGroup else {"MinSize": 1, "MaxSize": 5, "DesiredCapacity": 2}
    supplied = {"AvailabilityZones": [], "LaunchConfigurationName": "conf-1", **sizes, **options}
    item = Operated(kind(), supplied, policy)
    item.child.neighbours = {"conf-1": CONF, "conf-2": Sibling("conf2", {"ImageId": "j"}, {})}
    return item


def test_instances_are_made_from_the_launch_configuration():
    item = instances(Tags=[{"Key": "a", "Value": "b"}])
    item.apply()
    [first, _] = item.child.made.values()
    assert first["type"] == "OS::Heat::ScaledResource"
    assert first["metadata"] == {"m": 1}
    assert first["properties"] == {
        "ImageId": "i",
        "InstanceType": "m",
        "Tags": [{"Key": "a", "Value": "b"}, {"Key": "metering.groupname", "Value": "s-g-abc"}],
    }
    assert item.attribute("InstanceList") == "1.1.1.0,1.1.1.1"
    assert item.metadata == {}


def test_without_a_policy_instances_keep_their_definition():
    item = instances()
    item.apply()
    item.apply(LaunchConfigurationName="conf-2", Size=3)
    assert item.values("ImageId") == ["i", "i", "j"]


def test_with_a_policy_instances_change_in_batches():
    policy = {"RollingUpdate": {"MaxBatchSize": 1, "MinInstancesInService": 1, "PauseTime": "PT1M"}}
    item = instances(update_policy=policy)
    item.apply()
    item.apply(LaunchConfigurationName="conf-2")
    assert item.values("ImageId") == ["j", "j"]
    assert item.pauses == [60.0]


def test_a_missing_launch_configuration_is_reported():
    item = instances(LaunchConfigurationName="other")
    with pytest.raises(
        ProviderError, match=r"LaunchConfigurationName \(other\) reference can not be found\."
    ):
        item.apply()


def test_amazons_group_scales_and_cools_down():
    item = instances(AwsAutoScalingGroup, Cooldown=60, VPCZoneIdentifier=["net"])
    item.apply()
    assert item.values("SubnetId") == ["net", "net"]
    assert item.values("Tags")[0][-1] == {"Key": "metering.AutoScalingGroupName", "Value": "s-g-abc"}
    assert not item.scale(1)
    assert item.scale(1, later=61)
    assert len(item.names) == 3


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
    item = instances(AwsAutoScalingGroup)
    del item.properties["LaunchConfigurationName"]
    with pytest.raises(ProviderError, match=either):
        item.apply()
    invalid = faults(
        AwsAutoScalingGroup(), AvailabilityZones=[], MinSize=1, MaxSize=1, VPCZoneIdentifier=["a", "b"]
    )
    assert invalid == ["Anything other than one VPCZoneIdentifier is not supported."]


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
