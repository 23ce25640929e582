"""Quotas, limits and availability zones of compute."""

from __future__ import annotations

from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.nova.servers import Servers
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

DEFAULTS: Final = {
    "cores": 20,
    "instances": 10,
    "key_pairs": 100,
    "metadata_items": 128,
    "ram": 51_200,
    "server_group_members": 10,
    "server_groups": 10,
}
OLD: Final = {"injected_files": 5, "injected_file_content_bytes": 10_240, "injected_file_path_bytes": 255}


class Quotas:
    """The limits of each project."""

    def __init__(self, nova: Service, servers: Servers) -> None:
        """Add the routes."""
        self._servers = servers
        self.nova = nova
        self.table: Table = nova.cloud.state.table("nova.quota")
        add = nova.router.add
        add("GET", "/v2.1/os-quota-sets/{project}", self.show)
        add("GET", "/v2.1/os-quota-sets/{project}/defaults", self.defaults)
        add("GET", "/v2.1/os-quota-sets/{project}/detail", self.detail)
        add("PUT", "/v2.1/os-quota-sets/{project}", self.change)
        add("DELETE", "/v2.1/os-quota-sets/{project}", self.reset)
        add("GET", "/v2.1/limits", self.limits)

    def of(self, project: str) -> JsonObject:
        """Return the quotas of a project."""
        row = self.table.get(project) or {}
        return {**DEFAULTS, **{key: value for key, value in row.items() if key != "id"}}

    def set(self, project: str, values: JsonObject) -> None:
        """Change quotas of a project."""
        self.table.save({**(self.table.get(project) or {}), **values, "id": project})

    def used(self, project: str) -> JsonObject:
        """Return the usage of a project."""
        flavors = [row["flavor"] for row in self._servers.table.where("project_id", project)]
        return {
            "instances": len(flavors),
            "cores": sum(flavor["vcpus"] for flavor in flavors),
            "ram": sum(flavor["ram"] for flavor in flavors),
        }

    def require(self, project: str, flavor: JsonObject) -> None:
        """Refuse a server above a quota."""
        limits, used = self.of(project), self.used(project)
        asked = {"instances": 1, "cores": flavor["vcpus"], "ram": flavor["ram"]}
        over = [
            name for name in ("cores", "instances", "ram") if 0 <= limits[name] < used[name] + asked[name]
        ]
        if "instances" in over:
            over = ["instances"]
        if over:
            words = [", ".join(str(values[name]) for name in over) for values in (asked, used, limits)]
            listed = ", ".join(over)
            text = f"Requested {words[0]}, but already used {words[1]} of {words[2]} {listed}"
            raise ApiError(403, f"Quota exceeded for {listed}: {text}")

    def show(self, call: Call, project: str) -> Response:
        """Show quotas."""
        return Response(200, {"quota_set": {"id": project, **self._view(call, project)}})

    def defaults(self, call: Call, project: str) -> Response:
        """Show the default quotas."""
        del call
        return Response(200, {"quota_set": {"id": project, **DEFAULTS}})

    def detail(self, call: Call, project: str) -> Response:
        """Show quotas with their usage."""
        del call
        used = self.used(project)
        quotas = {
            name: {"limit": value, "in_use": used.get(name, 0), "reserved": 0}
            for name, value in self.of(project).items()
        }
        return Response(200, {"quota_set": {"id": project, **quotas}})

    def change(self, call: Call, project: str) -> Response:
        """Change quotas."""
        self._require_admin(call, "update")
        given = dict((call.body or {}).get("quota_set") or {})
        forced = given.pop("force", False)
        used = self.used(project)
        for name, value in given.items():
            if name not in DEFAULTS and name not in OLD:
                text = f"Additional properties are not allowed ('{name}' was unexpected)"
                raise ApiError(400, f"Invalid input for field/attribute quota_set. Value: {given}. {text}")
            if not forced and 0 <= int(value) < used.get(name, 0):
                text = (
                    f"Quota limit {value} for {name} must be greater than or equal to already used and"
                    " reserved"
                )
                raise ApiError(400, f"{text} {used[name]}.")
        self.set(project, {name: int(value) for name, value in given.items() if name in DEFAULTS})
        return Response(200, {"quota_set": self._view(call, project)})

    def reset(self, call: Call, project: str) -> Response:
        """Return to the default quotas."""
        self._require_admin(call, "delete")
        self.table.remove(project)
        return Response(202)

    def limits(self, call: Call) -> Response:
        """Show limits and usage of the caller's project."""
        project = call.caller.project_id
        quotas, used = self.of(project), self.used(project)
        absolute = {
            "maxServerGroupMembers": quotas["server_group_members"],
            "maxServerGroups": quotas["server_groups"],
            "maxServerMeta": quotas["metadata_items"],
            "maxTotalCores": quotas["cores"],
            "maxTotalInstances": quotas["instances"],
            "maxTotalKeypairs": quotas["key_pairs"],
            "maxTotalRAMSize": quotas["ram"],
            "totalCoresUsed": used["cores"],
            "totalInstancesUsed": used["instances"],
            "totalRAMUsed": used["ram"],
            "totalServerGroupsUsed": self.nova.cloud.state.table("nova.server_group").count(
                "project_id", project
            ),
        }
        return Response(200, {"limits": {"rate": [], "absolute": absolute}})

    def _view(self, call: Call, project: str) -> JsonObject:
        return {**self.of(project), **(OLD if call.version < (2, 57) else {})}

    def _require_admin(self, call: Call, verb: str) -> None:
        if not call.caller.is_admin:
            raise ApiError(403, f"Policy doesn't allow os_compute_api:os-quota-sets:{verb} to be performed.")
