"""Routes of routers, as a template and as Neutron writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Value


def route_set(routes: Iterable[JsonMapping]) -> set[tuple[str, str]]:
    """Return routes as pairs of destination and next hop."""
    return {(str(route["destination"]), str(route["nexthop"])) for route in routes}


def route_list(routes: Iterable[tuple[str, str]]) -> list[Mapping[str, Value]]:
    """Return routes in an order that is always the same."""
    return [{"destination": destination, "nexthop": nexthop} for destination, nexthop in sorted(routes)]
