"""OS::Neutron::ExtraRouteSet: static routes of a router.

The physical id is the router's. Neutron adds and removes routes atomically, so that several stacks may
have routes on a router, as long as the routes differ. The routes are stored before they are added, so that a
delete removes exactly these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import ROUTERS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.neutron.base import POLL_SECONDS, network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.neutron.routers.route_entries import route_list, route_set
from orchestrator.resources.openstack.written_values import with_router, written
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

EXHAUSTED: Final = "exceeds the maximum"  # in the message about too many routes
APPLY: Final = "apply"
_ROUTE: Final = Property(
    "map",
    "A route.",
    schema={
        "destination": Property(
            "string", "Destination network.", required=True, constraints=(Custom("net_cidr"),)
        ),
        "nexthop": Property("string", "Next hop.", required=True, constraints=(Custom("ip_addr"),)),
    },
)


class ExtraRouteSet(NeutronRelation):
    """Static routes of a router."""

    name = "OS::Neutron::ExtraRouteSet"
    support_version = "14.0.0"
    properties = {
        "router": Property(
            "string", "Name or id of the router.", required=True, constraints=(Custom("neutron.router"),)
        ),
        "routes": Property("list", "Routes.", default=[], update_allowed=True, schema=_ROUTE),
    }
    translation = (Resolve(("router",), "neutron.router"),)

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Next hops are reached by the interfaces of the router."""
        return with_router(written(definition, "router"), resources, "OS::Neutron::RouterInterface")

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Compare routes without regard to their order."""
        if name == "routes" and isinstance(before, list) and isinstance(after, list):
            return route_set(before) == route_set(after)
        return super().equal(name, before, after)

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the id of the router."""
        return str(props["router"])

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Store the routes; they are added in a step.

        Raises:
            ProviderError: the router has some of them already.
        """
        wanted = route_set(props.get("routes") or ())
        self._refuse_existing(ctx, props["router"], wanted)
        return Created(self.physical_id(props), {"routes": route_list(wanted), "pending": bool(wanted)})

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the create itself changes nothing."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the routes, and name the step that adds and removes them."""
        if ctx.action in ("CREATE", "UPDATE") and ctx.data.get("pending"):
            return Observation(exists=True, step=APPLY, retry_after=POLL_SECONDS)
        return super().observe(ctx, physical_id)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Store the routes, and those that are no longer wanted; they are added and removed in a step."""
        wanted = route_set(props.get("routes") or ())
        stale = _stored(ctx) - wanted
        data = {"routes": route_list(wanted), "stale": route_list(stale), "pending": True}
        return Created(physical_id, data)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Add the missing routes, then remove those that are no longer wanted; if the router can have no more
        routes, in the other order.
        """
        neutron, routes, stale = network(ctx), ctx.data.get("routes") or [], ctx.data.get("stale") or []
        with temporary_conflicts():
            try:
                if routes:
                    neutron.add_extra_routes(physical_id, routes)
            except ProviderError as error:
                if EXHAUSTED not in str(error) or not stale:
                    raise
                neutron.remove_extra_routes(physical_id, stale)
                neutron.add_extra_routes(physical_id, routes)
            else:
                if stale:
                    neutron.remove_extra_routes(physical_id, stale)
        return Created(physical_id, {"routes": routes})

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Remove the routes."""
        routes = _stored(ctx)
        if routes:
            network(ctx).remove_extra_routes(physical_id, route_list(routes))

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return the routes of this set that the router has; for a delete, None without any of them."""
        router = network(ctx).find(ROUTERS, physical_id)
        if router is None:
            return None
        existing = route_set(router.get("routes") or ())
        if ctx.action == "DELETE":
            return {} if _stored(ctx) & existing else None
        wanted = route_set(ctx.properties.get("routes") or ())
        current = wanted & existing
        if wanted and not current:
            return None
        return {"routes": route_list(current)}

    def _refuse_existing(self, ctx: Context, router_id: str, routes: set[tuple[str, str]]) -> None:
        router = network(ctx).find(ROUTERS, router_id) or {}
        existing = sorted(routes & route_set(router.get("routes") or ()))
        if existing:
            destination, nexthop = existing[0]
            name = f"{router_id},{destination}={nexthop}"
            raise ProviderError(f"The physical resource for ({name}) exists.", "PhysicalResourceExists")


def _stored(ctx: Context) -> set[tuple[str, str]]:
    """Return the routes that the resource has added, or is adding."""
    if "routes" not in ctx.data:  # of a resource whose create had no answer, in earlier versions
        return route_set(ctx.properties.get("routes") or ())
    return route_set((*(ctx.data["routes"] or ()), *(ctx.data.get("stale") or ())))
