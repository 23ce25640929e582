"""Templates of the scenarios, and the places in which a server is tested: root stack, child stack, groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from tests.noisy.project import Project, document

Snippet = dict[str, Any]
INNER = "file:///inner.yaml"


def server(label: str = "a", *, requires: str = "", **properties: Any) -> Snippet:
    """Return the definition of a server."""
    snippet: Snippet = {"type": "Noisy::Server", "properties": {"label": label, **properties}}
    return {**snippet, "depends_on": requires} if requires else snippet


def volume(label: str = "a", **properties: Any) -> Snippet:
    """Return the definition of a volume."""
    return {"type": "Noisy::Volume", "properties": {"label": label, **properties}}


def network(label: str = "a") -> Snippet:
    """Return the definition of a network."""
    return {"type": "Noisy::Network", "properties": {"label": label}}


def group(member: Snippet, count: int = 2, **properties: Any) -> Snippet:
    """Return the definition of a ResourceGroup."""
    return {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": member, **properties},
    }


def scaling_group(member: Snippet, size: int = 2, maximum: int = 9, **properties: Any) -> Snippet:
    """Return the definition of an AutoScalingGroup without a cooldown."""
    sizes = {"min_size": 0, "max_size": maximum, "desired_capacity": size, "cooldown": 0}
    return {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {**sizes, "resource": member, **properties},
    }


def policy(adjustment: int, **properties: Any) -> Snippet:
    """Return the definition of a policy of the scaling group `group`, without a cooldown."""
    values = {
        "auto_scaling_group_id": {"get_resource": "group"},
        "adjustment_type": "change_in_capacity",
        "scaling_adjustment": adjustment,
        "cooldown": 0,
    }
    return {"type": "OS::Heat::ScalingPolicy", "properties": {**values, **properties}}


@dataclass(frozen=True)
class Place:
    """A place of a server in a stack."""

    name: str
    resource: str  # of the root stack
    count: int  # of servers

    def body(self, label: str = "a", **properties: Any) -> dict[str, Any]:
        """Return the arguments of `Project.create` and `update` for a stack with the server."""
        member = server(label, **properties)
        match self.name:
            case "root":
                return {"resources": {"server": member}}
            case "child":
                files = {INNER: orjson.dumps(document({"server": member})).decode()}
                return {"resources": {"child": {"type": INNER}}, "files": files}
            case "group":
                return {"resources": {"group": group(member, self.count)}}
        return {"resources": {"group": scaling_group(member, self.count)}}

    def stack(self, project: Project, root: str) -> str:
        """Return the name of the stack that contains the servers."""
        return root if self.name == "root" else project.child(root, self.resource)


ROOT = Place("root", "server", 1)
CHILD = Place("child", "child", 1)
GROUP = Place("group", "group", 2)
SCALING_GROUP = Place("scaling_group", "group", 2)
PLACES = (ROOT, CHILD, GROUP, SCALING_GROUP)


def in_places(*places: Place) -> pytest.MarkDecorator:
    """Run a test in these places only, instead of all places of the fixture `place`."""
    return pytest.mark.parametrize("place", places, ids=[place.name for place in places])
