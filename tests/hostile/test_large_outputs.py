"""Nested replacements multiply a short text: a value, and the outputs of a response, have a maximum size."""

from __future__ import annotations

from typing import Any

from orchestrator.operations.outputs.outputs import MAX_OUTPUTS_BYTES
from orchestrator.template.functions.resolved_argument import MAX_TEXT_LENGTH
from tests.hostile.tenant import Tenant

MB = 1024 * 1024


def multiplied(doublings: int) -> Any:
    """Return an expression for a text of 1 KiB, doubled so often."""
    value: Any = "x" * 1024
    for _ in range(doublings):
        value = {"str_replace": {"template": "aa", "params": {"a": value}}}
    return value


def test_the_outputs_of_a_response_have_a_maximum_size(tenant: Tenant) -> None:
    outputs = {f"o{number}": {"value": multiplied(12)} for number in range(8)}  # 4 MiB each
    tenant.create("s", {"a": {"type": "OS::Heat::None"}}, outputs=outputs)
    answer = tenant.client.get("/stacks/s")
    assert len(answer.content) < MAX_OUTPUTS_BYTES + MB
    shown = answer.json()["stack"]["outputs"]
    without_value = [output["output_key"] for output in shown if output.get("output_error")]
    assert without_value == ["o3", "o4", "o5", "o6", "o7"]
    assert len(tenant.output("s", "o7")) == 4 * MB


def test_a_value_has_a_maximum_size(tenant: Tenant) -> None:
    resource = {"type": "OS::Heat::Value", "properties": {"value": multiplied(14)}}
    template = {"heat_template_version": "2021-04-16", "resources": {"a": resource}}
    answer = tenant.client.post("/stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 400
    assert f"more than {MAX_TEXT_LENGTH} characters" in answer.json()["error"]["message"]


def test_the_properties_of_a_resource_have_a_maximum_size(tenant: Tenant) -> None:
    large = {"get_param": "large"}
    resource = {"type": "OS::Heat::Value", "properties": {"value": [large] * 20}}
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"large": {"type": "string", "default": "x" * MB}},
        "resources": {"a": resource},
    }
    answer = tenant.client.post("/stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 400
    assert f"more than {MAX_TEXT_LENGTH} characters" in answer.text
