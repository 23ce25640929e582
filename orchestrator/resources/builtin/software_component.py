"""OS::Heat::SoftwareComponent: a config per action of a software component (docs/internals/resource-types.md
§A9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.builtin.software_config import SoftwareConfig
from orchestrator.resources.software_api import COMPONENT, ConfigDraft
from orchestrator.schema.constraints import Length


class SoftwareComponent(SoftwareConfig):
    """Configs for the actions of a deployment, stored as a single config."""

    name = "OS::Heat::SoftwareComponent"
    support_version = "2014.2"
    properties = {
        "configs": Property(
            "list",
            "The configs, each with its actions.",
            required=True,
            constraints=(Length(min=1),),
            schema=Property(
                "map",
                schema={
                    "actions": Property(
                        "list",
                        "Actions of the deployment that run the config; other names are passed to the tool.",
                        default=["CREATE", "UPDATE"],
                        schema=Property("string"),
                        constraints=(Length(min=1),),
                    ),
                    "config": SoftwareConfig.properties["config"],
                    "tool": Property("string", "The tool on the server that runs the config.", required=True),
                },
            ),
        ),
        **{name: SoftwareConfig.properties[name] for name in ("inputs", "outputs", "options")},
    }
    attributes = {
        "config": Attribute("The configs as a map with the key `configs`.", type="map"),
        "configs": Attribute("The configs.", type="list"),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Allow a single config per action: the order would be ambiguous."""
        used: set[str] = set()
        for config in properties.get("configs") or ():
            actions = set(config.get("actions") or ())
            if used & actions:
                message = "Defining more than one configuration for the same action is not allowed."
                return (Fault(message, "configs"),)
            used |= actions
        return ()

    def draft(self, ctx: Context, props: Mapping[str, Value]) -> ConfigDraft:
        """Return the config: the list of configs, in the group `component`."""
        return replace(super().draft(ctx, props), group=COMPONENT, config={"configs": props["configs"]})

    def shown(self, config: Value) -> Mapping[str, Value]:
        """Return the configs."""
        configs = config.get("configs") if isinstance(config, Mapping) else None
        return {"config": {"configs": configs}, "configs": configs}
