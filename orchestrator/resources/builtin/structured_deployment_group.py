"""OS::Heat::StructuredDeploymentGroup: a data structure on several servers (docs/internals/resource-types.md
§A9).
"""

from __future__ import annotations

from orchestrator.resources.builtin.software_deployment_group import SoftwareDeploymentGroup
from orchestrator.resources.builtin.structured_deployment import StructuredDeployment


class StructuredDeploymentGroup(SoftwareDeploymentGroup):
    """A structured deployment of the same config on each of several machines."""

    name = "OS::Heat::StructuredDeploymentGroup"
    member = StructuredDeployment
    properties = {
        **SoftwareDeploymentGroup.properties,
        **{name: StructuredDeployment.properties[name] for name in ("input_key", "input_values_validate")},
    }


class StructuredDeployments(StructuredDeploymentGroup):
    """The old name of OS::Heat::StructuredDeploymentGroup."""

    name = "OS::Heat::StructuredDeployments"
    hidden = True
    support_status = "HIDDEN"
    support_version = "7.0.0"
