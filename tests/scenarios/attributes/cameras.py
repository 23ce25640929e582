"""A type with live attributes: a camera, whose picture changes all the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Attribute, Context, Observation, ResourceType, Value
from tests.scenarios.fake_cloud import Cloud, Server


class Camera(Server):
    """A server whose pictures are read on demand."""

    name = "Cloud::Camera"
    live_show = True
    attributes: ClassVar = {
        **Server.attributes,
        "picture": Attribute("What it sees.", live=True),
        "pin": Attribute("Its code.", secret=True, live=True),
        "door": Attribute("The URL that opens its case.", live=True, gives_access=True),
    }

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.pictures: dict[str, Any] = {}
        self.read: list[tuple[str, frozenset[str]]] = []
        self.used: set[frozenset[str]] = set()  # as the context of each observation says
        self.refuses = False

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        self.used.add(ctx.used_attributes)
        observed = super().observe(ctx, physical_id)
        recorded = {**observed.attributes, "picture": "observed"}  # a type must not, and it is not recorded
        return replace(observed, attributes=recorded) if observed.exists and observed.ready else observed

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        self.cloud.call("read_attributes", ctx)
        self.read.append((ctx.name, names))
        if self.refuses:
            raise ProviderError("no pictures today")
        picture = self.pictures.get(ctx.name, "dark")
        values = {
            "picture": picture,
            "pin": "1234",
            "door": "open",
            "show": {"id": physical_id, "picture": picture},
        }
        return {name: values[name] for name in names if name in values}


def camera_types(cloud: Cloud) -> tuple[Camera, dict[str, ResourceType]]:
    """Return the type of cameras, and all types of the cloud."""
    camera = Camera(cloud)
    return camera, {**cloud.types(), camera.name: camera}
