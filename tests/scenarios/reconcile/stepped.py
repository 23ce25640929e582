"""A provider whose operations have several steps, each with its own request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Created, Observation, Value
from tests.scenarios.fake_cloud import Cloud, Machine

STEPS: Mapping[str, tuple[str, ...]] = {
    "CREATE": ("attach", "start"),
    "UPDATE": ("confirm",),
    "SUSPEND": ("shelve",),
    "SNAPSHOT": ("quiesce",),
    "DELETE": ("detach",),
}


class Stepped(Machine):
    """A machine that needs further requests before an operation is finished."""

    name = "Cloud::Stepped"
    judges_health: ClassVar[bool] = False  # it is observed after a failure

    def __init__(self, cloud: Cloud) -> None:
        super().__init__(cloud)
        self.left: dict[str, list[str]] = {}  # steps, by thing
        self.seen: list[tuple[str, str, Any]] = []  # step, action and value of each call
        self.told: list[str] = []  # the step that each observation was told

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        created = super().create(ctx, props)
        self.left[created.physical_id] = list(STEPS["CREATE"])
        return created

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        if self.left[physical_id]:
            raise ProviderError("a step is missing")
        self.left[physical_id] = list(STEPS["UPDATE"])
        return super().update(ctx, physical_id, props, changed)

    def suspend(self, ctx: Context, physical_id: str) -> None:
        super().suspend(ctx, physical_id)
        self.left[physical_id] = list(STEPS["SUSPEND"])

    def snapshot(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        self.left[physical_id] = list(STEPS["SNAPSHOT"])
        return super().snapshot(ctx, physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("delete", ctx)
        if physical_id in self.cloud.things:
            self.left[physical_id] = list(STEPS["DELETE"])

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        self.told.append(ctx.step)
        if left := self.left.get(physical_id):
            self.cloud.call("observe", ctx)
            return Observation(exists=True, retry_after=1.0, step=left[0])
        if ctx.action == "DELETE" and physical_id in self.left:
            self.cloud.things.pop(physical_id, None)
        return super().observe(ctx, physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        self.cloud.call(step, ctx)
        self.seen.append((step, ctx.action, props.get("value")))
        left = self.left[physical_id]
        if left[:1] == [step]:
            left.pop(0)
        if f"{step}ed" in self.cloud.on:
            self.cloud.on[f"{step}ed"](ctx)
        return Created(physical_id, {"started": True}) if step == "start" else None


def stepped(**properties: Any) -> dict[str, Any]:
    return {"type": "Cloud::Stepped", "properties": properties}
