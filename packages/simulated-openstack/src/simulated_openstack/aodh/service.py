"""The service: its version document and its alarms."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.aodh.alarms import Alarms
from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Response
from simulated_openstack.service import Call, Identity, Service, version_document


class Aodh(Service):
    """Alarms."""

    name: ClassVar[str] = "aodh"
    port_offset: ClassVar[int] = 7

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        self.router.add("GET", "/", self._versions)
        self.alarms = Alarms(self)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error, in the form of WSME."""
        fault = "Client" if error.status < 500 else "Server"
        body = {"faultstring": error.message, "faultcode": fault, "debuginfo": None}
        return Response(error.status, {"error_message": body})

    def _versions(self, call: Call) -> Response:
        version = version_document("v2", "stable", f"{call.base}/v2")
        return Response(200, {"versions": {"values": [version]}})
