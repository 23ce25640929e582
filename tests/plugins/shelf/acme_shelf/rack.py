"""Acme::Rack: a nested stack of a template among the files of its stack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.nested_type import (
    ChildTemplate,
    ChildView,
    Named,
    NestedStep,
    NestedType,
    SetChild,
    Settled,
)


class Rack(NestedType):
    """A rack of boxes, built from a template."""

    name = "Acme::Rack"
    properties: ClassVar = {
        "plan": Property("string", "Name of the template.", required=True, update_allowed=True),
        "parameters": Property("map", "Parameters of the template.", update_allowed=True),
    }

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the template in one step."""
        if turn:
            return Settled()
        text = child.file(props["plan"])
        if text is None:
            raise ProviderError(f"There is no file {props['plan']}.", kind="NotFound")
        return SetChild(ChildTemplate(props["plan"], text, child.environment(props.get("parameters") or {})))

    def template_of(self, props: Mapping[str, Value]) -> Named | None:
        """Return the name of the template and its parameters, as far as known."""
        plan = props.get("plan")
        return Named(plan, props.get("parameters") or {}, "plan", "parameters") if plan else None

    def has_attribute(self, name: str) -> bool:
        """Return whether `name` can be an output; the outputs are unknown until the child exists."""
        return super().has_attribute(name) or name.startswith("Rack.")

    def child_attributes(
        self, ctx: Context, child: ChildView, requested: Collection[str]
    ) -> Mapping[str, Value]:
        """Return the outputs, each as `Rack.<name>`."""
        return {
            f"Rack.{name}": value for name, value in child.outputs().items() if f"Rack.{name}" in requested
        }
