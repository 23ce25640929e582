"""All errors of a request are reported together, each with its location, and leave nothing behind."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.stacks import create_delete
from tests.scenarios.world import World

FAULTY = """\
heat_template_version: 2021-04-16
parameters:
  n: {type: string, constraints: [{length: {max: 3}}], default: ab}
resources:
  a:
    type: OS::Heat::RandomStrin
  b:
    type: OS::Heat::RandomString
    properties: {lenth: 3, length: 1000}
  c:
    type: OS::Heat::Value
    properties: {value: {get_resource: zz}}
    foo: 1
  d: {type: OS::Heat::Value, properties: {value: {get_resource: e}}}
  e: {type: OS::Heat::Value, properties: {value: {get_attr: [d, value]}}}
outputs: {o: {value: {get_attr: [b, nope]}}}
"""


def test_language_parameter_type_and_cycle_faults_are_answered_together(postgres_url: str):
    world = World(postgres_url)
    body = {"stack_name": "s", "template": FAULTY, "parameters": {"n": "abcd", "q": 1}}
    with pytest.raises(InvalidTemplate) as caught:
        create_delete.create(world.context, Body(orjson.dumps(body)))
    result = {(fault.code, fault.line) for fault in caught.value.diagnostics}
    assert result == {
        ("unknown-resource", 12),
        ("unknown-key", 13),
        ("invalid-parameter", None),
        ("unknown-parameter", None),
        ("circular-dependency", 14),
        ("unknown-type", 6),
        ("unknown-property", 9),
        ("wrong-value", 9),
        ("unknown-attribute", 16),
    }
    for table in ("stack", "revision", "content", "graph_node", "event"):
        assert world.rows(f"SELECT count(*) FROM {table}") == [(0,)]
    world.close()


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ("# ours\nparameters:\n  q: 1\n", ("environment", 3)),
        ({"parameters": {"q": 1}}, ("environment", None)),
        ("{}", ("parameters", None)),
    ],
)
def test_an_unknown_parameter_is_located_in_the_environment(postgres_url: str, environment, place):
    world = World(postgres_url)
    template = (
        "heat_template_version: 2021-04-16\nparameters: {p: {type: string, default: x}}\nresources: {}\n"
    )
    body = {"stack_name": "s", "template": template, "environment": environment}
    if environment == "{}":
        body["parameters"] = {"q": 1}
    with pytest.raises(
        InvalidTemplate, match=r"^The Parameter \(q\) was not defined in template\.$"
    ) as caught:
        create_delete.create(world.context, Body(orjson.dumps(body)))
    assert [(fault.file, fault.line) for fault in caught.value.diagnostics] == [place]
    world.close()


def test_many_unknown_parameters_are_located(postgres_url: str) -> None:
    world = World(postgres_url)
    deep = "[" * 90 + "]" * 90
    environment = "parameters:\n" + "".join(f"  p{number}: {deep}\n" for number in range(3))
    template = "heat_template_version: 2021-04-16\nresources: {}\n"
    body = {"stack_name": "s", "template": template, "environment": environment}
    with pytest.raises(InvalidTemplate) as caught:
        create_delete.create(world.context, Body(orjson.dumps(body)))
    found = [(fault.code, fault.file, fault.line) for fault in caught.value.diagnostics]
    assert found == [("unknown-parameter", "environment", line) for line in (2, 3, 4)]
    world.close()


def test_a_mistake_is_reported_once(postgres_url: str):
    world = World(postgres_url)
    value = "  c: {type: OS::Heat::Value, properties: {value: {get_param: m}}}\n"
    template = FAULTY[: FAULTY.index("  a:")] + value
    with pytest.raises(InvalidTemplate) as caught:
        create_delete.create(world.context, Body(orjson.dumps({"stack_name": "s", "template": template})))
    assert [fault.code for fault in caught.value.diagnostics] == ["unknown-parameter"]
    world.close()
