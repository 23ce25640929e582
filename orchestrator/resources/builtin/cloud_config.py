"""OS::Heat::CloudConfig: a config for cloud-init (docs/internals/resource-types.md §A9)."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.builtin.software_config import SoftwareConfig
from orchestrator.resources.software_api import ConfigDraft


class CloudConfig(SoftwareConfig):
    """A data structure that becomes the YAML cloud-init reads."""

    name = "OS::Heat::CloudConfig"
    properties = {"cloud_config": Property("map", "The data structure.")}

    def draft(self, ctx: Context, props: Mapping[str, Value]) -> ConfigDraft:
        """Return the config: YAML with the header line that cloud-init expects."""
        text = yaml.safe_dump(props.get("cloud_config") or {}, default_flow_style=False, allow_unicode=True)
        return ConfigDraft(name=ctx.physical_name, config=f"#cloud-config\n{text}")
