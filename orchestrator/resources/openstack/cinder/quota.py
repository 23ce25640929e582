"""OS::Cinder::Quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.clients.openstack.block_storage import QUOTA_SETS
from orchestrator.resources.base import Property
from orchestrator.resources.openstack.project_quotas import ProjectQuotas, quota_properties

QUOTAS: Final = {
    "backup_gigabytes": "GiB of backups",
    "backups": "backups",
    "gigabytes": "GiB of volumes and snapshots",
    "snapshots": "snapshots",
    "volumes": "volumes",
}


class Quota(ProjectQuotas):
    """Quotas of a project for volumes. Requires the role of an administrator."""

    name = "OS::Cinder::Quota"
    support_version = "7.0.0"
    service = "cinder"
    endpoint_type = "volumev3"
    collection = QUOTA_SETS
    quotas: ClassVar[Mapping[str, str]] = QUOTAS
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)
