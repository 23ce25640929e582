"""OS::Cinder::Quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from orchestrator.resources.base import Context, Property
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.project_quotas import ProjectQuotas, QuotaApi, quota_properties

QUOTAS: Final = {
    "backup_gigabytes": "GiB of backups",
    "backups": "backups",
    "gigabytes": "GiB of volumes and snapshots",
    "snapshots": "snapshots",
    "volumes": "volumes",
}


class Quota(ProjectQuotas, CinderType):
    """Quotas of a project for volumes. Requires the role of an administrator."""

    name = "OS::Cinder::Quota"
    support_version = "7.0.0"
    quotas: ClassVar[Mapping[str, str]] = QUOTAS
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)

    def api(self, ctx: Context) -> QuotaApi:
        """Return cinder, called with the stack's credential."""
        return block_storage(ctx)
