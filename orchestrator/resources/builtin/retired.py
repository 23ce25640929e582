"""Types whose service is no more: placeholders, so that stacks that have one can be deleted (spec A11).

As in Heat, one that is made is nothing, accepts any property and has every attribute as null. They are
hidden: no list tells of them, and a template that has one is warned of it.
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
NAMES: Final = tuple(f"{space}::{word}" for space, words in _GROUPS.items() for word in words.split())


class Retired(NoneResource):
    """Stands for what nobody can make any more."""

    hidden = True
    support_status = "HIDDEN"


def attribute(name: str) -> str:
    """Return what the class of a type is called here: ``OS::Senlin::Node`` is ``OS_Senlin_Node``."""
    return name.replace("::", "_")


globals().update(
    {
        attribute(name): type(attribute(name), (Retired,), {"name": name, "__doc__": Retired.__doc__})
        for name in NAMES
    }
)
