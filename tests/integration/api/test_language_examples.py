"""The examples of the language guide produce the documented outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.world import World

EXAMPLES = Path(__file__).parents[3] / "examples"
LARGE = (EXAMPLES / "kitchen-large.env.yaml").read_text()


@pytest.fixture
def world(postgres_url: str) -> Iterator[World]:
    made = World(postgres_url)
    yield made
    made.close()


def make(world: World, name: str, **request: Any) -> dict[str, Any]:
    """Make a stack of an example; return its outputs."""
    template: Any = (EXAMPLES / f"{name}.yaml").read_text()
    uuid = world.submit(name, template, **request)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return world.outputs(name)


def resources(world: World) -> set[str]:
    return {row.name for row in world.rows("SELECT name FROM resource")}


def test_a_large_kitchen_has_a_cellar_and_its_types_come_from_the_environment(world: World) -> None:
    outputs = make(world, "kitchen", environment=LARGE)
    assert resources(world) == {"key", "drying", "cellar", "kitchen", "sign"}
    assert outputs["kitchen"] == "a stove and two hundred bottles"
    assert outputs["cellar"] == "two hundred bottles"
    assert len(outputs["key"]) == 24


def test_a_small_kitchen_has_none_and_waits_for_nothing(world: World) -> None:
    outputs = make(world, "kitchen", environment=LARGE, parameters={"size": "small"})
    assert resources(world) == {"key", "kitchen", "sign"}
    assert outputs["kitchen"] == "a stove"
    assert outputs.keys() == {"kitchen", "key"}
    assert len(outputs["key"]) == 32


@pytest.mark.parametrize(
    ("stage", "shown"),
    [
        ("test", {"Page": "Hello from cloudformation in red", "Size": 1}),
        (
            "production",
            {"Page": "Good day from cloudformation in red", "Size": 8, "Backup": "every night"},
        ),
    ],
)
def test_the_cloudformation_example_matches_its_mapping(
    world: World, stage: str, shown: dict[str, Any]
) -> None:
    assert make(world, "cloudformation", parameters={"Stage": stage}) == shown


def test_the_tour_of_the_functions_shows_their_values(world: World) -> None:
    outputs = make(world, "functions")
    check = hashlib.sha256(b"shop.example").hexdigest()
    secret = outputs.pop("secret_digest")
    assert len(secret) == len(check)
    assert outputs == {
        "names": ["web.shop.example", "mail.shop.example", "www.shop.example"],
        "machine": {"memory_gib": 2, "role": "mail server"},
        "address": f"https://shop.example:443/from/example?check={check}",
        "services": [{"web": "port 443"}, {"mail": "port 25"}],
        "longest": "mail.shop.example",
    }
