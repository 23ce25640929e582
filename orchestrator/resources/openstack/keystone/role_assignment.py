"""OS::Keystone::UserRoleAssignment and OS::Keystone::GroupRoleAssignment.

Their physical id is the user's or group's: Keystone has no object for an assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.clients.openstack.identity import GROUPS, USERS
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.keystone.links import (
    ROLE_LOOKUPS,
    ROLES,
    LinkedType,
    as_data,
    existing_links,
    recorded_links,
    sever,
)
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve


class RoleAssignmentType(LinkedType):
    """Roles of a user or group that exists without this resource."""

    support_version = "5.0.0"
    live_show = False

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Store the assignments; they are made in a later step."""
        subject_id = props[self.subject]
        return Created(subject_id, as_data(self.links(subject_id, props)))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: `create` sends no request."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the assignments. They are absent when the user or group is."""
        links = recorded_links(ctx) or self.links(physical_id, ctx.properties)
        if ctx.action == "DELETE":
            return Observation(exists=bool(existing_links(openstack(ctx).identity, links)))
        found = self.api(ctx).find(self.collection, physical_id)
        if found is None and ctx.action != "UPDATE":  # the update may name another
            return Observation(exists=False)
        return self.with_links(ctx, physical_id, Observation(exists=True, reference_id=ctx.name))

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Store former and future assignments, so that the next step can exchange them."""
        subject_id = props[self.subject]
        updated = super().update(ctx, subject_id, props, changed)
        return replace(updated, physical_id=subject_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Revoke the roles that the resource manages."""
        identity = openstack(ctx).identity
        links = recorded_links(ctx) or self.links(physical_id, ctx.properties)
        for link in sorted(existing_links(identity, links)):
            sever(identity, link)


class UserRoleAssignment(RoleAssignmentType):
    """Roles of a user in projects and domains."""

    name = "OS::Keystone::UserRoleAssignment"
    collection = USERS
    subject = "user"
    unique = Unique((("user",),), "delete")
    translation = (Resolve(("user",), "keystone.user"), *ROLE_LOOKUPS)
    properties = {
        "user": Property(
            "string",
            "Name or id of the user.",
            required=True,
            update_allowed=True,
            constraints=(Custom("keystone.user"),),
        ),
        "roles": ROLES,
    }


class GroupRoleAssignment(RoleAssignmentType):
    """Roles of a group in projects and domains."""

    name = "OS::Keystone::GroupRoleAssignment"
    collection = GROUPS
    subject = "group"
    unique = Unique((("group",),), "delete")
    translation = (Resolve(("group",), "keystone.group"), *ROLE_LOOKUPS)
    properties = {
        "group": Property(
            "string",
            "Name or id of the group.",
            required=True,
            update_allowed=True,
            constraints=(Custom("keystone.group"),),
        ),
        "roles": ROLES,
    }
