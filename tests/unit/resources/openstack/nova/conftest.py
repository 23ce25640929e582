"""A scripted nova, and contexts of verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.resources.base import Context
from orchestrator.testing.scripted_cloud import ScriptedCloud

TOKEN = "b4a1a3f0-8f0d-4a3c-9d4c-3f6a1f2b7e10-1"


@pytest.fixture
def cloud() -> ScriptedCloud:
    """A cloud that answers 404 to requests without a rule."""
    script = ScriptedCloud()
    for method in ("GET", "DELETE"):
        script.answers(method, ".*", {"itemNotFound": {"message": "not here"}}, status=404)
    return script


@pytest.fixture
def context_of(cloud: ScriptedCloud) -> Callable[..., Context]:
    """Return a function that makes the context of a verb."""

    def make(properties: Any = None, **values: Any) -> Context:
        defaults: dict[str, Any] = {
            "name": "thing",
            "physical_name": "stack-thing-abcdefghijkl",
            "token": TOKEN,
            "action": "CREATE",
            "project_id": "p1",
        }
        return Context(**{**defaults, **values}, properties=properties or {}, cloud=cloud.cloud)

    return make
