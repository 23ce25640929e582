"""Groups on running servers: made, changed in batches, scaled by a signal, looked into over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.running import Up, eventually

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "group.yaml"


@pytest.fixture(scope="module")
def client(start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    up = start_up(tmp_path_factory.mktemp("up") / "data").wait_ready()
    with httpx.Client(base_url=f"{up.url}/v1/demo", timeout=30, follow_redirects=True) as made:
        yield made


def stack(client: httpx.Client) -> dict[str, Any]:
    body: dict[str, Any] = client.get("/stacks/group").raise_for_status().json()["stack"]
    return body


def settled(client: httpx.Client, state: str) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        result = stack(client)
        assert not result["stack_status"].endswith("FAILED"), result["stack_status_reason"]
        return result if result["stack_status"] == state else None

    actual: dict[str, Any] = eventually(there, 60)
    return actual


def outputs(client: httpx.Client) -> dict[str, Any]:
    return {item["output_key"]: item["output_value"] for item in stack(client)["outputs"]}


def test_the_example_is_made_changed_in_batches_scaled_and_deleted(client: httpx.Client) -> None:
    template = EXAMPLE.read_text()
    body = {"stack_name": "group", "template": template}
    client.post("/stacks", json=body).raise_for_status()
    uuid = settled(client, "CREATE_COMPLETE")["id"]
    assert outputs(client) == {
        "workers": ["worker-0-1", "worker-1-1", "worker-2-1"],
        "second": "worker-1-1",
        "cells": 2,
    }

    changed = {"template": template, "parameters": {"size": 4, "release": "2"}}
    client.put(f"/stacks/group/{uuid}", json=changed).raise_for_status()
    settled(client, "UPDATE_COMPLETE")
    assert outputs(client)["workers"] == [f"worker-{n}-2" for n in range(4)]

    client.post(f"/stacks/group/{uuid}/resources/more/signal").raise_for_status()
    eventually(lambda: outputs(client)["cells"] == 3, 30)
    assert stack(client)["stack_status"] == "UPDATE_COMPLETE"

    [child] = [
        item["physical_resource_id"]
        for item in client.get(f"/stacks/group/{uuid}/resources").raise_for_status().json()["resources"]
        if item["resource_name"] == "workers"
    ]
    name = client.get(f"/stacks/{child}").raise_for_status().json()["stack"]["stack_name"]
    shown = client.get(f"/stacks/{name}/{child}/template").raise_for_status().json()
    assert shown["resources"]["3"] == {
        "type": "OS::Heat::TestResource",
        "properties": {"value": "worker-3-2"},
    }

    client.delete(f"/stacks/group/{uuid}").raise_for_status()
    eventually(lambda: client.get("/stacks/group").status_code == 404, 60)
