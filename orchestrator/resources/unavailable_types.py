"""The types of Heat's catalogue that need a service, recognized by name
(docs/internals/resource-types.md §F).

A template that uses such a type is rejected like a template in Heat whose service is not deployed, unless the
type is registered and the cloud offers its service (`ResourceType.endpoint_type`); `ignore_errors=99001`
skips the error. A name neither here nor in the registry is unknown. Types of discontinued services are
placeholders (`builtin/retired.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.errors import ResourceTypeUnavailable
from orchestrator.resources.endpoint_types import canonical

# The client name of each service, as used in Heat's error messages.
_CLIENTS: Final = {
    "alarming": "aodh",
    "baremetal": "ironic",
    "compute": "nova",
    "container": "zun",
    "container-infra": "magnum",
    "database": "trove",
    "dns": "designate",
    "identity": "keystone",
    "image": "glance",
    "key-manager": "barbican",
    "load-balancer": "octavia",
    "messaging": "zaqar",
    "network": "neutron",
    "object-store": "swift",
    "reservation": "blazar",
    "sharev2": "manila",
    "volumev3": "cinder",
    "workflowv2": "mistral",
}

# By service, then by namespace.
_TYPES: Final[dict[str, dict[str, str]]] = {
    "alarming": {
        "AWS::CloudWatch": "Alarm",
        "OS::Aodh": (
            "Alarm CombinationAlarm CompositeAlarm EventAlarm GnocchiAggregationByMetricsAlarm "
            "GnocchiAggregationByResourcesAlarm GnocchiResourcesAlarm LBMemberHealthAlarm PrometheusAlarm"
        ),
    },
    "baremetal": {"OS::Ironic": "Port"},
    "compute": {
        "AWS::EC2": "EIP EIPAssociation Instance",
        "AWS::RDS": "DBInstance",
        "OS::Nova": "Flavor HostAggregate KeyPair Quota Server ServerGroup",
    },
    "container": {"OS::Zun": "Container"},
    "container-infra": {"OS::Magnum": "BayModel Cluster ClusterTemplate"},
    "database": {"OS::Trove": "Cluster Instance"},
    "dns": {"OS::Designate": "RecordSet Zone"},
    "identity": {
        "OS::Keystone": (
            "Domain Endpoint Group GroupRoleAssignment Project Region Role Service User UserRoleAssignment"
        ),
    },
    "image": {"OS::Glance": "WebImage"},
    "key-manager": {"OS::Barbican": "CertificateContainer GenericContainer Order RSAContainer Secret"},
    "load-balancer": {
        "AWS::ElasticLoadBalancing": "LoadBalancer",
        "OS::Octavia": (
            "AvailabilityZone AvailabilityZoneProfile Flavor FlavorProfile HealthMonitor L7Policy L7Rule "
            "Listener LoadBalancer Pool PoolMember Quota"
        ),
    },
    "messaging": {"OS::Zaqar": "MistralTrigger Queue SignedQueueURL Subscription"},
    "network": {
        "AWS::EC2": (
            "NetworkInterface RouteTable SecurityGroup Subnet SubnetRouteTableAssociation VPC "
            "VPCGatewayAttachment"
        ),
        "OS::Neutron": (
            "AddressScope ExtraRoute ExtraRouteSet Firewall FirewallPolicy FirewallRule FloatingIP "
            "FloatingIPAssociation FloatingIPPortForward FlowClassifier IKEPolicy IPsecPolicy "
            "IPsecSiteConnection L2Gateway L2GatewayConnection MeteringLabel MeteringRule Net NetworkGateway "
            "Port PortChain PortPair PortPairGroup ProviderNet QoSBandwidthLimitRule QoSDscpMarkingRule "
            "QoSMinimumBandwidthRule QoSMinimumPacketRateRule QoSPolicy Quota RBACPolicy Router "
            "RouterGateway RouterInterface SecurityGroup SecurityGroupRule Segment Subnet SubnetPool "
            "Trunk VPNService"
        ),
        "OS::Neutron::TaaS": "TapFlow TapService",
    },
    "object-store": {
        "AWS::S3": "Bucket",
        "OS::Heat": "SwiftSignal SwiftSignalHandle",
        "OS::Swift": "Container",
    },
    "reservation": {"OS::Blazar": "Host Lease"},
    "sharev2": {"OS::Manila": "SecurityService Share ShareNetwork ShareType"},
    "volumev3": {
        "AWS::EC2": "Volume VolumeAttachment",
        "OS::Cinder": (
            "EncryptedVolumeType QoSAssociation QoSSpecs Quota Volume VolumeAttachment VolumeType"
        ),
    },
    "workflowv2": {"OS::Mistral": "CronTrigger ExternalResource Workflow"},
}

_SERVICES: Final = {
    f"{space}::{type_name}": service
    for service, spaces in _TYPES.items()
    for space, type_names in spaces.items()
    for type_name in type_names.split()
}

# Older names of the same types, as Heat's shipped environment maps them.
_ALARMS: Final = (
    "Alarm CombinationAlarm GnocchiAggregationByMetricsAlarm GnocchiAggregationByResourcesAlarm "
    "GnocchiResourcesAlarm"
)
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"OS::Metering::Alarm": "OS::Aodh::Alarm"}
    | {f"OS::Ceilometer::{type_name}": f"OS::Aodh::{type_name}" for type_name in _ALARMS.split()}
    | {
        name.replace("OS::Neutron", "OS::Quantum", 1): name
        for name in _SERVICES
        if name.startswith("OS::Neutron")
    }
)

SERVICE_BY_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    _SERVICES | {alias: _SERVICES[name] for alias, name in ALIASES.items()}
)
"""Every name, aliases too, with the service it needs: "network", "compute"."""


def required_service(name: str) -> str | None:
    """Return the service that the type requires, None for an unknown type."""
    return SERVICE_BY_TYPE.get(name)


def unavailable(name: str, endpoint_type: str = "") -> ResourceTypeUnavailable | None:
    """Return the error for a recognized type, None if the name is unknown; `endpoint_type` is that of the
    registered type.
    """
    service = canonical(endpoint_type) or required_service(name)
    if service is None:
        return None
    client = _CLIENTS.get(service, service)
    return ResourceTypeUnavailable(name, client, f"{client} {service} endpoint is not in service catalog.")
