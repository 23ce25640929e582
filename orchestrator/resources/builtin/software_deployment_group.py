"""OS::Heat::SoftwareDeploymentGroup: a config on several servers (docs/internals/resource-types.md §A9).

The child has a deployment per server, named by the key in `servers`. The definitions of the members are
parameters of the child, so that functions in their values are not evaluated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

import orjson

from orchestrator.resources.base import Attribute, Context, Fault, Property, Value
from orchestrator.resources.builtin import software_io as io
from orchestrator.resources.builtin.software_deployment import SoftwareDeployment
from orchestrator.resources.nested_type import (
    ChildTemplate,
    ChildView,
    Member,
    NestedStep,
    NestedType,
    Pause,
    SetChild,
    Settled,
)
from orchestrator.schema.constraints import Range
from orchestrator.template.environment import Environment

# Keys of stored data: size and pause of the batches, the due pause, the definitions of the members.
BATCH, PAUSE, TABLE, DEFINITIONS = "batch", "pause", "members", "definitions"
MAX_LISTED: Final = 100  # up to this number of members, attributes are always stored
VERSION: Final = "2021-04-16"

Table = Mapping[str, Sequence[Any]]  # by name: the digest of the definition, and the server

_BATCHES: Final = {
    "max_batch_size": Property(
        "integer", "Maximum number of deployments per batch.", default=1, constraints=(Range(min=1),)
    ),
    "pause_time": Property(
        "number", "Seconds to wait between batches.", default=0, constraints=(Range(min=0),)
    ),
}


class SoftwareDeploymentGroup(NestedType):
    """A deployment of the same config on each of several machines."""

    name = "OS::Heat::SoftwareDeploymentGroup"
    support_version = "5.0.0"
    member: ClassVar[type[SoftwareDeployment]] = SoftwareDeployment
    properties = {
        "servers": Property(
            "map",
            "Target servers by name; the names are those of the deployments.",
            required=True,
            update_allowed=True,
        ),
        **{name: prop for name, prop in SoftwareDeployment.properties.items() if name != "server"},
    }
    update_policy = {
        "rolling_update": Property("map", "Batches for updating deployments.", schema=_BATCHES),
        "batch_create": Property("map", "Batches for creating a new group.", schema=_BATCHES),
    }
    attributes = {
        "deploy_stdouts": Attribute("Captured standard output, by deployment.", "map"),
        "deploy_stderrs": Attribute("Captured standard error, by deployment.", "map"),
        "deploy_status_codes": Attribute("Status code, by deployment.", "map"),
    }

    def has_attribute(self, name: str) -> bool:
        """Return whether `get_attr` may request `name`; the group has every attribute of a deployment."""
        return bool(name)

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Require valid member names; validate the rest like a deployment."""
        faults = list(self.member().validate(properties, stack_timeout_seconds))
        for name, server in (properties.get("servers") or {}).items():
            if not name or "/" in name:
                faults.append(Fault(f'"{name}" cannot be the name of a deployment', "servers"))
            elif not isinstance(server, str):
                faults.append(Fault(f'The server of "{name}" must be a string', "servers"))
        return faults

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the desired deployments to the child, in batches if a policy requires it.

        The stored data hold the last definition of each member and the state of the batches.
        """
        data = dict(ctx.data)
        if turn and data.get(PAUSE):
            return Pause(float(data.pop(PAUSE)), data)
        definition = self._definition(props)
        digest = _digest(definition)
        desired: Table = {name: [digest, server] for name, server in props["servers"].items()}
        before: Table = data.get(TABLE, {}) if child.template is not None else {}
        if not turn:
            policy = ctx.update_policy.get("rolling_update" if before else "batch_create")
            data[BATCH] = [policy["max_batch_size"], policy["pause_time"]] if policy else None
        elif before == desired:
            return Settled({TABLE: desired, DEFINITIONS: data[DEFINITIONS]})
        after = _next(before, desired, data[BATCH][0]) if data.get(BATCH) else desired
        used = {digest_ for digest_, _ in after.values()} | {digest}
        definitions = {**data.get(DEFINITIONS, {}), digest: definition}
        data[TABLE], data[DEFINITIONS] = after, {digest_: definitions[digest_] for digest_ in sorted(used)}
        data[PAUSE] = data[BATCH][1] if data.get(BATCH) and after != desired else 0
        return SetChild(self._child(after, data[DEFINITIONS], hidden=ctx.secret), data)

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return the child's id."""
        return child.uuid

    def child_attributes(
        self, ctx: Context, child: ChildView, requested: Collection[str]
    ) -> Mapping[str, Value]:
        """Return the requested attributes by member name; for a small group always include the common
        attributes.
        """
        names = set(requested) - {"show", "*"}
        if "*" in requested or len(ctx.data.get(TABLE) or ()) <= MAX_LISTED:
            names |= self.attributes.keys()
        members: Sequence[Member] = child.members() if names else ()
        return {
            name: {
                member.name: member.attributes.get(DEPLOYMENT_ATTRIBUTES.get(name, name))
                for member in members
            }
            for name in sorted(names)
        }

    def _definition(self, props: Mapping[str, Value]) -> dict[str, Value]:
        """Return the properties that all members have."""
        return {
            name: props[name] for name in self.properties if name != "servers" and props.get(name) is not None
        }

    def _child(self, table: Table, definitions: Mapping[str, Value], *, hidden: bool) -> ChildTemplate:
        """Return a child with these members; members with equal definitions share a parameter."""
        resources = {}
        for name, (digest, server) in table.items():
            inputs = {
                input_name: {"get_param": [_parameter(digest), input_name]}
                for input_name in definitions[digest]
            }
            resources[name] = {"type": self.member.name, "properties": {**inputs, "server": server}}
        document = {
            "heat_template_version": VERSION,
            "parameters": {_parameter(digest): {"type": "json", "hidden": hidden} for digest in definitions},
            "resources": resources,
        }
        values = {_parameter(digest): value for digest, value in definitions.items()}
        return ChildTemplate("", orjson.dumps(document).decode(), Environment(values))


def _next(before: Table, desired: Table, size: int) -> Table:
    """Return the members after the next batch; the first batch removes members that are no longer desired."""
    batch = set(islice((name for name, member in desired.items() if before.get(name) != member), size))
    return {
        name: member if name in batch else before[name]
        for name, member in desired.items()
        if name in batch or name in before
    }


def _digest(definition: Mapping[str, Value]) -> str:
    text = orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(text, digest_size=6).hexdigest()


def _parameter(digest: str) -> str:
    return f"definition_{digest}"


DEPLOYMENT_ATTRIBUTES: Final = {
    "deploy_stdouts": io.STDOUT,
    "deploy_stderrs": io.STDERR,
    "deploy_status_codes": io.STATUS_CODE,
}  # attributes of a group and of its members


class SoftwareDeployments(SoftwareDeploymentGroup):
    """The old name of OS::Heat::SoftwareDeploymentGroup."""

    name = "OS::Heat::SoftwareDeployments"
    hidden = True
    support_status = "HIDDEN"
    support_version = "7.0.0"
