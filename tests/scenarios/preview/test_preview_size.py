"""A preview, and the description of a template, have a maximum size; more is refused early."""

from __future__ import annotations

import tracemalloc
from typing import Any

import orjson
import pytest

from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import Body
from orchestrator.operations.preview.create import preview_create
from orchestrator.operations.preview.update import preview_update
from orchestrator.operations.size_budget import MAX_RESPONSE_BYTES
from orchestrator.operations.validation.template_report import validate

MB = 1024 * 1024
TOO_LARGE = "Request limit exceeded: the preview would have more than 64 MiB."


def large(count: int) -> dict[str, Any]:
    """A template of resources with 4 MiB each, made of 1 KiB."""
    value: Any = "x" * 1024
    for _ in range(12):
        value = {"str_replace": {"template": "aa", "params": {"a": value}}}
    resource = {"type": "OS::Heat::Value", "properties": {"value": value}}
    resources = {f"v{number}": resource for number in range(count)}
    return {"heat_template_version": "2021-04-16", "resources": resources}


def request(template: dict[str, Any], **fields: Any) -> Body:
    return Body(orjson.dumps({"stack_name": "s", "template": template, **fields}))


def test_the_preview_of_a_create_has_a_maximum_size(world):
    assert len(preview_create(world.context, request(large(15))).resources) == 15
    tracemalloc.start()
    with pytest.raises(LimitExceeded) as refused:
        preview_create(world.context, request(large(100)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert str(refused.value) == TOO_LARGE
    assert peak < 3 * MAX_RESPONSE_BYTES


def test_the_outputs_of_a_preview_count(world):
    template = large(1)
    value = template["resources"]["v0"]["properties"]["value"]
    outputs = {f"o{number}": {"value": value} for number in range(20)}
    with pytest.raises(LimitExceeded, match="the preview would have more than"):
        preview_create(world.context, request({**template, "outputs": outputs}))


def test_the_preview_of_a_group_counts_its_members(world):
    member = {"type": "OS::Heat::Value", "properties": {"value": "x" * 1000}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 100_000, "resource_def": member}}
    template = {"heat_template_version": "2021-04-16", "resources": {"g": group}}
    with pytest.raises(LimitExceeded, match="the preview would have more than"):
        preview_create(world.context, request(template))


def test_the_preview_of_an_update_has_a_maximum_size(world):
    world.create("s", {"a": {"type": "OS::Heat::None"}})
    world.deliver_all()
    world.update(
        "s", {f"v{number}": {"type": "OS::Heat::Value", "properties": {"value": 1}} for number in range(20)}
    )
    world.deliver_all()
    stack = world.stack_row("s")
    preview = preview_update(world.context, stack, request(large(10)))
    assert len(preview.items["updated"]) == 10
    with pytest.raises(LimitExceeded) as refused:
        preview_update(world.context, stack, request(large(20)))
    assert str(refused.value) == TOO_LARGE


def test_the_description_of_nested_templates_has_a_maximum_size(world):
    nested = {
        "heat_template_version": "2021-04-16",
        "description": "x" * MB,
        "resources": {"a": {"type": "OS::Heat::None"}},
    }
    template = {
        "heat_template_version": "2021-04-16",
        "resources": {f"n{number}": {"type": "nested.yaml"} for number in range(100)},
    }
    body = request(template, files={"nested.yaml": orjson.dumps(nested).decode()})
    assert "Parameters" in validate(world.context, body)
    with pytest.raises(LimitExceeded, match="the description of the template would have more than 64 MiB"):
        validate(world.context, body, show_nested=True)
