"""The service: its version document, its workflows, executions and cron triggers."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Response
from simulated_openstack.mistral.cron_triggers import CronTriggers
from simulated_openstack.mistral.executions import Executions
from simulated_openstack.mistral.workflows import Workflows
from simulated_openstack.service import LABEL, Call, Identity, Service


class Mistral(Service):
    """Workflows."""

    name: ClassVar[str] = "mistral"
    port_offset: ClassVar[int] = 11

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        self.router.add("GET", "/", self._versions)
        self.workflows = Workflows(self)
        self.executions = Executions(self, self.workflows)
        self.cron_triggers = CronTriggers(self, self.workflows)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error, in the form of WSME."""
        fault = "Client" if error.status < 500 else "Server"
        body = {"faultstring": error.message, "faultcode": fault, "debuginfo": None}
        return Response(error.status, body)

    def _versions(self, call: Call) -> Response:
        links = [{"href": f"{call.base}/v2", "rel": "self", "target": "v2"}]
        version = {"id": "v2.0", "links": links, "status": "CURRENT", "description": LABEL}
        return Response(200, {"versions": [version]})
