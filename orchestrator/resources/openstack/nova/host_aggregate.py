"""OS::Nova::HostAggregate.

The name is unique in nova: `find` recognizes the aggregate of a lost create by its name and age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from orchestrator.clients.openstack.compute import AGGREGATES
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, Property, Unique, Value
from orchestrator.resources.openstack.collection_type import CollectionType, Field
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.settings import as_texts, both_blank_or_equal, same_texts
from orchestrator.schema.constraints import Custom


def _without_zone(stored: Mapping[str, Value] | None) -> JsonObject:
    """Return metadata without the availability zone, which nova stores among them."""
    return {key: value for key, value in (stored or {}).items() if key != "availability_zone"}


class HostAggregate(CollectionType):
    """A group of compute hosts with metadata, or an availability zone. Requires an administrator."""

    name = "OS::Nova::HostAggregate"
    support_version = "6.0.0"
    service = "nova"
    endpoint_type = "compute"
    collection = AGGREGATES
    mark = EqualValues((), ("name",), is_new=True)
    reports_unset = True
    omits_null = True
    fields = {
        "availability_zone": Field(equal=both_blank_or_equal),
        "hosts": Field(
            from_api=lambda hosts: sorted(hosts or ()),
            equal=lambda before, after: set(before or ()) == set(after or ()),
            sent=False,
        ),
        "metadata": Field(from_api=_without_zone, equal=same_texts, sent=False),
    }
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

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request; a zone cannot be removed."""
        values = super().request_values(ctx, props, names)
        return {name: value for name, value in values.items() if value}

    def next_step(self, ctx: Context, actual: JsonMapping) -> str:
        """Set the hosts and the metadata in a further step."""
        if ctx.action not in ("CREATE", "UPDATE"):
            return ""
        given = {"hosts": ctx.properties.get("hosts"), "metadata": ctx.properties.get("metadata")}
        equal = all(self.equal(name, value, self.from_api(name, actual)) for name, value in given.items())
        return "" if equal else "configure"

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the hosts and the metadata."""
        nova, aggregate = self.api(ctx), self.api(ctx).find(AGGREGATES, physical_id) or {}
        actual, wanted = _without_zone(aggregate.get("metadata")), as_texts(props.get("metadata"))
        removed: JsonObject = dict.fromkeys(actual.keys() - wanted.keys())
        if actual != wanted:
            arguments = {"metadata": {**removed, **wanted}}
            nova.request_action(AGGREGATES, physical_id, "set_metadata", arguments)
        hosts, wanted_hosts = set(aggregate.get("hosts") or ()), set(props.get("hosts") or ())
        for host in sorted(hosts - wanted_hosts):
            nova.request_action(AGGREGATES, physical_id, "remove_host", {"host": host})
        for host in sorted(wanted_hosts - hosts):
            nova.request_action(AGGREGATES, physical_id, "add_host", {"host": host})
        return None

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Remove the hosts, then delete the aggregate: nova keeps an aggregate with hosts."""
        nova, aggregate = self.api(ctx), self.api(ctx).find(AGGREGATES, physical_id)
        if aggregate is None:
            return None
        for host in aggregate.get("hosts") or ():
            nova.request_action(AGGREGATES, physical_id, "remove_host", {"host": host})
        return super().delete(ctx, physical_id)
