"""AWS::CloudFormation::Stack: a nested stack whose template is given by a URL
(docs/internals/resource-types.md §A7).

The text is a file of the parent stack, stored under the same URL: the client sent it, or it was fetched when
the stack was accepted. A worker never fetches a template.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

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

OUTPUTS: Final = "Outputs."  # begins every attribute


class CloudFormationStack(NestedType):
    """A nested stack, created from the template at a URL."""

    name = "AWS::CloudFormation::Stack"
    properties = {
        "TemplateURL": Property(
            "string",
            "The URL of the template of the stack.",
            required=True,
            update_allowed=True,
        ),
        "TimeoutInMinutes": Property(
            "integer", "Timeout for creating or updating the stack.", update_allowed=True
        ),
        "Parameters": Property("map", "Values for the parameters of the template.", update_allowed=True),
    }

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the template to the child in one step.

        Raises:
            ProviderError: the URL was unknown when the stack was accepted, so that the template was not
                fetched.
        """
        if turn:
            return Settled()
        url = props["TemplateURL"]
        text = child.file(url)
        if text is None:
            why = "it is not among the files, and was not known when the stack was accepted"
            raise ProviderError(f"Could not fetch remote template '{url}': {why}", kind="ValueError")
        environment = child.environment(props.get("Parameters") or {})
        return SetChild(ChildTemplate(url, text, environment, timeout_mins=props.get("TimeoutInMinutes")))

    def template_of(self, props: Mapping[str, Value]) -> Named | None:
        """Return the URL and the parameters, as far as known."""
        url = props.get("TemplateURL")
        return Named(url, props.get("Parameters") or {}, "TemplateURL", "Parameters") if url else None

    def has_attribute(self, name: str) -> bool:
        """Return whether `name` can be an output; the outputs are unknown until the child exists."""
        return super().has_attribute(name) or (name.startswith(OUTPUTS) and name != OUTPUTS)

    def child_attributes(
        self, ctx: Context, child: ChildView, requested: Collection[str]
    ) -> Mapping[str, Value]:
        """Return the outputs, each as ``Outputs.<name>``."""
        outputs = {f"{OUTPUTS}{name}": value for name, value in child.outputs().items()}
        return {name: outputs[name] for name in requested if name in outputs}
