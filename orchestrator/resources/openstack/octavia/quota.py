"""OS::Octavia::Quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.load_balancing import QUOTA_SETS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.project_quotas import ProjectQuotas, quota_properties

QUOTAS: Final = {
    "healthmonitor": "health monitors",
    "listener": "listeners",
    "loadbalancer": "load balancers",
    "pool": "pools",
    "member": "members of pools",
}


class Quota(ProjectQuotas):
    """Quotas of a project for load balancers. Requires the role of an administrator."""

    name = "OS::Octavia::Quota"
    support_version = "14.0.0"
    service = "octavia"
    endpoint_type = "load-balancer"
    collection = QUOTA_SETS
    quotas: ClassVar[Mapping[str, str]] = QUOTAS
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)
