"""Roles of users and groups, and users in groups: the links that a resource manages.

A resource stores the links that it manages, before it establishes or severs one: a later update or delete
then knows them all, and leaves links of other resources and users alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple

from orchestrator.clients.openstack.identity import Identity, RoleAssignment
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, Property, Value
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.keystone.base import KeystoneType
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve

STEP: Final = "link"
LINKS: Final = "links"  # the key of the stored data

ROLES: Final = Property(
    "list",
    "Roles to assign, each in a project or in a domain.",
    update_allowed=True,
    schema=Property(
        "map",
        "A role, with either a project or a domain.",
        schema={
            "role": Property(
                "string", "Name or id of the role.", required=True, constraints=(Custom("keystone.role"),)
            ),
            "project": Property(
                "string", "Name or id of the project.", constraints=(Custom("keystone.project"),)
            ),
            "domain": Property(
                "string", "Name or id of the domain.", constraints=(Custom("keystone.domain"),)
            ),
        },
    ),
)
ROLE_LOOKUPS: Final = (
    Resolve(("roles", "role"), "keystone.role"),
    Resolve(("roles", "project"), "keystone.project"),
    Resolve(("roles", "domain"), "keystone.domain"),
)


class Link(NamedTuple):
    """A role of a user or group in a project or domain; without a role, the membership in a group."""

    subject: str  # "user" or "group"
    subject_id: str
    role: str = ""
    project: str = ""
    domain: str = ""
    group: str = ""

    @property
    def assignment(self) -> RoleAssignment:
        """The role."""
        return RoleAssignment(self.role, self.project, self.domain)


def role_link(subject: str, subject_id: str, item: Mapping[str, Value]) -> Link:
    """Return the link of an item of the property `roles`."""
    project, domain = item.get("project") or "", item.get("domain") or ""
    return Link(subject, subject_id, item["role"], project, "" if project else domain)


def role_faults(properties: Mapping[str, Value]) -> list[Fault]:
    """Return the faults of the property `roles`, in Heat's words."""
    faults = []
    for item in properties.get("roles") or ():
        if item.get("project") and item.get("domain"):
            message = "Cannot define the following properties at the same time: project, domain."
            faults.append(Fault(message, "roles", alone=True))
        elif "role" in item and not item.get("project") and not item.get("domain"):
            message = f"Either project or domain must be specified for role {item['role']}"
            faults.append(Fault(message, "roles", alone=True))
    return faults


def recorded_links(ctx: Context) -> list[Link]:
    """Return the links that the resource has stored."""
    return [Link(*link) for link in ctx.data.get(LINKS) or ()]


def as_data(links: Iterable[Link]) -> JsonObject:
    """Return the data to store."""
    return {LINKS: [list(link) for link in dict.fromkeys(links)]}


def existing_links(identity: Identity, links: Iterable[Link]) -> set[Link]:
    """Return the links that exist."""
    wanted, found = set(links), set[Link]()
    for subject, subject_id in {(link.subject, link.subject_id) for link in wanted if link.role}:
        for one in identity.role_assignments(subject, subject_id):
            found.add(Link(subject, subject_id, one.role, one.project, one.domain))
    for user_id in {link.subject_id for link in wanted if link.group}:
        found.update(Link("user", user_id, group=group) for group in identity.group_ids(user_id))
    return found & wanted


def establish(identity: Identity, link: Link) -> None:
    """Create a link; may be repeated."""
    if link.group:
        identity.add_to_group(link.group, link.subject_id)
    else:
        identity.assign_role(link.subject, link.subject_id, link.assignment)


def sever(identity: Identity, link: Link) -> None:
    """Remove a link; may be repeated."""
    if link.group:
        identity.remove_from_group(link.group, link.subject_id)
    else:
        identity.revoke_role(link.subject, link.subject_id, link.assignment)


class LinkedType(KeystoneType):
    """An object with links, which are established after it exists."""

    subject: ClassVar[str]  # "user" or "group"

    def links(self, subject_id: str, props: Mapping[str, Value]) -> list[Link]:
        """Return the desired links of the object: memberships of a user, and roles."""
        memberships = [Link("user", subject_id, group=group) for group in props.get("groups") or ()]
        roles = [role_link(self.subject, subject_id, item) for item in props.get("roles") or ()]
        return [*memberships, *roles]

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Require a single scope for each role."""
        return role_faults(properties)

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object; its links are a later step."""
        created = super().create(ctx, props)
        return replace(created, data=as_data(self.links(created.physical_id, props)))

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object, and the links that the resource manages."""
        observation = super().observe(ctx, physical_id)
        if not observation.exists or ctx.action == "DELETE":
            return observation
        return self.with_links(ctx, physical_id, observation)

    def with_links(self, ctx: Context, subject_id: str, observation: Observation) -> Observation:
        """Return an observation that reports the links, and the step that is missing."""
        desired, recorded = self.links(subject_id, ctx.properties), recorded_links(ctx)
        if not desired and not recorded:
            return observation
        existing = existing_links(openstack(ctx).identity, [*desired, *recorded])
        values = self.link_values(ctx.properties, subject_id, existing)
        observation = replace(observation, properties={**(observation.properties or {}), **values})
        if ctx.action in ("CREATE", "UPDATE") and existing != set(desired):
            return replace(observation, ready=False, retry_after=0.0, step=STEP)
        return observation

    def link_values(self, props: Mapping[str, Value], subject_id: str, existing: set[Link]) -> dict[str, Any]:
        """Return the actual values of the properties that describe links."""
        items = {role_link(self.subject, subject_id, item): item for item in props.get("roles") or ()}
        present = [item for link, item in items.items() if link in existing]
        further = [
            {"role": link.role, **({"project": link.project} if link.project else {"domain": link.domain})}
            for link in sorted(existing)
            if link.role and link not in items
        ]
        values: dict[str, Any] = {"roles": [*present, *further]} if "roles" in props else {}
        if "groups" in props:
            actual = {link.group for link in existing if link.group}
            given = dict.fromkeys(props["groups"] or ())
            kept = [group for group in given if group in actual]
            values["groups"] = [*kept, *sorted(actual - given.keys())]
        return values

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the object; store former and future links, so that the next step can exchange them."""
        updated = super().update(ctx, physical_id, props, changed)
        links = [*self.links(updated.physical_id, props), *recorded_links(ctx)]
        return replace(updated, data=as_data(links))

    def advance(self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str) -> Created:
        """Establish the desired links, and sever the others that the resource manages."""
        identity, desired = openstack(ctx).identity, self.links(physical_id, props)
        existing = existing_links(identity, [*desired, *recorded_links(ctx)])
        for link in dict.fromkeys(desired):
            if link not in existing:
                establish(identity, link)
        for link in sorted(existing - set(desired)):
            sever(identity, link)
        return Created(physical_id, as_data(desired))
