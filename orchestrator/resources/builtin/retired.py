"""Placeholders for types whose service no longer exists, so that their stacks can be deleted
(docs/internals/resource-types.md §A11).

As in Heat, such a resource has no effect, accepts any property, and all its attributes are null. The types
are hidden: they are not listed, and a template that uses them gets a warning.
"""

from __future__ import annotations

from typing import Final

from orchestrator.resources.builtin.none import NoneResource

_GROUPS: Final = {
    "OS::Designate": "Domain Record",
    "OS::Glance": "Image",
    "OS::Heat": "HARestarter",
    "OS::Magnum": "Bay",
    "OS::Monasca": "AlarmDefinition Notification",
    "OS::Neutron": "HealthMonitor LoadBalancer Pool PoolMember",
    "OS::Neutron::LBaaS": "HealthMonitor L7Policy L7Rule Listener LoadBalancer Pool PoolMember",
    "OS::Nova": "FloatingIP FloatingIPAssociation",
    "OS::Sahara": "Cluster ClusterTemplate DataSource ImageRegistry Job JobBinary NodeGroupTemplate",
    "OS::Senlin": "Cluster Node Policy Profile Receiver",
    "OS::Vitrage": "Template",
}
NAMES: Final = tuple(
    f"{space}::{type_name}" for space, type_names in _GROUPS.items() for type_name in type_names.split()
)


class Retired(NoneResource):
    """A placeholder for a type that can no longer be created."""

    hidden = True
    support_status = "HIDDEN"


def attribute(name: str) -> str:
    """Return the class name of a type: ``OS::Senlin::Node`` is ``OS_Senlin_Node``."""
    return name.replace("::", "_")


globals().update(
    {
        attribute(name): type(attribute(name), (Retired,), {"name": name, "__doc__": Retired.__doc__})
        for name in NAMES
    }
)
