"""Quotas of the network service."""

from __future__ import annotations

from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.fields import bad_request
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

DEFAULTS: Final = {
    "network": 100,
    "subnet": 100,
    "subnetpool": -1,
    "port": 500,
    "router": 10,
    "floatingip": 50,
    "security_group": 10,
    "security_group_rule": 100,
    "rbac_policy": 10,
    "trunk": -1,
    "router_route": 30,
}


class Quotas:
    """The maximum number of objects of each project."""

    def __init__(self, neutron: Service) -> None:
        """Add the routes."""
        self.tables: dict[str, Table] = {}  # the objects that a quota counts, by its name
        self.table: Table = neutron.cloud.state.table("neutron.quota")
        add = neutron.router.add
        add("GET", "/v2.0/quotas", self.index)
        add("GET", "/v2.0/quotas/{project}", self.show)
        add("GET", "/v2.0/quotas/{project}/default", self.default)
        add("PUT", "/v2.0/quotas/{project}", self.change)
        add("DELETE", "/v2.0/quotas/{project}", self.reset)

    def of(self, project: str) -> JsonObject:
        """Return the quotas of a project."""
        row = self.table.get(project) or {}
        return {**DEFAULTS, **{key: value for key, value in row.items() if key != "id"}}

    def set(self, project: str, values: JsonObject) -> None:
        """Change quotas of a project."""
        self.table.save({**(self.table.get(project) or {}), **values, "id": project})

    def require(self, name: str, project: str) -> None:
        """Refuse another object if the project has as many as it may have; "": there is no quota."""
        limit = self.of(project).get(name, -1) if name and project else -1
        if 0 <= limit <= self._used(name, project):
            raise ApiError(409, f"Quota exceeded for resources: ['{name}'].", "OverQuota")

    def index(self, call: Call) -> Response:
        """List the projects with their own quotas."""
        self._require_admin(call, "get_quota")
        rows = [{**self.of(row["id"]), "project_id": row["id"], "tenant_id": row["id"]} for row in self.table]
        return Response(200, {"quotas": rows})

    def show(self, call: Call, project: str) -> Response:
        """Show quotas."""
        if project != call.caller.project_id:
            self._require_admin(call, "get_quota")
        return Response(200, {"quota": self.of(project)})

    def default(self, call: Call, project: str) -> Response:
        """Show the default quotas."""
        del call, project
        return Response(200, {"quota": dict(DEFAULTS)})

    def change(self, call: Call, project: str) -> Response:
        """Change quotas."""
        self._require_admin(call, "update_quota")
        given = {name: int(value) for name, value in ((call.body or {}).get("quota") or {}).items()}
        unknown = [name for name in given if name not in DEFAULTS]
        if unknown:
            raise bad_request(f"Unrecognized attribute(s) '{', '.join(unknown)}'")
        for name, limit in given.items():
            used = self._used(name, project)
            if 0 <= limit < used:
                text = f"Quota limit {limit} for {name} must be greater than or equal to already used {used}"
                raise bad_request(text)
        self.set(project, given)
        return Response(200, {"quota": self.of(project)})

    def reset(self, call: Call, project: str) -> Response:
        """Return to the default quotas."""
        self._require_admin(call, "delete_quota")
        if self.table.get(project) is None:
            text = f"Quota for project {project} could not be found."
            raise ApiError(404, text, "TenantQuotaNotFound")
        self.table.remove(project)
        return Response(204)

    def _used(self, name: str, project: str) -> int:
        table = self.tables.get(name)
        return 0 if table is None else table.count("project_id", project)

    def _require_admin(self, call: Call, verb: str) -> None:
        if not call.caller.is_admin:
            raise ApiError(403, f"rule:{verb} is disallowed by policy", "PolicyNotAuthorized")
