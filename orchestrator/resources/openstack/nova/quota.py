"""OS::Nova::Quota (docs/internals/resource-types.md §C 19).

A project has one set of quotas: the physical id is the project, and `find` compares the quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.schema.constraints import Custom, Range
from orchestrator.schema.translation import Resolve, Rule

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
UNSPECIFIED: Final = "At least one of the following properties must be specified: "


def quota_properties(quotas: Mapping[str, str]) -> Mapping[str, Property]:
    """Return the properties of a type for quotas; -1 is no limit."""
    return {
        "project": Property(
            "string",
            "Name or id of the project.",
            required=True,
            constraints=(Custom("keystone.project"),),
        ),
        **{
            name: Property(
                "integer",
                f"Largest number of {text}; -1: no limit.",
                update_allowed=True,
                constraints=(Range(min=-1),),
            )
            for name, text in quotas.items()
        },
    }


def unspecified(properties: Mapping[str, Value], quotas: Mapping[str, str]) -> Sequence[Fault]:
    """Report properties without a quota."""
    if any(properties.get(name) is not None for name in quotas):
        return ()
    return (Fault(f"{UNSPECIFIED}{', '.join(sorted(quotas))}.", alone=True),)


def given_quotas(props: Mapping[str, Value], quotas: Mapping[str, str]) -> JsonObject:
    """Return the quotas that the properties set."""
    return {name: props[name] for name in quotas if props.get(name) is not None}


class Quota(NovaType):
    """Quotas of a project for compute. Requires the role of an administrator."""

    name = "OS::Nova::Quota"
    support_version = "8.0.0"
    properties: ClassVar[Mapping[str, Property]] = quota_properties(QUOTAS)
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("project",), "keystone.project"),)

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, Value]
    ) -> Sequence[Fault]:
        """Require a quota."""
        return unspecified(resources[name].body.get("properties") or {}, QUOTAS)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Set the quotas."""
        compute(ctx).set_quotas(props["project"], given_quotas(props, QUOTAS))
        return Created(props["project"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the project if it has the quotas."""
        project, wanted = ctx.properties["project"], given_quotas(ctx.properties, QUOTAS)
        actual = compute(ctx).quotas(project)
        return project if all(actual.get(name) == value for name, value in wanted.items()) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the quotas; after a delete they are the defaults."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        actual = compute(ctx).quotas(physical_id)
        return Observation(exists=True, properties={name: actual[name] for name in QUOTAS if name in actual})

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Set the quotas; a quota that is no longer given keeps its value."""
        return self.create(ctx, {**props, "project": physical_id})

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Return the project to the default quotas."""
        compute(ctx).reset_quotas(physical_id)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the quotas."""
        return compute(ctx).quotas(physical_id)
