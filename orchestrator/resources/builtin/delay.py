"""OS::Heat::Delay: waits, without any other effect (docs/internals/resource-types.md §A5)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.resources.base import (
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
    wait,
)
from orchestrator.schema.constraints import AllowedValues, Range

ACTIONS: Final = ("CREATE", "DELETE", "SUSPEND", "RESUME")


class Delay(ResourceType):
    """Waits some seconds, with optional jitter, during the listed actions."""

    name = "OS::Heat::Delay"
    calls_out = False
    support_version = "11.0.0"
    preemptible = frozenset({"CREATE", "SUSPEND", "RESUME"})  # interrupting a delay is harmless
    properties = {
        "min_wait": Property(
            "number",
            "Minimum number of seconds to wait.",
            default=0,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "max_jitter": Property(
            "number",
            "Maximum number of additional seconds, chosen at random, before multiplication.",
            default=0,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "jitter_multiplier": Property(
            "number",
            "Factor for the jitter, such as the number of similar resources.",
            default=1.0,
            update_allowed=True,
            constraints=(Range(min=0),),
        ),
        "actions": Property(
            "list",
            "Actions that are delayed.",
            default=["CREATE"],
            update_allowed=True,
            constraints=(AllowedValues(ACTIONS),),
            schema=Property("string"),
        ),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """The longest wait must fit into the stack's timeout."""
        if not {"min_wait", "max_jitter", "jitter_multiplier"} <= properties.keys():
            return ()  # the value is unknown
        longest = _seconds(properties, fraction=1.0)
        if longest <= stack_timeout_seconds:
            return ()
        return (Fault(f"{self.name} maximum delay {longest:g}s exceeds stack timeout."),)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Draw the jitter once, so that every observation refers to the same end time."""
        return Created(ctx.physical_name, data={"fraction": secrets.SystemRandom().random()})

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Ready when the wait of this action is over."""
        deleting = ctx.action == "DELETE"
        seconds = 0.0
        if ctx.action in ctx.properties.get("actions", ()):
            seconds = _seconds(ctx.properties, ctx.data.get("fraction", 0.0))
        return wait(ctx, seconds) or Observation(exists=not deleting)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Take note: the next action listed waits by the new figures."""
        return Created(physical_id, data=ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete; `observe` waits if DELETE is listed."""


def _seconds(props: Mapping[str, Value], fraction: float) -> float:
    return float(props["min_wait"] + props["max_jitter"] * props["jitter_multiplier"] * fraction)
