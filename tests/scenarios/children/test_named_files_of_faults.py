"""The message of a fault in a nested template, all that clients print, names its file and its resource."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.validation.template_report import validate
from tests.scenarios.world import World, test_resource

HEAD = "heat_template_version: 2018-08-31\n"
FAULTS = {
    "a list": "- a\n- b\n",
    "no version": "resources: {}\n",
    "empty": "",
    "unknown version": "heat_template_version: 1999-01-01\n",
    "unknown section": HEAD + "resourcs: {}\n",
    "no YAML": HEAD + "resources: [\n",
    "a tab": HEAD + "resources:\n\ta: {}\n",
    "parameter without a type": HEAD + "parameters: {p: {}}\n",
    "unknown key of an output": HEAD + "outputs: {o: {valeu: 1}}\n",
    "resource without a type": HEAD + "resources: {a: {}}\n",
    "unknown type": HEAD + "resources: {a: {type: 'OS::No::Such'}}\n",
    "unknown property": HEAD + "resources: {a: {type: 'OS::Heat::TestResource', properties: {x: 1}}}\n",
    "cycle": HEAD
    + "resources: {a: {type: 'OS::Heat::None', depends_on: b}, b: {type: 'OS::Heat::None', depends_on: a}}\n",
}
USES: dict[str, dict[str, Any]] = {
    "file": {"box": {"type": "child.yaml"}},
    "registry": {"box": {"type": "My::Box"}},
    "group": {
        "box": {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": {"type": "child.yaml"}}}
    },
    "scaling group": {
        "box": {
            "type": "OS::Heat::AutoScalingGroup",
            "properties": {"min_size": 1, "max_size": 1, "resource": {"type": "child.yaml"}},
        }
    },
    "chain": {"box": {"type": "OS::Heat::ResourceChain", "properties": {"resources": ["child.yaml"]}}},
    "nested": {"box": {"type": "middle.yaml"}},
    "CloudFormation": {
        "box": {"type": "AWS::CloudFormation::Stack", "properties": {"TemplateURL": "child.yaml"}}
    },
}
MIDDLE = HEAD + "resources: {inner: {type: child.yaml}}\n"
CASES = [
    *((use, "a list") for use in USES),
    *((use, "cycle") for use in USES),
    *(("file", f) for f in FAULTS),
]


def request(use: str, fault: str) -> dict[str, Any]:
    return {
        "files": {"child.yaml": FAULTS[fault], "middle.yaml": MIDDLE},
        "environment": {"resource_registry": {"My::Box": "child.yaml"}},
    }


def named(error: InvalidTemplate) -> None:
    assert "child.yaml" in str(error)
    assert "box" in str(error)


@pytest.mark.parametrize(("use", "fault"), sorted(CASES))
def test_the_message_names_the_file_and_the_resource(world: World, use: str, fault: str) -> None:
    with pytest.raises(InvalidTemplate) as refused:
        world.create("s", USES[use], **request(use, fault))
    named(refused.value)


def test_an_update_and_a_validation_name_them_too(world: World) -> None:
    world.create("s", {"a": test_resource("a")})
    world.deliver_all()
    with pytest.raises(InvalidTemplate) as refused:
        world.update("s", USES["file"], **request("file", "a list"))
    named(refused.value)
    template = {"heat_template_version": "2018-08-31", "resources": USES["file"]}
    body = orjson.dumps({"template": template, **request("file", "a list")})
    with pytest.raises(InvalidTemplate) as refused:
        validate(world.context, Body(body))
    named(refused.value)
