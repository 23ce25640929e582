"""OS::Heat::TestResource: waits, fails and is replaced on demand (docs/internals/resource-types.md §A1).

Durations are compared with `ctx.elapsed_seconds`: waiting occupies a row, not a worker.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.resources.base import (
    Attribute,
    Change,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
    wait,
)
from orchestrator.schema.constraints import Custom


def _number(doc: str) -> Property:
    return Property("number", doc, default=0, update_allowed=True)


class TestResource(ResourceType):
    """Stores a value; waits, fails or requires replacement as its properties specify."""

    __test__ = False  # not a pytest class

    name = "OS::Heat::TestResource"
    calls_out = False
    can_check = True  # a check verifies that it was created
    support_version = "5.0.0"
    properties = {
        "value": Property("string", "The value to store.", default="test_string", update_allowed=True),
        "fail": Property("boolean", "Whether the creation fails.", default=False, update_allowed=True),
        "update_replace": Property(
            "boolean", "Whether a new value replaces the resource.", default=False, update_allowed=True
        ),
        "update_replace_value": Property("string", "Another value here replaces the resource."),
        "wait_secs": _number("Seconds that a creation takes; -1 means forever."),
        "action_wait_secs": Property(
            "map",
            "Seconds that each action takes; for a creation it overrides wait_secs.",
            update_allowed=True,
            schema={
                "create": Property("number", "Seconds that a creation takes."),
                "update": Property("number", "Seconds that an update takes."),
                "delete": Property("number", "Seconds that a deletion takes."),
            },
        ),
        "attr_wait_secs": _number(
            "Seconds that reading attributes takes; added to every action except deletion."
        ),
        # Heat requests this while it waits and ignores the result; here nothing is requested.
        "client_name": Property(
            "string", "A client to query while waiting; without effect.", default="", update_allowed=True
        ),
        "entity_name": Property(
            "string", "The object to query; without effect.", default="", update_allowed=True
        ),
        "constraint_prop_secs": Property(
            "number",
            "Seconds that validation takes; added to every action except deletion.",
            default=0,
            update_allowed=True,
            constraints=(Custom("test_constr"),),
        ),
    }
    attributes = {"output": Attribute("The stored value.", type="string")}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Store the value and note how long to take."""
        seconds = _chosen(props, "create")
        value = None if props["fail"] else props["value"]
        return Created(ctx.physical_name, {"value": value, "seconds": _with_extras(props, seconds)})

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the resource exists only as our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Ready when the wait is over, unless it is to fail."""
        if ctx.action == "DELETE":
            return wait(ctx, _chosen(ctx.properties, "delete")) or Observation(exists=False)
        if not physical_id:
            return Observation(exists=False)
        if ctx.action in ("CREATE", "UPDATE"):
            waiting = wait(ctx, ctx.data.get("seconds", 0))
            if waiting is not None:
                return waiting
            if ctx.properties.get("fail"):
                return Observation(
                    exists=True, error=f"Test Resource failed {ctx.name}", error_kind="ValueError"
                )
        return Observation(exists=True, attributes={"output": ctx.data.get("value")})

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Replace the resource if the new properties require replacement for a new value."""
        if "value" in changed and after.get("update_replace"):
            return "replace"
        return super().change(before, after, changed)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Store the new value, unless it is to fail; only a new value takes time."""
        value = ctx.data.get("value") if props["fail"] else props["value"]
        seconds = _with_extras(props, _chosen(props, "update")) if "value" in changed else 0
        return Created(physical_id, {"value": value, "seconds": seconds})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete; `observe` waits as long as specified."""


def _chosen(props: Mapping[str, Value], action: str) -> float:
    """Return seconds to take for `action`; negative is for ever."""
    seconds = (props.get("action_wait_secs") or {}).get(action)
    if seconds is None:
        seconds = props.get("wait_secs", 0) if action == "create" else 0
    return float(seconds)


def _with_extras(props: Mapping[str, Value], seconds: float) -> float:
    return seconds if seconds < 0 else seconds + props["attr_wait_secs"] + props["constraint_prop_secs"]
