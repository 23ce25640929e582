"""The patterns of a request share a budget of steps; beyond it the request is refused with a location."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import InvalidTemplate
from tests.scenarios.world import World


def template(pattern: str, text: str, count: int) -> dict[str, Any]:
    """Return a template with parameters whose patterns differ, and that share a text."""
    parameters = {
        f"p{number}": {
            "type": "string",
            "default": text,
            "constraints": [{"allowed_pattern": pattern.format(number)}],
        }
        for number in range(count)
    }
    resources = {"a": {"type": "OS::Heat::None"}}
    return {"heat_template_version": "2021-04-16", "parameters": parameters, "resources": resources}


def test_patterns_beyond_the_budget_are_refused_with_a_location(world: World) -> None:
    with pytest.raises(InvalidTemplate) as raised:
        world.submit("s", template("(a|b)*a(a|b){{60}}|{}", "ab" * 5_000, 60))
    fault = raised.value.diagnostics[-1]
    assert fault.path.startswith("parameters.p")
    assert "the patterns of this request need more than 20,000,000 steps" in fault.message
    assert world.rows("SELECT id FROM stack") == []


def test_ordinary_patterns_are_far_below_the_budget(world: World) -> None:
    world.submit("s", template(r"\w+(-\w+)*@[a-z.]+|{}", "somebody-else@mail.example", 200))
    assert world.rows("SELECT id FROM stack")
