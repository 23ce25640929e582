"""Templates of known shapes: what requires what, and nothing else to do.

A resource's value is made of the reference ids of what it requires, so that values stay short however deep
the graph is. A join of thousands is made by `depends_on`, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Resources = dict[str, dict[str, Any]]

VERSION = "2021-04-16"
TYPE = "OS::Heat::TestResource"
WIDEST = 1_000  # resources of a layer


def flat(size: int) -> Resources:
    """Resources that require nothing."""
    return {f"r{n}": _resource() for n in range(size)}


def chain(size: int) -> Resources:
    """Each requires the one before."""
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
    """All but one require nothing; that one requires all of them."""
    feeders = [f"r{n}" for n in range(size - 1)]
    return {**{name: _resource() for name in feeders}, "last": {**_resource(), "depends_on": feeders}}


def fan_out(size: int) -> Resources:
    """All but one require that one."""
    return {"first": _resource(), **{f"r{n}": _resource("first") for n in range(size - 1)}}


SHAPES: Mapping[str, Callable[[int], Resources]] = {
    "flat": flat,
    "chain": chain,
    "layered": layered,
    "fan-in": fan_in,
    "fan-out": fan_out,
}
OPERATIONS = ("create", "delete")
# Known by name, so that asking for one is answered: they wait for their part of the engine.
NOT_YET = frozenset({"nested", "no-change", "change-one", "change-all", "replace-all"})


def template(shape: str, size: int) -> dict[str, Any]:
    """Return a template of `size` resources."""
    return {"heat_template_version": VERSION, "resources": SHAPES[shape](size)}


def _resource(*parents: str) -> dict[str, Any]:
    if not parents:
        return {"type": TYPE, "properties": {"value": "constant"}}
    params = {f"${number}": {"get_resource": parent} for number, parent in enumerate(parents)}
    value = {"str_replace": {"template": "made of " + " and ".join(params), "params": params}}
    return {"type": TYPE, "properties": {"value": value}}
