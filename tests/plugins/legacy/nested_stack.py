"""AWS::CloudFormation::Stack: a stack inside a stack, its template named by an address
(docs/internals/resource-types.md §A7).

The text is among the files of the stack around it under that very address: the client sent it, or it was
fetched when the stack was accepted. A worker fetches nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.nested import (
    Bring,
    ChildTemplate,
    ChildView,
    Named,
    NestedStep,
    NestedType,
    Settled,
)

OUTPUTS: Final = "Outputs."  # begins every attribute


class CloudFormationStack(NestedType):
    """A stack of its own, made from the template at an address."""

    name = "AWS::CloudFormation::Stack"
    properties = {
        "TemplateURL": Property(
            "string",
            "The address of the template to make the stack from.",
            required=True,
            update_allowed=True,
        ),
        "TimeoutInMinutes": Property(
            "integer", "How long making or changing the stack may take.", update_allowed=True
        ),
        "Parameters": Property("map", "Values for the parameters of the template.", update_allowed=True),
    }

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Set the template of the child, once.

        Raises:
            ProviderError: the address was unknown when the stack was accepted, so it was not fetched.
        """
        if turn:
            return Settled()
        url = props["TemplateURL"]
        text = child.file(url)
        if text is None:
            why = "it is not among the files, and was not known when the stack was accepted"
            raise ProviderError(f"Could not fetch remote template '{url}': {why}", kind="ValueError")
        environment = child.environment(props.get("Parameters") or {})
        return Bring(ChildTemplate(url, text, environment, timeout_mins=props.get("TimeoutInMinutes")))

    def template_of(self, props: Mapping[str, Value]) -> Named | None:
        """Return the address and the parameters, as far as known."""
        url = props.get("TemplateURL")
        return Named(url, props.get("Parameters") or {}, "TemplateURL", "Parameters") if url else None

    def has_attribute(self, name: str) -> bool:
        """Return whether the name may be an output: the outputs are known once the stack exists."""
        return super().has_attribute(name) or (name.startswith(OUTPUTS) and name != OUTPUTS)

    def child_attributes(self, ctx: Context, child: ChildView, asked: Collection[str]) -> Mapping[str, Value]:
        """Return the outputs, each as ``Outputs.<name>``."""
        found = {f"{OUTPUTS}{name}": value for name, value in child.outputs().items()}
        return {name: found[name] for name in asked if name in found}
