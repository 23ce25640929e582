"""OS::Heat::SoftwareConfig: a script with a schema of its inputs and outputs
(docs/internals/resource-types.md §A9).
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.builtin.software_io import INPUTS, OUTPUTS, read_inputs, read_outputs
from orchestrator.resources.software_api import UNGROUPED, ConfigDraft, id_of


class SoftwareConfig(ResourceType):
    """An immutable config: every change creates a new config."""

    name = "OS::Heat::SoftwareConfig"
    can_check = False  # a config cannot fail
    support_version = "2014.1"
    flight_seconds = 0.0  # created in our own database
    properties = {
        "group": Property(
            "string", "The tool on the server that runs the config, by convention.", default=UNGROUPED
        ),
        "config": Property("string", "The script or manifest."),
        "options": Property("map", "Options for the tool."),
        "inputs": INPUTS,
        "outputs": OUTPUTS,
    }
    attributes = {"config": Attribute("The config itself.", type="string")}

    def draft(self, ctx: Context, props: Mapping[str, Value]) -> ConfigDraft:
        """Return the config to create."""
        return ConfigDraft(
            name=ctx.physical_name,
            group=props.get("group"),
            config=props.get("config"),
            inputs=read_inputs(props.get("inputs") or ())[0],
            outputs=read_outputs(props.get("outputs") or ())[0],
            options=props.get("options"),
        )

    def shown(self, config: Value) -> Mapping[str, Value]:
        """Return the attributes of a config."""
        return {"config": config}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the config; every attempt uses the same id."""
        config_id = id_of(ctx.token)
        ctx.software.add_config(config_id, self.draft(ctx, props), secret=ctx.secret)
        return Created(config_id)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the id that a try with this token gave it."""
        config = ctx.software.config(id_of(token))
        return None if config is None else config.id

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read it."""
        config = ctx.software.config(physical_id)
        if config is None:
            return Observation(exists=False)
        return Observation(exists=True, attributes=self.shown(config.draft.config))

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Remove it."""
        ctx.software.remove_config(physical_id)
