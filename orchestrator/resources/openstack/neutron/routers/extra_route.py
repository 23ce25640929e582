"""OS::Neutron::ExtraRoute: a static route of a router."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.clients.openstack.networking.network import ROUTERS
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.neutron.base import network
from orchestrator.resources.openstack.neutron.relation import NeutronRelation
from orchestrator.resources.openstack.neutron.routers.route_entries import route_set
from orchestrator.resources.openstack.written_values import with_router, written
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition


class ExtraRoute(NeutronRelation):
    """A static route of a router. Neutron adds and removes it without regard to other routes."""

    name = "OS::Neutron::ExtraRoute"
    support_status = "UNSUPPORTED"
    support_message = "Use this resource at your own risk."
    properties = {
        "router_id": Property(
            "string", "Name or id of the router.", required=True, constraints=(Custom("neutron.router"),)
        ),
        "destination": Property("string", "Destination network.", required=True),
        "nexthop": Property("string", "Next hop.", required=True),
    }
    translation = (Resolve(("router_id",), "neutron.router"),)

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """The next hop is reached by an interface or the gateway of the router."""
        kinds = ("OS::Neutron::RouterInterface", "OS::Neutron::RouterGateway")
        return with_router(written(definition, "router_id"), resources, *kinds)

    def physical_id(self, props: Mapping[str, Value]) -> str:
        """Return the id of the router with destination and next hop."""
        return f"{props['router_id']}:{props['destination']}:{props['nexthop']}"

    def connect(self, ctx: Context, props: Mapping[str, Value]) -> None:
        """Add the route.

        Raises:
            ProviderError: the router has it already.
        """
        if self.connection(ctx, self.physical_id(props)) is not None:
            raise ProviderError("Route duplicates an existing route.", "Error")
        route = {"destination": props["destination"], "nexthop": props["nexthop"]}
        network(ctx).add_extra_routes(props["router_id"], [route])

    def disconnect(self, ctx: Context, physical_id: str) -> None:
        """Remove the route."""
        router_id, destination, nexthop = _parsed(physical_id)
        network(ctx).remove_extra_routes(router_id, [{"destination": destination, "nexthop": nexthop}])

    def connection(self, ctx: Context, physical_id: str) -> JsonMapping | None:
        """Return `{}` if the router has the route."""
        router_id, destination, nexthop = _parsed(physical_id)
        router = network(ctx).find(ROUTERS, router_id) or {}
        return {} if (destination, nexthop) in route_set(router.get("routes") or ()) else None


def _parsed(physical_id: str) -> tuple[str, str, str]:
    """Return router, destination and next hop: addresses of IPv6 contain colons, too."""
    router_id, _, rest = physical_id.partition(":")
    address, _, after = rest.partition("/")
    length, _, nexthop = after.partition(":")
    return router_id, f"{address}/{length}", nexthop
