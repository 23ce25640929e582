"""Types whose stack is a group of like resources, and those that belong to them."""

from __future__ import annotations

from typing import Any

from orchestrator.testing.samples import Sample

MEMBER = {"type": "OS::Heat::TestResource", "properties": {"value": "%index%"}}
OTHER = {"type": "OS::Heat::TestResource", "properties": {"value": "other"}}

URLS = frozenset({"alarm_url", "signal_url", "AlarmUrl"})
CONF = {"type": "AWS::AutoScaling::LaunchConfiguration", "properties": {"ImageId": "i", "InstanceType": "t"}}
NO_BALANCER = frozenset({"LoadBalancerNames"})  # a resource with the changed name does not exist
INSTANCES: dict[str, Any] = {
    "in_stack": {"LaunchConfigurationName": {"get_resource": "conf"}},
    "other_resources": {"conf": CONF, "other": CONF},
    "environment": {"resource_registry": {"OS::Heat::ScaledResource": "OS::Heat::None"}},
}

SAMPLES = (
    Sample(
        "OS::Heat::ResourceGroup",
        {"count": 3, "resource_def": MEMBER},
        changes={"resource_def": OTHER, "removal_policies": [{"resource_list": ["0"]}]},
    ),
    Sample(
        "OS::Heat::ResourceChain",
        {"resources": ["OS::Heat::TestResource"] * 2, "resource_properties": {"value": "v"}},
        changes={"resources": ["OS::Heat::TestResource"], "resource_properties": {"value": "w"}},
    ),
    Sample(
        "OS::Heat::AutoScalingGroup",
        {"min_size": 1, "max_size": 4, "desired_capacity": 2, "resource": MEMBER},
        changes={"resource": OTHER, "min_size": 2, "max_size": 3, "desired_capacity": 3},
    ),
    Sample(
        "OS::Heat::InstanceGroup",
        {"AvailabilityZones": [], "LaunchConfigurationName": "conf", "Size": 2},
        changes={"Size": 3, "LaunchConfigurationName": {"get_resource": "other"}},
        failing_changes=NO_BALANCER,
        **INSTANCES,
    ),
    Sample(
        "AWS::AutoScaling::AutoScalingGroup",
        {"AvailabilityZones": [], "LaunchConfigurationName": "conf", "MinSize": 1, "MaxSize": 3},
        changes={"LaunchConfigurationName": {"get_resource": "other"}, "MinSize": 2, "DesiredCapacity": 3},
        slow_changes=frozenset({"InstanceId"}),  # needs a compute service
        failing_changes=NO_BALANCER,
        **INSTANCES,
    ),
    Sample(
        "OS::Heat::ScalingPolicy",
        {
            "auto_scaling_group_id": "g",
            "scaling_adjustment": 1,
            "adjustment_type": "percent_change_in_capacity",
        },
        optional=URLS,
    ),
    Sample(
        "AWS::AutoScaling::ScalingPolicy",
        {"AutoScalingGroupName": "g", "ScalingAdjustment": 1, "AdjustmentType": "PercentChangeInCapacity"},
        optional=URLS,
    ),
)
