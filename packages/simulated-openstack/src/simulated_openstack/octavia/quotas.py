"""Quotas of the load balancing service."""

from __future__ import annotations

from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.octavia.fields import FORBIDDEN, ROOT, validation_failure
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

QUOTAS: Final = ("loadbalancer", "listener", "member", "pool", "healthmonitor", "l7policy", "l7rule")


class Quotas:
    """The limits of each project; by default there are none."""

    def __init__(self, octavia: Service) -> None:
        """Add the routes."""
        self.table: Table = octavia.cloud.state.table("octavia.quota")
        add, one = octavia.router.add, f"{ROOT}/quotas/{{project}}"
        add("GET", f"{ROOT}/quotas", self.index)
        add("GET", one, self.show)
        add("PUT", one, self.change)
        add("DELETE", one, self.reset)

    def of(self, project: str) -> JsonObject:
        """Return the quotas of a project."""
        row = self.table.get(project) or {}
        return {name: row.get(name, -1) for name in QUOTAS}

    def require(self, name: str, label: str, table: Table, project: str) -> None:
        """Refuse another object if the project has as many as it may have."""
        limit = self.of(project).get(name, -1)
        if 0 <= limit <= table.count("project_id", project):
            raise ApiError(403, f"Quota has been met for resources: {label}")

    def index(self, call: Call) -> Response:
        """List the projects with quotas of their own."""
        _require_admin(call)
        return Response(200, {"quotas": [self._view(row["id"]) for row in self.table]})

    def show(self, call: Call, project: str) -> Response:
        """Show quotas."""
        if project != call.caller.project_id:
            _require_admin(call)
        return Response(200, {"quota": self._view(project)})

    def change(self, call: Call, project: str) -> Response:
        """Change quotas."""
        _require_admin(call)
        given = (call.body or {}).get("quota") or {}
        unknown = [name for name in given if name not in QUOTAS]
        if unknown:
            raise validation_failure(f"Unknown attribute: {', '.join(unknown)}")
        self.table.save({**(self.table.get(project) or {}), **given, "id": project})
        return Response(202, {"quota": self._view(project)})

    def reset(self, call: Call, project: str) -> Response:
        """Return to the default quotas."""
        _require_admin(call)
        if self.table.get(project) is None:
            raise ApiError(404, f"Quotas {project} not found.")
        self.table.remove(project)
        return Response(202)

    def _view(self, project: str) -> JsonObject:
        quotas = self.of(project)
        former = {"load_balancer": quotas["loadbalancer"], "health_monitor": quotas["healthmonitor"]}
        return {"project_id": project, "tenant_id": project, **quotas, **former}


def _require_admin(call: Call) -> None:
    if not call.caller.is_admin:
        raise ApiError(403, FORBIDDEN)
