"""Attributes of groups, chains and templates nested in each other: in every form as Heat defines them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.scenarios.groups.group_trees import GROUP, INSTANCES, KINDS, SCALED, Maker, attribute, recorded
from tests.scenarios.trees import text
from tests.scenarios.world import World, test_resource

FORMS = 25
INSTANCE = """
heat_template_version: 2021-04-16
parameters:
  ImageId: {type: string}
  InstanceType: {type: string}
  Tags: {type: json}
resources:
  r: {type: OS::Heat::TestResource, properties: {value: v}}
outputs:
  PublicIp: {value: 10.0.0.1}
"""


@pytest.mark.parametrize("seed", range(12))
def test_every_form_resolves_through_every_nesting(world: World, seed: int) -> None:
    dice = random.Random(seed)
    kinds = tuple(dice.choice(KINDS) for _ in range(dice.randint(2, 3)))
    sizes = tuple(dice.randint(1, 3) for _ in kinds)
    uuid = ""
    for value in ("v", "w"):
        maker = Maker(dice, value)
        made = maker.made(kinds, sizes)
        forms: dict[str, list[Any]] = {f"o{n}": maker.form(made) for n in range(FORMS)}
        outputs = {name: {"value": {"get_attr": ["g", *form]}} for name, form in forms.items()}
        request = {"outputs": outputs, "files": maker.files}
        if value == "v":
            uuid = world.create("s", {"g": made.snippet}, **request)
        else:
            world.update("s", {"g": made.snippet}, **request)
        world.deliver_all()
        assert world.state(uuid) == ("CREATE_COMPLETE" if value == "v" else "UPDATE_COMPLETE")
        group = recorded(world, world.stack_row("s").id)["g"]
        shown = world.outputs("s")
        for name, form in forms.items():
            assert shown[name] == attribute(group, *form), f"{kinds} {sizes} {form}"
            assert shown[name] not in (None, [], {})
        sizes = tuple(dice.randint(1, 3) for _ in kinds)  # the update resizes every level


def racks(size: int, nodes: int) -> dict[str, Any]:
    return Maker(random.Random(0)).made((GROUP, GROUP), (size, nodes)).snippet


def test_names_and_keys_computed_from_parameters_resolve(world: World) -> None:
    outputs = {
        "name": {"value": {"get_attr": ["g", {"get_param": "name"}]}},
        "key": {"value": {"get_attr": ["g", "attributes", {"get_param": "key"}]}},
    }
    parameters = {"name": {"type": "string"}, "key": {"type": "string"}}
    world.create(
        "s",
        {"g": racks(2, 1)},
        outputs=outputs,
        parameters=parameters,
        environment={"parameters": {"name": "resource.1.output", "key": "resource.0.output"}},
    )
    world.deliver_all()
    assert world.outputs("s") == {"name": ["v-1-0"], "key": {"0": "v-0-0", "1": "v-1-0"}}


def test_properties_take_attributes_from_within(world: World) -> None:
    joined = {"list_join": [",", {"get_attr": ["g", "resource.1", "output"]}]}
    resources = {"g": racks(2, 2), "user": test_resource(joined)}
    world.create("s", resources)
    world.deliver_all()
    assert world.resource("user").properties["value"] == "v-1-0,v-1-1"
    world.update("s", {**resources, "g": racks(2, 1)})
    world.deliver_all()
    assert world.resource("user").properties["value"] == "v-1-0"


def test_all_attributes_of_members_are_plain_values(world: World) -> None:
    maker = Maker(random.Random(0))
    group = maker.made((SCALED, GROUP), (1, 1)).snippet
    outputs = {"all": {"value": {"get_attr": ["g"]}}, "list": {"value": {"get_attr": ["g", "outputs_list"]}}}
    world.create("s", {"g": group}, outputs=outputs)
    world.deliver_all()
    assert "::" not in str(world.outputs("s"))


def test_a_signal_refreshes_what_is_within(world: World) -> None:
    group = Maker(random.Random(0)).made((SCALED, GROUP), (1, 2)).snippet
    policy = {
        "auto_scaling_group_id": {"get_resource": "g"},
        "adjustment_type": "change_in_capacity",
        "scaling_adjustment": 1,
    }
    resources = {"g": group, "up": {"type": "OS::Heat::ScalingPolicy", "properties": policy}}
    world.create("s", resources, outputs={"o": {"value": {"get_attr": ["g", "outputs_list", "output"]}}})
    world.deliver_all()
    assert world.outputs("s")["o"] == [["v-0", "v-1"]]
    world.signal("s", "up")
    world.deliver_all()
    assert world.outputs("s")["o"] == [["v-0", "v-1"]] * 2


def test_instance_groups_and_cloudformation_stacks_are_reached_too(world: World) -> None:
    files = {
        "file:///instance.yaml": INSTANCE,
        "file:///tier.yaml": text(
            {
                "configuration": {
                    "type": "AWS::AutoScaling::LaunchConfiguration",
                    "properties": {"ImageId": "i", "InstanceType": "t"},
                },
                "instances": {
                    "type": INSTANCES,
                    "properties": {
                        "AvailabilityZones": ["nova"],
                        "LaunchConfigurationName": {"get_resource": "configuration"},
                        "Size": 2,
                    },
                },
            }
        ),
    }
    tiers = {
        "type": GROUP,
        "properties": {"count": 1, "resource_def": {"type": "file:///tier.yaml"}},
    }
    registry = {"OS::Heat::ScaledResource": "file:///instance.yaml"}
    forms = {
        "list": ["attributes", "resource.instances.InstanceList"],
        "one": ["resource.0", "resource.instances.resource.1.PublicIp"],
        "two": ["resource.0.resource.instances", "resource.1", "resource.r", "output"],
    }
    outputs = {name: {"value": {"get_attr": ["g", *form]}} for name, form in forms.items()}
    world.create("s", {"g": tiers}, outputs=outputs, files=files, environment={"resource_registry": registry})
    world.deliver_all()
    assert world.outputs("s") == {"list": {"0": "10.0.0.1,10.0.0.1"}, "one": "10.0.0.1", "two": "v"}
