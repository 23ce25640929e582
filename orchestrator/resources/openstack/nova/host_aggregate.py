"""OS::Nova::HostAggregate.

The name is unique in nova: `find` recognizes the aggregate of a lost create by its name and age.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.creation_times import is_created_by
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.resources.openstack.settings import as_texts, equal_settings
from orchestrator.schema.constraints import Custom


class HostAggregate(NovaType):
    """A group of compute hosts with metadata, or an availability zone. Requires an administrator."""

    name = "OS::Nova::HostAggregate"
    support_version = "6.0.0"
    unique = Unique((("name",),), "rename", searched=True)
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the aggregate.", required=True, update_allowed=True),
        "availability_zone": Property("string", "The availability zone.", update_allowed=True),
        "hosts": Property(
            "list",
            "Names of the hosts.",
            update_allowed=True,
            schema=Property("string", "A host.", constraints=(Custom("nova.host"),)),
        ),
        "metadata": Property("map", "Metadata of the aggregate.", update_allowed=True, default={}),
    }

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the aggregate; hosts and metadata are a further step."""
        aggregate = compute(ctx).aggregates.create(props["name"], props.get("availability_zone"))
        return Created(str(aggregate["id"]))

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the aggregate with the name if it is not older than the operation."""
        for aggregate in compute(ctx).aggregates.listed():
            if aggregate["name"] == ctx.properties["name"] and is_created_by(
                ctx, aggregate.get("created_at")
            ):
                return str(aggregate["id"])
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the aggregate, and compare its hosts and metadata."""
        aggregate = self.raw(ctx, physical_id)
        if aggregate is None or ctx.action == "DELETE":
            return Observation(exists=aggregate is not None, ready=False)
        actual = {
            "name": aggregate["name"],
            "availability_zone": aggregate.get("availability_zone"),
            "hosts": sorted(aggregate.get("hosts") or ()),
            "metadata": _metadata(aggregate),
        }
        changing = ctx.action in ("CREATE", "UPDATE")
        step = "configure" if changing and _differs(actual, ctx.properties) else ""
        return Observation(exists=True, ready=not step, step=step, properties=actual)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the name and the zone; hosts and metadata are a further step."""
        values: JsonObject = {}
        if "name" in changed:
            values["name"] = props["name"]
        if "availability_zone" in changed and props.get("availability_zone"):
            values["availability_zone"] = props["availability_zone"]
        if values:
            compute(ctx).aggregates.update(physical_id, values)
        return Created(physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the hosts and the metadata."""
        aggregates, aggregate = compute(ctx).aggregates, self.raw(ctx, physical_id) or {}
        actual, wanted = _metadata(aggregate), as_texts(props.get("metadata"))
        removed: JsonObject = dict.fromkeys(actual.keys() - wanted.keys())
        if actual != wanted:
            aggregates.set_metadata(physical_id, {**removed, **wanted})
        hosts, wanted_hosts = set(aggregate.get("hosts") or ()), set(props.get("hosts") or ())
        for host in sorted(hosts - wanted_hosts):
            aggregates.remove_host(physical_id, host)
        for host in sorted(wanted_hosts - hosts):
            aggregates.add_host(physical_id, host)
        return None

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return equal_settings(name, before, after, members="hosts", texts="metadata")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Remove the hosts, then delete the aggregate: nova keeps an aggregate with hosts."""
        aggregates, aggregate = compute(ctx).aggregates, self.raw(ctx, physical_id)
        if aggregate is None:
            return
        for host in aggregate.get("hosts") or ():
            aggregates.remove_host(physical_id, host)
        aggregates.delete(physical_id)

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        """Change the name of the aggregate."""
        with suppress(ProviderNotFound):
            compute(ctx).aggregates.update(physical_id, {"name": name})

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the aggregate."""
        return compute(ctx).aggregates.get(physical_id)


def _metadata(aggregate: Mapping[str, Value]) -> JsonObject:
    """Return the metadata without the availability zone, which nova stores among them."""
    stored = aggregate.get("metadata") or {}
    return {key: value for key, value in stored.items() if key != "availability_zone"}


def _differs(actual: Mapping[str, Value], props: Mapping[str, Value]) -> bool:
    hosts = sorted(set(props.get("hosts") or ()))
    return bool(actual["hosts"] != hosts or actual["metadata"] != as_texts(props.get("metadata")))
