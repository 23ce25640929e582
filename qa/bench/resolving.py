"""Cost of resolving the properties of a resource in a check: ten properties, four functions."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from orchestrator.engine.validation.property_resolution import resolve_properties
from orchestrator.resources.base import Property, ResourceType
from orchestrator.schema.constraints import AllowedValues, Length, Range
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.parameters import ParameterValues

TIMES = 2_000

BODY: dict[str, Any] = {
    "properties": {
        "name": {"list_join": ["-", [{"get_param": "prefix"}, "server"]]},
        "image": {"get_param": "image"},
        "size": 20,
        "network": {"get_resource": "network"},
        "address": {"get_attr": ["port", "addresses", 0]},
        "script": {"str_replace": {"template": "host $host\n" * 20, "params": {"$host": "a.example"}}},
        "enabled": "true",
        "kind": "small",
        "tags": ["a", "b", "c"],
        "labels": {"tier": "web", "env": {"get_param": "prefix"}},
    }
}


class Server(ResourceType):
    """A type as clouds have them."""

    name = "Bench::Server"
    properties: ClassVar = {
        "name": Property("string", "Its name.", constraints=(Length(1, 255),)),
        "image": Property("string", "What it boots.", required=True),
        "size": Property("integer", "Of its disk, in GB.", constraints=(Range(1, 1_000),)),
        "network": Property("string", "Where it is."),
        "address": Property("string", "Its address."),
        "script": Property("string", "What it runs first."),
        "enabled": Property("boolean", "Whether it is on.", default=True),
        "kind": Property("string", "How large.", constraints=(AllowedValues(("small", "large")),)),
        "tags": Property("list", "Words.", schema=Property("string")),
        "labels": Property("map", "More words."),
    }


def measure_resolving() -> float:
    """Return milliseconds for the properties of a resource, with a new view for each."""
    values = ParameterValues({"prefix": "prod", "image": "linux"})
    proxies = {
        "network": ResourceProxy("network", "net-1", {}, "CREATE", "COMPLETE"),
        "port": ResourceProxy("port", "port-1", {"addresses": ["10.0.0.1"]}, "CREATE", "COMPLETE"),
    }
    kind = Server()
    started = time.perf_counter()
    for _ in range(TIMES):
        resolve_properties(BODY, StackDefinition("2021-04-16", values, proxies), kind, "server")
    return (time.perf_counter() - started) * 1_000 / TIMES
