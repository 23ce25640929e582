"""The ways to give a resource type, and an installation whose policy governs types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from orchestrator.security.caller import Caller
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.trees import text
from tests.scenarios.world import World

GOVERNED = "Cloud::Server"
MEMBER = Caller("p1", "mallory", ("member", "reader"))
BUILDER = Caller("p1", "ada", ("member", "reader", "builder"))
POLICY = """
resource_types:Cloud::Server: [builder]
resource_types:Named::*: [builder]
"""
REASON = "is not permitted for the author of the revision"

Resources = dict[str, Any]


class GovernedWorld(World):
    """An installation whose policy governs types."""

    def become(self, caller: Caller) -> None:
        """Send the next requests as this caller."""
        self.caller = caller
        self.context = replace(self.context, caller=caller)

    def settle(self) -> None:
        self.deliver_all()

    def reasons(self) -> list[str]:
        return [row.reason for row in self.rows("SELECT reason FROM failure ORDER BY id")]

    def made(self) -> int:
        """Return the number of live resources of governed types that have an object."""
        [row] = self.rows(
            """SELECT count(*) AS n FROM resource
            WHERE (coalesce(runs_as, type) = 'Cloud::Server' OR type LIKE 'Named::%')
                AND physical_id IS NOT NULL AND action <> 'DELETE'"""
        )
        return int(row.n)


def value(of: Any) -> Resources:
    return {"v": {"type": "OS::Heat::Value", "properties": {"value": of}}}


KNOWN_LATER = {"get_attr": ["v", "value"]}
DEFINITION = {"type": GOVERNED, "properties": {"value": "x"}}
SIZES = {"min_size": 1, "max_size": 3, "desired_capacity": 1}
UP = {
    "up": {
        "type": "OS::Heat::ScalingPolicy",
        "properties": {
            "auto_scaling_group_id": {"get_resource": "g"},
            "adjustment_type": "change_in_capacity",
            "scaling_adjustment": 1,
        },
    }
}


def resource_group(definition: Any, count: Any = 1, **extra: Any) -> Resources:
    properties = {"count": count, "resource_def": definition}
    return {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties, **extra}}


def scaling_group(definition: Any, **sizes: Any) -> Resources:
    properties = {**SIZES, **sizes, "resource": definition}
    return {"g": {"type": "OS::Heat::AutoScalingGroup", "properties": properties}}


def chain(types: Any) -> Resources:
    return {"g": {"type": "OS::Heat::ResourceChain", "properties": {"resources": types}}}


def instances(size: int) -> Resources:
    return {
        "conf": {
            "type": "AWS::AutoScaling::LaunchConfiguration",
            "properties": {"ImageId": "i", "InstanceType": "f"},
        },
        "g": {
            "type": "OS::Heat::InstanceGroup",
            "properties": {
                "AvailabilityZones": [],
                "LaunchConfigurationName": {"get_resource": "conf"},
                "Size": size,
            },
        },
    }


def with_parameter(resources: Resources) -> dict[str, Any]:
    """A file's nested template whose `t` is the type of a group's members."""
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"t": {"type": "string", "default": "Cloud::Thing"}},
        "resources": resources,
    }
    return {"file:///typed.yaml": orjson.dumps(template).decode()}


NESTED = {"file:///n.yaml": text({"x": dict(DEFINITION)})}
LATER_NESTED = {"file:///n.yaml": text({**value(GOVERNED), **resource_group({"type": KNOWN_LATER})})}
ALIAS = {"resource_registry": {"My::Alias": GOVERNED}}
WILD = {"resource_registry": {"My::*": GOVERNED}}
NAMED = {"resource_registry": {"Named::Thing": "file:///plain.yaml"}}
PLAIN = {"file:///plain.yaml": text({"x": cloud_thing(value="x")})}
OF_ONE = {"resource_registry": {"resources": {"x": {"Cloud::Thing": GOVERNED}}}}
IN_GROUP = {"resource_registry": {"resources": {"g": {"0": {"Cloud::Thing": GOVERNED}}}}}

# How a type is given -> the request.
AT_THE_REQUEST: dict[str, dict[str, Any]] = {
    "directly": {"resources": {"x": dict(DEFINITION)}},
    "by an alias": {"resources": {"x": {"type": "My::Alias"}}, "environment": ALIAS},
    "by a pattern": {"resources": {"x": {"type": "My::Other"}}, "environment": WILD},
    "for one resource": {"resources": {"x": {"type": "Cloud::Thing"}}, "environment": OF_ONE},
    "by a name that is governed itself": {
        "resources": {"x": {"type": "Named::Thing"}},
        "environment": NAMED,
        "files": PLAIN,
    },
    "in a nested template": {"resources": {"x": {"type": "file:///n.yaml"}}, "files": NESTED},
    "in a template by URL": {
        "resources": {
            "x": {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "file:///n.yaml"}}
        },
        "files": NESTED,
    },
    "in a group": {"resources": resource_group(DEFINITION)},
    "in a group by an alias": {"resources": resource_group({"type": "My::Alias"}), "environment": ALIAS},
    "in a group by a rule for its members": {
        "resources": resource_group({"type": "Cloud::Thing"}),
        "environment": IN_GROUP,
    },
    "in a group of nested templates": {
        "resources": resource_group({"type": "file:///n.yaml"}),
        "files": NESTED,
    },
    "in a scaling group": {"resources": scaling_group(DEFINITION)},
    "in a chain": {"resources": chain(["Cloud::Thing", GOVERNED])},
    "in a group in a group": {
        "resources": resource_group(
            {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": DEFINITION}}
        )
    },
    "in a group by a parameter": {
        "resources": resource_group({"type": {"get_param": "t"}}),
        "parameters": {"t": {"type": "string", "default": GOVERNED}},
    },
    "in a nested template by a parameter": {
        "resources": {"x": {"type": "file:///typed.yaml", "properties": {"t": GOVERNED}}},
        "files": with_parameter(resource_group({"type": {"get_param": "t"}})),
    },
    "in an empty group": {"resources": resource_group(DEFINITION, 0)},
    "in an empty group by an alias": {
        "resources": resource_group({"type": "My::Alias"}, 0),
        "environment": ALIAS,
    },
    "in an empty group of nested templates": {
        "resources": resource_group({"type": "file:///n.yaml"}, 0),
        "files": NESTED,
    },
    "in an empty group in an empty group": {
        "resources": resource_group(
            {"type": "OS::Heat::ResourceGroup", "properties": {"count": 0, "resource_def": DEFINITION}}, 0
        )
    },
    "in an empty scaling group": {"resources": scaling_group(DEFINITION, min_size=0, desired_capacity=0)},
    "in an empty scaling group with a policy": {
        "resources": {**scaling_group(DEFINITION, min_size=0, desired_capacity=0), **UP}
    },
    "in a group of instances": {
        "resources": instances(1),
        "environment": {"resource_registry": {"OS::Heat::ScaledResource": GOVERNED}},
    },
    "in an empty group of instances": {
        "resources": instances(0),
        "environment": {"resource_registry": {"OS::Heat::ScaledResource": GOVERNED}},
    },
}

# The same where only a worker knows the type.
IN_A_WORKER: dict[str, dict[str, Any]] = {
    "definition from an attribute": {"resources": {**value(DEFINITION), **resource_group(KNOWN_LATER)}},
    "type from an attribute": {"resources": {**value(GOVERNED), **resource_group({"type": KNOWN_LATER})}},
    "alias from an attribute": {
        "resources": {**value("My::Alias"), **resource_group({"type": KNOWN_LATER})},
        "environment": ALIAS,
    },
    "pattern and an attribute": {
        "resources": {**value("My::Other"), **resource_group({"type": KNOWN_LATER})},
        "environment": WILD,
    },
    "governed name from an attribute": {
        "resources": {**value("Named::Thing"), **resource_group({"type": KNOWN_LATER})},
        "environment": NAMED,
        "files": PLAIN,
    },
    "nested template from an attribute": {
        "resources": {**value("file:///n.yaml"), **resource_group({"type": KNOWN_LATER})},
        "files": NESTED,
    },
    "scaling group, definition from an attribute": {
        "resources": {**value(DEFINITION), **scaling_group(KNOWN_LATER)}
    },
    "scaling group, type from an attribute": {
        "resources": {**value(GOVERNED), **scaling_group({"type": KNOWN_LATER})}
    },
    "chain from an attribute": {"resources": {**value(["Cloud::Thing", GOVERNED]), **chain(KNOWN_LATER)}},
    "chain with a type from an attribute": {
        "resources": {**value(GOVERNED), **chain(["Cloud::Thing", KNOWN_LATER])}
    },
    "group in a group": {
        "resources": {
            **value(
                {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": DEFINITION}}
            ),
            **resource_group(KNOWN_LATER),
        }
    },
    "attribute in a nested template": {
        "resources": {"x": {"type": "file:///n.yaml"}},
        "files": LATER_NESTED,
    },
    "attribute in a group of nested templates": {
        "resources": resource_group({"type": "file:///n.yaml"}),
        "files": LATER_NESTED,
    },
    "parameter of a nested template from an attribute": {
        "resources": {
            **value(GOVERNED),
            "x": {"type": "file:///typed.yaml", "properties": {"t": KNOWN_LATER}},
        },
        "files": with_parameter(resource_group({"type": {"get_param": "t"}})),
    },
    "template by a URL from an attribute": {
        "resources": {
            **value("file:///n.yaml"),
            "x": {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": KNOWN_LATER}},
        },
        "files": NESTED,
    },
}
EMPTY = {"min_size": 0, "desired_capacity": 0}
# … in a group without members that a signal enlarges.
SCALED: dict[str, Resources] = {
    "definition from an attribute": {**value(DEFINITION), **scaling_group(KNOWN_LATER, **EMPTY), **UP},
    "type from an attribute": {**value(GOVERNED), **scaling_group({"type": KNOWN_LATER}, **EMPTY), **UP},
}


def ask(world: GovernedWorld, request: dict[str, Any], name: str = "s") -> str:
    sections = {key: part for key, part in request.items() if key != "resources"}
    return world.create(name, request["resources"], **sections)


def later_group(count: int) -> Resources:
    return {**value(DEFINITION), **resource_group(KNOWN_LATER, count)}
