"""The service: its version document, its zones and record sets."""

from __future__ import annotations

from typing import Any, ClassVar

from simulated_openstack.designate.recordsets import RecordSets
from simulated_openstack.designate.zones import Zones
from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Response
from simulated_openstack.service import Call, Identity, Service, version_document

SCHEMA: str = "Provided object does not match schema"


class Designate(Service):
    """DNS zones."""

    name: ClassVar[str] = "designate"
    port_offset: ClassVar[int] = 10

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        self.router.add("GET", "/", self._versions)
        self.zones = Zones(self)
        self.recordsets = RecordSets(self, self.zones)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error; the fault of an invalid object is in a list."""
        kind = error.kind or "bad_request"
        body: dict[str, Any] = {"code": error.status, "type": kind, "message": error.message}
        if kind == "invalid_object":
            body |= {"message": SCHEMA, "errors": {"errors": [{"path": [], "message": error.message}]}}
        return Response(error.status, body)

    def _versions(self, call: Call) -> Response:
        states = (("v2", "SUPPORTED"), ("v2.0", "SUPPORTED"), ("v2.1", "CURRENT"))
        versions = [version_document(id_, status, f"{call.base}/v2") for id_, status in states]
        return Response(200, {"versions": versions})
