"""Quotas of block storage."""

from __future__ import annotations

from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service
from simulated_openstack.state import Table

DEFAULTS: Final = {
    "volumes": 10,
    "per_volume_gigabytes": -1,
    "snapshots": 10,
    "gigabytes": 1000,
    "backups": 10,
    "backup_gigabytes": 1000,
    "groups": 10,
}


class Quotas:
    """The limits of each project."""

    def __init__(self, cinder: Service) -> None:
        """Add the routes."""
        self.cinder = cinder
        self.table: Table = cinder.cloud.state.table("cinder.quota")
        add = cinder.router.add
        add("GET", "/v3/os-quota-sets/{project}", self.show)
        add("GET", "/v3/os-quota-sets/{project}/defaults", self.defaults)
        add("PUT", "/v3/os-quota-sets/{project}", self.change)
        add("DELETE", "/v3/os-quota-sets/{project}", self.reset)
        add("GET", "/v3/limits", self.limits)

    def of(self, project: str) -> JsonObject:
        """Return the quotas of a project."""
        row = self.table.get(project) or {}
        types = {
            f"{n}_{t['name']}": -1 for t in self._rows("type") for n in ("volumes", "gigabytes", "snapshots")
        }
        return {**DEFAULTS, **types, **{key: value for key, value in row.items() if key != "id"}}

    def set(self, project: str, values: JsonObject) -> None:
        """Change quotas of a project."""
        self.table.save({**(self.table.get(project) or {}), **values, "id": project})

    def used(self, project: str) -> JsonObject:
        """Return the usage of a project."""
        volumes = self._rows("volume").where("project_id", project)
        snapshots = self._rows("snapshot").where("project_id", project)
        gigabytes = sum(row["size"] for row in volumes) + sum(row["volume_size"] for row in snapshots)
        return {"volumes": len(volumes), "snapshots": len(snapshots), "gigabytes": gigabytes}

    def _rows(self, kind: str) -> Table:
        """Return all objects of a kind; their modules depend on the quotas."""
        return self.cinder.cloud.state.table(f"cinder.{kind}")

    def require_volume(self, project: str, size: int) -> None:
        """Refuse another volume above a quota."""
        quotas, used = self.of(project), self.used(project)
        self.require_gigabytes(project, size)
        if 0 <= quotas["volumes"] <= used["volumes"]:
            text = (
                f"VolumeLimitExceeded: Maximum number of volumes allowed ({quotas['volumes']}) exceeded for"
                " quota"
            )
            raise ApiError(413, f"{text} 'volumes'.", headers={"Retry-After": "0"})

    def require_gigabytes(self, project: str, size: int) -> None:
        """Refuse more gigabytes above the quota."""
        limit, used = self.of(project)["gigabytes"], self.used(project)["gigabytes"]
        if 0 <= limit < used + size:
            text = (
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes"
                " quota."
                f" Requested {size}G, quota is {limit}G and {used}G has been consumed."
            )
            raise ApiError(413, text, headers={"Retry-After": "0"})

    def require_snapshot(self, project: str) -> None:
        """Refuse another snapshot above the quota."""
        limit, used = self.of(project)["snapshots"], self.used(project)["snapshots"]
        if 0 <= limit <= used:
            text = f"SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded"
            raise ApiError(413, text, headers={"Retry-After": "0"})

    def show(self, call: Call, project: str) -> Response:
        """Show quotas, with the usage if the query asks for it."""
        quotas = self.of(project)
        if call.request.value("usage") in {"True", "true"}:
            used = self.used(project)
            quotas = {
                name: {"limit": value, "in_use": used.get(name, 0), "reserved": 0, "allocated": 0}
                for name, value in quotas.items()
            }
        return Response(200, {"quota_set": {"id": project, **quotas}})

    def defaults(self, call: Call, project: str) -> Response:
        """Show the default quotas."""
        del call
        return Response(200, {"quota_set": {"id": project, **DEFAULTS}})

    def change(self, call: Call, project: str) -> Response:
        """Change quotas."""
        if not call.caller.is_admin:
            raise ApiError(403, "Policy doesn't allow volume_extension:quotas:update to be performed.")
        given = (call.body or {}).get("quota_set") or {}
        known, used = self.of(project), self.used(project)
        for name, value in given.items():
            if 0 <= int(value) < used.get(name, 0):
                text = f"Quota {name} limit must be equal or greater than existing resources."
                raise ApiError(400, text)
        self.set(project, {name: int(value) for name, value in given.items() if name in known})
        return Response(200, {"quota_set": self.of(project)})

    def reset(self, call: Call, project: str) -> Response:
        """Return to the default quotas."""
        if not call.caller.is_admin:
            raise ApiError(403, "Policy doesn't allow volume_extension:quotas:delete to be performed.")
        self.table.remove(project)
        return Response(200)

    def limits(self, call: Call) -> Response:
        """Show limits and usage of the caller's project."""
        quotas, used = self.of(call.caller.project_id), self.used(call.caller.project_id)
        absolute = {
            "maxTotalVolumes": quotas["volumes"],
            "maxTotalSnapshots": quotas["snapshots"],
            "maxTotalVolumeGigabytes": quotas["gigabytes"],
            "totalVolumesUsed": used["volumes"],
            "totalSnapshotsUsed": used["snapshots"],
            "totalGigabytesUsed": used["gigabytes"],
        }
        return Response(200, {"limits": {"rate": [], "absolute": absolute}})
