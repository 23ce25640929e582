"""Templates and environments of stacks that pause at hooks."""

from __future__ import annotations

from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.world import test_resource

KINDS = ["own", "cloud"]


def hooked(**hooks):
    """An environment that has these resources pause."""
    return {
        "resource_registry": {"resources": {name: {"hooks": keywords} for name, keywords in hooks.items()}}
    }


def thing(kind, requires=(), value="v"):
    if kind == "own":
        return test_resource(value, requires=requires)
    return cloud_thing(requires=tuple(requires), type="Cloud::Server", value=value)


def chain(kind, value="v"):
    return {"a": thing(kind, value=value), "b": thing(kind, ["a"])}


def states(world):
    return {r.name: f"{r.action}_{r.status}" for r in world.rows("SELECT name, action, status FROM resource")}
