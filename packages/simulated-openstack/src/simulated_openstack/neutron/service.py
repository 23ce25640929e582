"""The service: its version documents and its families."""

from __future__ import annotations

from typing import ClassVar

from simulated_openstack.environment import Environment
from simulated_openstack.http import ApiError, Request, Response
from simulated_openstack.neutron.family import Families
from simulated_openstack.neutron.floating_ips import FloatingIps
from simulated_openstack.neutron.networks import Networks
from simulated_openstack.neutron.ports import Ports
from simulated_openstack.neutron.qos import QosPolicies
from simulated_openstack.neutron.quotas import Quotas
from simulated_openstack.neutron.routers import Routers
from simulated_openstack.neutron.security_groups import SecurityGroupRules, SecurityGroups
from simulated_openstack.neutron.segments import MeteringLabelRules, MeteringLabels, Segments
from simulated_openstack.neutron.sharing import AddressScopes, RbacPolicies, SubnetPools
from simulated_openstack.neutron.subnets import Subnets
from simulated_openstack.neutron.trunks import Trunks
from simulated_openstack.service import LABEL, Call, Caller, Identity, Service, version_document

EXTENSIONS = (
    *(
        "agent",
        "address-scope",
        "allowed-address-pairs",
        "availability_zone",
        "dhcp_agent_scheduler",
        "dns-integration",
    ),
    *(
        "external-net",
        "extra_dhcp_opt",
        "extraroute",
        "extraroute-atomic",
        "ext-gw-mode",
        "floating-ip-port-forwarding",
    ),
    *(
        "l3_agent_scheduler",
        "metering",
        "multi-provider",
        "net-mtu",
        "pagination",
        "port-security",
        "provider",
        "qos",
    ),
    *(
        "quotas",
        "rbac-policies",
        "router",
        "security-group",
        "segment",
        "service-type",
        "sorting",
        "standard-attr-description",
    ),
    *(
        "standard-attr-tag",
        "standard-attr-timestamp",
        "standard-attr-revisions",
        "revision-if-match",
        "stateful-security-group",
    ),
    *("subnet_allocation", "trunk", "trunk-details", "binding", "dvr", "l3-ha"),
)


class Neutron(Service):
    """Networking."""

    name: ClassVar[str] = "neutron"
    port_offset: ClassVar[int] = 4

    def __init__(self, cloud: Environment, identity: Identity) -> None:
        """Add all routes."""
        super().__init__(cloud, identity)
        add = self.router.add
        add("GET", "/", self._versions)
        add("GET", "/v2.0", self._version)
        add("GET", "/v2.0/extensions", self._extensions)
        add("GET", "/v2.0/extensions/{alias}", self._extension)
        add("GET", "/v2.0/agents", self._agents)
        add("GET", "/v2.0/availability_zones", self._zones)
        add("GET", "/v2.0/service-providers", self._providers)
        self.quotas = Quotas(self)
        families = Families(self.quotas)
        self.address_scopes = AddressScopes(self, families)
        self.subnet_pools = SubnetPools(self, families)
        self.qos_policies = QosPolicies(self, families)
        self.rbac_policies = RbacPolicies(self, families)
        self.metering_labels = MeteringLabels(self, families)
        self.metering_label_rules = MeteringLabelRules(self, families)
        self.security_group_rules = SecurityGroupRules(self, families)
        self.security_groups = SecurityGroups(self, families, self.security_group_rules)
        self.segments = Segments(self, families)
        self.networks = Networks(self, families, self.rbac_policies, self.segments, self.security_groups)
        self.subnets = Subnets(self, families, self.subnet_pools)
        self.ports = Ports(
            self, families, self.networks, self.subnets, self.qos_policies, self.security_groups
        )
        self.trunks = Trunks(self, families, self.ports)
        self.routers = Routers(self, families, self.ports)
        self.floating_ips = FloatingIps(self, families, self.ports, self.routers)

    def error(self, error: ApiError) -> Response:
        """Return the answer for an error."""
        if error.status == 401:
            return super().error(error)
        return Response(
            error.status, {"NeutronError": {"type": error.kind, "message": error.message, "detail": ""}}
        )

    def check_caller(self, request: Request, caller: Caller) -> None:
        """Refuse callers without a role that may read."""
        if request.method != "GET" and not caller.roles & {"admin", "member", "manager"}:
            raise ApiError(403, "rule is disallowed by policy", "PolicyNotAuthorized")

    def _versions(self, call: Call) -> Response:
        version = version_document("v2.0", "CURRENT", f"{call.base}/v2.0/")
        return Response(200, {"versions": [version]})

    def _version(self, call: Call) -> Response:
        names = ("networks", "subnets", "ports", "routers", "floatingips", "security-groups")
        resources = [
            {
                "name": name[:-1],
                "collection": name,
                "links": [{"rel": "self", "href": f"{call.base}/v2.0/{name}"}],
            }
            for name in names
        ]
        return Response(200, {"resources": resources})

    def _extensions(self, call: Call) -> Response:
        del call
        return Response(200, {"extensions": [_extension(alias) for alias in EXTENSIONS]})

    def _extension(self, call: Call, alias: str) -> Response:
        del call
        if alias not in EXTENSIONS:
            raise ApiError(404, "The resource could not be found.", "HTTPNotFound")
        return Response(200, {"extension": _extension(alias)})

    def _agents(self, call: Call) -> Response:
        del call
        return Response(200, {"agents": []})

    def _providers(self, call: Call) -> Response:
        provider = {"service_type": "L3_ROUTER_NAT", "name": "single_node", "default": True}
        kinds = call.request.values("service_type")
        return Response(
            200, {"service_providers": [provider] if not kinds or provider["service_type"] in kinds else []}
        )

    def _zones(self, call: Call) -> Response:
        del call
        return Response(200, {"availability_zones": []})


def _extension(alias: str) -> dict[str, object]:
    updated = "2012-01-01T10:00:00-00:00"
    return {"alias": alias, "name": alias, "description": LABEL, "updated": updated, "links": []}
