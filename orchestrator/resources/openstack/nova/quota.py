"""OS::Nova::Quota (docs/internals/resource-types.md §C 19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.compute import QUOTA_SETS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.project_quotas import ProjectQuotas, quota_properties

QUOTAS: Final = {
    "cores": "processors",
    "fixed_ips": "fixed addresses",
    "floating_ips": "floating IPs",
    "injected_file_content_bytes": "bytes of a file in `personality`",
    "injected_file_path_bytes": "bytes of the path of a file in `personality`",
    "injected_files": "files in `personality`",
    "instances": "servers",
    "key_pairs": "key pairs of a user",
    "metadata_items": "metadata of a server",
    "ram": "MiB of memory",
    "security_group_rules": "rules of a security group",
    "security_groups": "security groups",
    "server_group_members": "members of a server group",
    "server_groups": "server groups",
}

_INJECTED: Final = {
    name: "Nova no longer accepts files in `personality`" for name in QUOTAS if name.startswith("injected_")
}


class Quota(ProjectQuotas):
    """Quotas of a project for compute. Requires the role of an administrator."""

    name = "OS::Nova::Quota"
    support_version = "8.0.0"
    service = "nova"
    endpoint_type = "compute"
    collection = QUOTA_SETS
    quotas: ClassVar[Mapping[str, str]] = QUOTAS
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS, _INJECTED)
