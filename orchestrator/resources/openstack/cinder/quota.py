"""OS::Cinder::Quota.

A project has one set of quotas: the physical id is the project, and `find` compares the quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.cinder.base import CinderType, block_storage
from orchestrator.resources.openstack.nova.quota import given_quotas, quota_properties, unspecified
from orchestrator.schema.translation import Resolve, Rule

QUOTAS: Final = {
    "backup_gigabytes": "GiB of backups",
    "backups": "backups",
    "gigabytes": "GiB of volumes and snapshots",
    "snapshots": "snapshots",
    "volumes": "volumes",
}


class Quota(CinderType):
    """Quotas of a project for volumes. Requires the role of an administrator."""

    name = "OS::Cinder::Quota"
    support_version = "7.0.0"
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("project",), "keystone.project"),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, Value]
    ) -> Sequence[Fault]:
        """Require a quota."""
        return unspecified(resources[name].body.get("properties") or {}, QUOTAS)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Set the quotas."""
        block_storage(ctx).set_quotas(props["project"], given_quotas(props, QUOTAS))
        return Created(props["project"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the project if it has the quotas."""
        project, wanted = ctx.properties["project"], given_quotas(ctx.properties, QUOTAS)
        actual = block_storage(ctx).quotas(project)
        return project if all(actual.get(name) == value for name, value in wanted.items()) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the quotas; after a delete they are the defaults."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        actual = block_storage(ctx).quotas(physical_id)
        return Observation(exists=True, properties={name: actual[name] for name in QUOTAS if name in actual})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Set the quotas; a quota that is no longer given keeps its value."""
        return self.create(ctx, {**props, "project": physical_id})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Return the project to the default quotas."""
        block_storage(ctx).reset_quotas(physical_id)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return cinder's view of the quotas."""
        return block_storage(ctx).quotas(physical_id)
