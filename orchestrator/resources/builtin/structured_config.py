"""OS::Heat::StructuredConfig: a config that is a data structure (docs/internals/resource-types.md §A9)."""

from __future__ import annotations

from orchestrator.resources.base import Property
from orchestrator.resources.builtin.software_config import SoftwareConfig


class StructuredConfig(SoftwareConfig):
    """As OS::Heat::SoftwareConfig, for tools that take JSON or YAML."""

    name = "OS::Heat::StructuredConfig"
    properties = {**SoftwareConfig.properties, "config": Property("map", "The data structure.")}
