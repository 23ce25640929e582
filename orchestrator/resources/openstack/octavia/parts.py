"""Load balancers and their parts: listeners, pools, members, health monitors, policies and rules.

They are built asynchronously. Their tags contain the request token, so that the object of a create request
without an answer is found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Observation, Value
from orchestrator.resources.openstack.octavia.base import OctaviaType, load_balancing
from orchestrator.resources.openstack.request_tags import changed_tags, own_tags, tags, token_tag

POLL_SECONDS: Final = 2.0
BROKEN: Final = 'Went to status ERROR due to "Unknown"'


class LoadBalancerPart(OctaviaType):
    """An object with a provisioning status and tags."""

    support_version = "10.0.0"
    unordered: ClassVar[frozenset[str]] = frozenset()  # lists whose order has no meaning

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the ids of the objects with this token."""
        parent, tag = self.parent(ctx.properties), token_tag(token)
        found = load_balancing(ctx).search(self.collection, parent=parent, tags=tag)
        return [str(item["id"]) for item in found if tag in (item.get("tags") or ())]

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal: the order of some lists has no meaning."""
        if name in self.unordered:
            return sorted(before or ()) == sorted(after or ())
        return bool(before == after)

    def shown(self, actual: JsonMapping) -> JsonObject:
        """Return an object without its token."""
        return {**actual, "tags": own_tags(actual)}

    def from_api(self, name: str, actual: JsonMapping) -> Value:
        """Return the value of a property from an object."""
        return own_tags(actual) if name == "tags" else super().from_api(name, actual)

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request, with the token."""
        return {**super().new_values(ctx, props), "tags": tags(ctx.token, props.get("tags"))}

    def changed_values(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> JsonObject:
        """Return the attributes of an update request; the token stays."""
        values = super().changed_values(ctx, physical_id, props, changed)
        if "tags" in changed:
            actual = load_balancing(ctx).find(self.collection, physical_id, parent=self.parent(props)) or {}
            values["tags"] = changed_tags(actual, props.get("tags"))
        return values

    def read(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return the object for an observation; a deleted object may be shown for a while."""
        actual = super().read(ctx, physical_id)
        return None if actual is None or actual.get("provisioning_status") == "DELETED" else actual

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Return the observation of an existing object: ready when it is active."""
        seen, status = super().observation(ctx, actual), str(actual.get("provisioning_status"))
        if status == "ERROR":
            return replace(seen, error=BROKEN, replaceable=True)
        if status == "ACTIVE" and ctx.action != "DELETE":
            return seen
        return replace(seen, ready=False, retry_after=POLL_SECONDS, reason=f"its status is {status}")
