"""The service: its version document and its alarms."""

from __future__ import annotations

from typing import Any, ClassVar

from simulated_openstack.aodh.alarms import Alarms
from simulated_openstack.http import ApiError, Response
from simulated_openstack.service import LABEL, Call, Service

SimulatedCloud = Any  # its module imports this module


class Aodh(Service):
    """Alarms."""

    name: ClassVar[str] = "aodh"
    port_offset: ClassVar[int] = 7

    def __init__(self, cloud: SimulatedCloud) -> None:
        """Add all routes."""
        super().__init__(cloud)
        self.router.add("GET", "/", self._versions)
        self.alarms = Alarms(self)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error, in the form of WSME."""
        fault = "Client" if error.status < 500 else "Server"
        body = {"faultstring": error.message, "faultcode": fault, "debuginfo": None}
        return Response(error.status, {"error_message": body})

    def _versions(self, call: Call) -> Response:
        links = [{"href": f"{call.base}/v2", "rel": "self"}]
        version = {"id": "v2", "links": links, "status": "stable", "description": LABEL}
        return Response(200, {"versions": {"values": [version]}})
