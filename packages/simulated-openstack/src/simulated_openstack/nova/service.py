"""The service: its version documents, its errors and its families."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.cinder.service import Cinder
from simulated_openstack.environment import Environment
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.microversions import KINDS, MicroversionedService
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.actions import Actions
from simulated_openstack.nova.aggregates import Aggregates
from simulated_openstack.nova.attachments import Attachments
from simulated_openstack.nova.build import Build
from simulated_openstack.nova.flavors import Flavors
from simulated_openstack.nova.interfaces import Interfaces
from simulated_openstack.nova.keys import KeyPairs, ServerGroups
from simulated_openstack.nova.labels import Labels
from simulated_openstack.nova.quotas import Quotas
from simulated_openstack.nova.servers import Servers
from simulated_openstack.nova.usage import Usage
from simulated_openstack.service import Call, Identity, version_document


class Nova(MicroversionedService):
    """Compute."""

    name: ClassVar[str] = "nova"
    port_offset: ClassVar[int] = 3
    kind: ClassVar[str] = "compute"
    former_header: ClassVar[str] = "x-openstack-nova-api-version"
    oldest: ClassVar[tuple[int, int]] = (2, 1)
    latest: ClassVar[tuple[int, int]] = (2, 104)
    public_paths: ClassVar[frozenset[str]] = frozenset({"/", "/v2.1"})

    def __init__(
        self, cloud: Environment, identity: Identity, glance: Glance, neutron: Neutron, cinder: Cinder
    ) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        self.glance, self.neutron, self.cinder = glance, neutron, cinder
        self.router.add("GET", "/", self._versions)
        self.router.add("GET", "/v2.1", self._version)
        self.router.add("GET", "/v2.1/extensions", self._extensions)
        self.router.add("GET", "/v2.1/os-migrations", self._migrations)
        self.flavors = Flavors(self)
        self.aggregates = Aggregates(self)
        self.servers = Servers(self, self.neutron, self.cinder)
        self.quotas = Quotas(self, self.servers)
        self.keys = KeyPairs(self, self.quotas)
        self.groups = ServerGroups(self, self.quotas, self.servers)
        self.usage = Usage(self, self.servers)
        self.labels = Labels(self, self.servers)
        self.actions = Actions(self, self.servers, self.flavors, self.glance, self.neutron)
        self.interfaces = Interfaces(self, self.neutron, self.servers)
        self.attachments = Attachments(self, self.servers, self.cinder)
        self.build = Build(
            self,
            self.servers,
            self.neutron,
            self.flavors,
            self.keys,
            self.groups,
            self.aggregates,
            self.quotas,
            self.glance,
            self.cinder,
            self.interfaces,
        )

    def answer(self, request: Request) -> Response:
        """Handle a request, and name the microversion in its answer."""
        response = super().answer(request)
        if request.path == "/" or response.status in (401, 406):
            return response
        major, minor = self.version_of(request)
        version = f"{major}.{minor}"
        response.headers |= {
            "OpenStack-API-Version": f"compute {version}",
            "X-OpenStack-Nova-API-Version": version,
            "Vary": "OpenStack-API-Version, X-OpenStack-Nova-API-Version",
            "x-compute-request-id": response.headers["x-openstack-request-id"],
        }
        return response

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error."""
        if error.status == 401:
            return super().error(error)
        kind = KINDS.get(error.status, "computeFault")
        return Response(error.status, {kind: {"code": error.status, "message": error.message}})

    def _versions(self, call: Call) -> Response:
        old = self._document(call, "v2.0", "DEPRECATED", "2025-07-04T12:00:00Z", "v2")
        return Response(200, {"versions": [old | {"version": "", "min_version": ""}, self._current(call)]})

    def _version(self, call: Call) -> Response:
        media = {
            "base": "application/json",
            "type": "application/vnd.openstack.compute+json;version=2.1",
        }
        described = {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}
        current = self._current(call)
        links = [*current["links"], described]
        return Response(200, {"version": {**current, "links": links, "media-types": [media]}})

    def _current(self, call: Call) -> JsonObject:
        return self._document(call, "v2.1", "CURRENT", "2013-07-23T11:33:21Z", "v2.1")

    def _document(self, call: Call, id_: str, status: str, updated: str, path: str) -> JsonObject:
        bounds = {"version": "2.104", "min_version": "2.1"}
        return version_document(id_, status, f"{call.base}/{path}/", updated=updated, **bounds)

    def _migrations(self, call: Call) -> Response:
        """List the migrations: there are none, with a single host."""
        if not call.caller.is_admin:
            raise ApiError(403, "Policy doesn't allow os_compute_api:os-migrations:index to be performed.")
        return Response(200, {"migrations": []})

    def _extensions(self, call: Call) -> Response:
        del call
        return Response(200, {"extensions": []})
