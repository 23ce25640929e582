"""The service: its version documents, its errors and its families."""

from __future__ import annotations

from typing import ClassVar, Final

from simulated_openstack.cinder.actions import VolumeActions
from simulated_openstack.cinder.attachments import Attachments
from simulated_openstack.cinder.backups import Backups
from simulated_openstack.cinder.messages import Messages
from simulated_openstack.cinder.qos import QosSpecs
from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.snapshots import Snapshots
from simulated_openstack.cinder.transfers import Transfers
from simulated_openstack.cinder.types import Types
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.environment import Environment
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.keystone.service import Keystone
from simulated_openstack.microversions import KINDS, MicroversionedService
from simulated_openstack.service import LABEL, Call

# Lists of objects that the cloud does not have: the first version and the key of each.
EMPTY: Final = {
    "/v3/cgsnapshots": ((3, 0), "cgsnapshots"),
    "/v3/cgsnapshots/detail": ((3, 0), "cgsnapshots"),
    "/v3/clusters": ((3, 7), "clusters"),
    "/v3/clusters/detail": ((3, 7), "clusters"),
    "/v3/consistencygroups": ((3, 0), "consistencygroups"),
    "/v3/consistencygroups/detail": ((3, 0), "consistencygroups"),
    "/v3/default-types": ((3, 62), "default_types"),
    "/v3/group_snapshots": ((3, 14), "group_snapshots"),
    "/v3/group_snapshots/detail": ((3, 14), "group_snapshots"),
    "/v3/group_types": ((3, 11), "group_types"),
    "/v3/groups": ((3, 13), "groups"),
    "/v3/groups/detail": ((3, 13), "groups"),
    "/v3/manageable_snapshots": ((3, 8), "manageable-snapshots"),
    "/v3/manageable_snapshots/detail": ((3, 8), "manageable-snapshots"),
    "/v3/manageable_volumes": ((3, 8), "manageable-volumes"),
    "/v3/manageable_volumes/detail": ((3, 8), "manageable-volumes"),
    "/v3/resource_filters": ((3, 33), "resource_filters"),
}


class Cinder(MicroversionedService):
    """Block storage."""

    name: ClassVar[str] = "cinder"
    port_offset: ClassVar[int] = 5
    kind: ClassVar[str] = "volume"
    oldest: ClassVar[tuple[int, int]] = (3, 0)
    latest: ClassVar[tuple[int, int]] = (3, 71)
    public_paths: ClassVar[frozenset[str]] = frozenset({"/"})

    def __init__(self, cloud: Environment, keystone: Keystone, glance: Glance) -> None:
        """Add all routes."""
        super().__init__(cloud, keystone)
        self.keystone, self.glance = keystone, glance
        add = self.router.add
        add("GET", "/", self._versions)
        add("GET", "/v3", self._versions)
        add("GET", "/v3/os-availability-zone", self._zones)
        add("GET", "/v3/os-services", self._services)
        add("GET", "/v3/extensions", self._extensions)
        add("GET", "/v3/scheduler-stats/get_pools", self._pools)
        for path in EMPTY:
            add("GET", path, self._empty)
        self.quotas = Quotas(self)
        self.types = Types(self)
        self.qos_specs = QosSpecs(self, self.types)
        self.messages = Messages(self)
        self.volumes = Volumes(self, self.types, self.quotas, self.glance, self.messages)
        self.snapshots = Snapshots(self, self.volumes, self.quotas)
        self.backups = Backups(self, self.volumes)
        self.actions = VolumeActions(self, self.volumes, self.quotas, self.types)
        self.attachments = Attachments(self, self.actions, self.volumes)
        self.transfers = Transfers(self, self.volumes, self.quotas)

    def answer(self, request: Request) -> Response:
        """Handle a request; paths may begin with the project."""
        parts = request.path.split("/")
        if len(parts) > 3 and parts[1] == "v3" and self.keystone.projects.table.get(parts[2]) is not None:
            query = request.target.partition("?")[2]
            target = "/".join(["", "v3", *parts[3:]]) + (f"?{query}" if query else "")
            request = Request(request.method, target, request.headers, request.content, request.id)
        response = super().answer(request)
        if response.status != 401:
            request_id = response.headers["x-openstack-request-id"]
            response.headers |= {"x-compute-request-id": request_id, "Vary": "OpenStack-API-Version"}
            response.headers.setdefault("OpenStack-API-Version", "volume 3.0")
        return response

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error."""
        if error.status == 401:
            return super().error(error)
        kind = error.kind if error.kind[:1].islower() else KINDS.get(error.status, "computeFault")
        details: JsonObject = {"code": error.status, "message": error.message}
        if error.status == 413:
            details["retryAfter"] = "0"
        return Response(error.status, {kind: details})

    def _versions(self, call: Call) -> Response:
        media = {"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}
        described = {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"}
        version: JsonObject = {
            "id": "v3.0",
            "status": "CURRENT",
            "version": "3.71",
            "min_version": "3.0",
            "updated": "2023-08-31T00:00:00Z",
            "links": [described, {"rel": "self", "href": f"{call.base}/v3/"}],
            "media-types": [media],
            "description": LABEL,
        }
        return Response(300 if call.request.path == "/" else 200, {"versions": [version]})

    def _zones(self, call: Call) -> Response:
        del call
        zone = {"zoneName": "nova", "zoneState": {"available": True}}
        return Response(200, {"availabilityZoneInfo": [zone]})

    def _services(self, call: Call) -> Response:
        del call
        now = "2026-01-01T00:00:00.000000"
        names = (("cinder-scheduler", "fakehost"), ("cinder-volume", "fakehost@fake"))
        services = [
            {
                "binary": name,
                "host": host,
                "zone": "nova",
                "status": "enabled",
                "state": "up",
                "updated_at": now,
            }
            for name, host in names
        ]
        return Response(200, {"services": services})

    def _empty(self, call: Call) -> Response:
        first, key = EMPTY[call.request.path]
        if call.version < first:
            raise ApiError(404, "The resource could not be found.")
        return Response(200, {key: []})

    def _pools(self, call: Call) -> Response:
        """List the only pool; with `detail`, its capabilities."""
        if not call.caller.is_admin:
            raise ApiError(
                403, "Policy doesn't allow scheduler_extension:scheduler_stats:get_pools to be performed."
            )
        pool: JsonObject = {"name": "fakehost@fake#fake"}
        if (call.request.value("detail") or "").lower() in {"1", "true"}:
            sizes = {"total_capacity_gb": "infinite", "free_capacity_gb": "infinite"}
            pool["capabilities"] = {"volume_backend_name": "fake", "storage_protocol": LABEL, **sizes}
        return Response(200, {"pools": [pool]})

    def _extensions(self, call: Call) -> Response:
        del call
        return Response(200, {"extensions": []})
