"""OS::Neutron::Quota: limits of a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.networking.network import QUOTA_SETS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.project_quotas import ProjectQuotas, quota_properties

QUOTAS: Final = {
    "subnet": "subnets",
    "network": "networks",
    "floatingip": "floating IPs",
    "security_group_rule": "rules of security groups",
    "security_group": "security groups",
    "router": "routers",
    "port": "ports",
    "subnetpool": "subnet pools",
    "rbac_policy": "RBAC policies",
}


class Quota(ProjectQuotas):
    """Limits of a project in Neutron. Only administrators may set them."""

    name = "OS::Neutron::Quota"
    support_version = "8.0.0"
    service = "neutron"
    endpoint_type = "network"
    live_show = False
    unique = None
    finds_by_token = False
    shares_objects = True
    undone_in_place = True
    collection = QUOTA_SETS
    quotas: ClassVar[Mapping[str, str]] = QUOTAS
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)
