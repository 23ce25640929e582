"""The service: its version documents, its errors and its families."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from simulated_openstack.cinder.actions import VolumeActions
from simulated_openstack.cinder.attachments import Attachments
from simulated_openstack.cinder.backups import Backups
from simulated_openstack.cinder.messages import Messages
from simulated_openstack.cinder.qos import QosSpecs
from simulated_openstack.cinder.quotas import Quotas
from simulated_openstack.cinder.snapshots import Snapshots
from simulated_openstack.cinder.types import Types
from simulated_openstack.cinder.volumes import Volumes
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import LABEL, NO_PAGE, Call, Service

SimulatedCloud = Any  # its module imports this module

LATEST: Final = (3, 71)
KINDS: Final = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
}


class Cinder(Service):
    """Block storage."""

    name: ClassVar[str] = "cinder"
    port_offset: ClassVar[int] = 5
    public_paths: ClassVar[frozenset[str]] = frozenset({"/"})

    def __init__(self, cloud: SimulatedCloud) -> None:
        """Add all routes."""
        super().__init__(cloud)
        add = self.router.add
        add("GET", "/", self._versions)
        add("GET", "/v3", self._versions)
        add("GET", "/v3/os-availability-zone", self._zones)
        add("GET", "/v3/os-services", self._services)
        add("GET", "/v3/extensions", self._extensions)
        self.quotas = Quotas(self)
        self.types = Types(self)
        self.qos_specs = QosSpecs(self)
        self.messages = Messages(self)
        self.volumes = Volumes(self)
        self.snapshots = Snapshots(self)
        self.backups = Backups(self)
        self.actions = VolumeActions(self)
        self.attachments = Attachments(self)

    def answer(self, request: Request) -> Response:
        """Handle a request; paths may begin with the project."""
        parts = request.path.split("/")
        if (
            len(parts) > 3
            and parts[1] == "v3"
            and self.cloud.keystone.projects.table.get(parts[2]) is not None
        ):
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

    def no_route(self, request: Request) -> Response:
        """Return the answer for an unknown path: a page of HTML."""
        if any(self.router.methods(request.path)):
            return super().no_route(request)
        return Response(404, NO_PAGE, {"Content-Type": "text/html; charset=UTF-8"})

    def version_of(self, request: Request) -> tuple[int, int]:
        """Return the microversion of a request."""
        words = request.headers.get("openstack-api-version", "").split()
        if len(words) != 2 or words[0] != "volume":
            return (3, 0)
        if words[1] == "latest":
            return LATEST
        major, _, minor = words[1].partition(".")
        version = (int(major), int(minor or 0))
        if not (3, 0) <= version <= LATEST:
            text = f"Version {words[1]} is not supported by the API. Minimum is 3.0 and maximum is 3.71."
            raise ApiError(406, text, "computeFault")
        return version

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

    def _extensions(self, call: Call) -> Response:
        del call
        return Response(200, {"extensions": []})
