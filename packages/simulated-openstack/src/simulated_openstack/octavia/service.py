"""The service: its version document and its families."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Final

from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.octavia.catalog import FlavorProfiles, Flavors, ZoneProfiles, Zones
from simulated_openstack.octavia.family import PARENT
from simulated_openstack.octavia.fields import ROOT
from simulated_openstack.octavia.listeners import Listeners, Policies, Rules
from simulated_openstack.octavia.load_balancers import PROVIDERS, LoadBalancers
from simulated_openstack.octavia.pools import Members, Monitors, Pools
from simulated_openstack.octavia.provisioning import Provisioning
from simulated_openstack.octavia.quotas import Quotas
from simulated_openstack.service import LABEL, Call, Identity, Service, version_document

ALIAS: Final = "/v2.0"
NEWEST: Final = 29  # minor version


class Octavia(Service):
    """Load balancing."""

    name: ClassVar[str] = "octavia"
    port_offset: ClassVar[int] = 6

    def __init__(self, cloud: Environment, identity: Identity, neutron: Neutron) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        add = self.router.add
        add("GET", "/", self._versions)
        add("GET", "/v2", self._name)
        add("GET", f"{ROOT}/providers", self._providers)
        self.quotas = quotas = Quotas(self)
        self.flavor_profiles = FlavorProfiles(self, quotas)
        self.flavors = Flavors(self, quotas, self.flavor_profiles)
        self.zone_profiles = ZoneProfiles(self, quotas)
        self.zones = Zones(self, quotas, self.zone_profiles)
        provisioning = Provisioning(cloud)
        self.load_balancers = LoadBalancers(self, quotas, provisioning, neutron)
        self.listeners = Listeners(self, quotas, provisioning)
        self.pools = Pools(self, quotas, provisioning)
        self.members = Members(self, quotas, provisioning, neutron)
        self.monitors = Monitors(self, quotas, provisioning)
        self.policies = Policies(self, quotas, provisioning)
        self.rules = Rules(self, quotas, provisioning)

    def answer(self, request: Request) -> Response:
        """Handle a request; `/v2.0`, which openstacksdk uses, is another name of `/v2`."""
        if request.target.startswith(ALIAS):
            request = replace(request, target="/v2" + request.target.removeprefix(ALIAS))
        return super().answer(request)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error."""
        if error.status == 401:
            return super().error(error)
        if error.kind == PARENT:
            body: JsonObject = {"title": "Bad Request", "code": error.status, "description": error.message}
            return Response(error.status, body)
        code = "Server" if error.status >= 500 else "Client"
        body = {"faultcode": code, "faultstring": error.message, "debuginfo": None}
        return Response(error.status, body)

    def _versions(self, call: Call) -> Response:
        states = ["SUPPORTED"] * NEWEST + ["CURRENT"]
        versions = [
            version_document(f"v2.{minor}", state, f"{call.base}/v2", updated="2024-10-15T00:00:00Z")
            for minor, state in enumerate(states)
        ]
        return Response(200, {"versions": versions})

    def _name(self, call: Call) -> Response:
        """Return the name of the version, which is no description of it."""
        del call
        return Response(200, "v2")

    def _providers(self, call: Call) -> Response:
        del call
        providers = [{"name": name, "description": LABEL} for name in PROVIDERS]
        return Response(200, {"providers": providers})
