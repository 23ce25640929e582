"""The service: its version document, its secrets, orders and containers."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.barbican.containers import Containers
from simulated_openstack.barbican.orders import Orders
from simulated_openstack.barbican.secrets import Secrets
from simulated_openstack.environment import Environment
from simulated_openstack.http import REASONS, ApiError, Response
from simulated_openstack.service import Call, Identity, Service, version_document


class Barbican(Service):
    """Secrets."""

    name: ClassVar[str] = "barbican"
    port_offset: ClassVar[int] = 9

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        self.router.add("GET", "/", self._versions)
        self.secrets = Secrets(self)
        self.containers = Containers(self, self.secrets)
        self.orders = Orders(self, self.containers, self.secrets)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error."""
        title = REASONS.get(error.status, "Error")
        body = {"code": error.status, "title": title, "description": error.message}
        return Response(error.status, body)

    def _versions(self, call: Call) -> Response:
        version = version_document("v1", "stable", f"{call.base}/v1/")
        return Response(300, {"versions": {"values": [version]}})
