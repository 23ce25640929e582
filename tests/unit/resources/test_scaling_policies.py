"""Scaling policies of Heat and of CloudFormation: the resize requests of their signals."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context
from orchestrator.resources.groups.scaling_policy import AwsScalingPolicy, ScalingPolicy
from tests.unit.resources.group_world import faults

POLICY = {"auto_scaling_group_id": "g", "scaling_adjustment": 2, "adjustment_type": "change_in_capacity"}


def signalled(kind, details, **properties):
    supplied, invalid = kind.read_properties(properties)
    assert invalid == []
    return kind.signal(Context("p", "s-p", "t", "CHECK", properties=supplied), "p", details).resize


@pytest.mark.parametrize("details", [None, "x", {}, {"current": "ok"}])
def test_a_policy_requests_its_adjustment_for_any_signal(details):
    requests = signalled(ScalingPolicy(), details, **POLICY, cooldown=5)
    assert requests.group == "g"
    assert (
        requests.request["amount"],
        requests.request["adjustment_type"],
        requests.request["cooldown"],
    ) == (
        2,
        "change_in_capacity",
        5,
    )


def test_amazons_policy_says_the_same_in_other_words():
    requests = signalled(
        AwsScalingPolicy(),
        None,
        AutoScalingGroupName="g",
        ScalingAdjustment=10,
        AdjustmentType="PercentChangeInCapacity",
        MinAdjustmentStep=2,
    )
    assert requests.request == {
        "amount": 10,
        "adjustment_type": "percent_change_in_capacity",
        "min_step": 2,
        "cooldown": None,
        "type_label": "PercentChangeInCapacity",
    }


def test_a_signal_may_name_the_members_to_delete():
    assert signalled(ScalingPolicy(), {"remove_members": ["a"]}, **POLICY).request["remove"] == ["a"]
    for invalid in ("a", [], [1]):
        with pytest.raises(ProviderError, match="remove_members must be a list of names or ids"):
            signalled(ScalingPolicy(), {"remove_members": invalid}, **POLICY)


def test_a_least_step_is_for_percentages():
    reported = "min_adjustment_step property should only be specified for adjustment_type with value "
    assert faults(ScalingPolicy(), **POLICY, min_adjustment_step=1) == [
        f"{reported}percent_change_in_capacity."
    ]
    assert faults(ScalingPolicy(), **{**POLICY, "adjustment_type": "percent_change_in_capacity"}) == []


def test_the_reference_of_amazons_policy_is_the_url_for_alarms():
    created = AwsScalingPolicy().create(Context("p", "s-p", "00000000-1", "CREATE"), {})
    ctx = Context("p", "s-p", "00000000-1", "CHECK", data=created.data)
    observation = AwsScalingPolicy().observe(ctx, created.physical_id)
    assert observation.reference_id == observation.attributes["AlarmUrl"] == created.data["url"]
    assert ScalingPolicy().observe(ctx, created.physical_id).reference_id is None
