"""Templates of known shapes: only dependencies, no other work, and the changes of an update.

The value of a resource consists of the reference ids of its requirements, so values stay short for any depth
of the graph. A join of thousands uses `depends_on`, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

Resources = dict[str, dict[str, Any]]

VERSION = "2021-04-16"
TYPE = "OS::Heat::TestResource"
WIDEST = 1_000  # resources of a layer
CHILD = "file:///child.yaml"  # the template of a nested stack
CHILDREN = 10  # resources of a child
GROUP = "OS::Heat::ResourceGroup"


def flat(size: int) -> Resources:
    """Resources that require nothing."""
    return {f"r{n}": _resource() for n in range(size)}


def chain(size: int) -> Resources:
    """Each resource requires the previous resource."""
    return {f"r{n}": _resource(*([f"r{n - 1}"] if n else [])) for n in range(size)}


def layered(size: int) -> Resources:
    """Layers of a tenth of the resources, WIDEST at most; each requires two of the layer before."""
    width = min(max(size // 10, 1), WIDEST)
    resources: Resources = {}
    for n in range(size):
        first = n - n % width - width  # the layer before begins there
        parents = sorted({first + n % width, first + (n + 1) % width}) if first >= 0 else []
        resources[f"r{n}"] = _resource(*(f"r{parent}" for parent in parents))
    return resources


def fan_in(size: int) -> Resources:
    """The last resource requires all the rest."""
    feeders = [f"r{n}" for n in range(size - 1)]
    return {**{name: _resource() for name in feeders}, "last": {**_resource(), "depends_on": feeders}}


def fan_out(size: int) -> Resources:
    """All resources require the first."""
    return {"first": _resource(), **{f"r{n}": _resource("first") for n in range(size - 1)}}


def nested(size: int) -> Resources:
    """Nested stacks of CHILDREN resources each: `size` counts these and the resources that represent them."""
    return {
        f"r{n}": {"type": CHILD, "properties": {"value": "made of nothing"}}
        for n in range(size // (CHILDREN + 1))
    }


def group(size: int) -> Resources:
    """A group with `size` members; `change-one` adds a member."""
    members = {"type": TYPE, "properties": {"value": "made of %index%"}}
    return {"group": {"type": GROUP, "properties": {"count": size, "resource_def": members}}}


def _child() -> dict[str, Any]:
    names = ("value", "update_replace_value")
    properties = {name: {"get_param": name} for name in names}
    return {
        "heat_template_version": VERSION,
        "parameters": {name: {"type": "string", "default": ""} for name in names},
        "resources": {f"m{n}": {"type": TYPE, "properties": properties} for n in range(CHILDREN)},
    }


SHAPES: Mapping[str, Callable[[int], Resources]] = {
    "flat": flat,
    "chain": chain,
    "layered": layered,
    "fan-in": fan_in,
    "fan-out": fan_out,
    "nested": nested,
    "group": group,
}
FILES: Mapping[str, Mapping[str, str]] = {"nested": {CHILD: orjson.dumps(_child()).decode()}}


def template(shape: str, size: int, operation: str = "create") -> dict[str, Any]:
    """Return a template of `size` resources: as it is created, or as an update changes it."""
    resources = SHAPES[shape](size)
    CHANGES[operation](resources)
    return {"heat_template_version": VERSION, "resources": resources}


def _nothing(_: Resources) -> None:
    """Leave it as it is."""


def _single_resource(resources: Resources) -> None:
    """Change the value of the last resource, which has no dependents; a group grows by a member."""
    last = next(reversed(resources.values()))
    if last["type"] == GROUP:
        last["properties"]["count"] += 1
    else:
        _revalue(last)


def _all(resources: Resources) -> None:
    """Change each value in place, to a value other than that of `_one`."""
    for resource in resources.values():
        _revalue(resource, "made again")


def _replace(resources: Resources) -> None:
    """Give each another value of a property that cannot be changed."""
    _all(resources)
    for resource in resources.values():
        _made_from(resource)["update_replace_value"] = "another"


CHANGES: Mapping[str, Callable[[Resources], None]] = {
    "create": _nothing,
    "no-change": _nothing,
    "change-one": _single_resource,
    "change-all": _all,
    "replace-all": _replace,
    "delete": _nothing,
}
OPERATIONS = tuple(CHANGES)  # in the order of their application to a stack
UPDATES = frozenset(OPERATIONS) - {"create", "delete"}


def _resource(*parents: str) -> dict[str, Any]:
    if not parents:
        return {"type": TYPE, "properties": {"value": "made of nothing"}}
    params = {f"${number}": {"get_resource": parent} for number, parent in enumerate(parents)}
    value = {"str_replace": {"template": "made of " + " and ".join(params), "params": params}}
    return {"type": TYPE, "properties": {"value": value}}


def _made_from(resource: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a resource, of a group those of its members."""
    properties: dict[str, Any] = resource["properties"]
    return properties["resource_def"]["properties"] if resource["type"] == GROUP else properties


def _revalue(resource: dict[str, Any], keyword: str = "made anew") -> None:
    properties = _made_from(resource)
    if isinstance(properties["value"], str):
        properties["value"] = properties["value"].replace("made", keyword)
    else:
        text = properties["value"]["str_replace"]
        text["template"] = text["template"].replace("made", keyword)
