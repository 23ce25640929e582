"""The properties and attributes of AWS::ElasticLoadBalancing::LoadBalancer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.resources.base import Attribute, Property
from orchestrator.schema.constraints import AllowedValues

_UNUSED: Final = "Not implemented."

_HEALTH_CHECK: Final[Mapping[str, Property]] = {
    "HealthyThreshold": Property(
        "integer", "Successful checks until an instance is in use again.", required=True
    ),
    "Interval": Property("integer", "Seconds between two checks of an instance.", required=True),
    "Target": Property("string", "What is checked: HTTP:80/path or TCP:80.", required=True),
    "Timeout": Property("integer", "Seconds until a check has failed.", required=True),
    "UnhealthyThreshold": Property(
        "integer", "Failed checks until an instance is no longer in use.", required=True
    ),
}
_LISTENER: Final[Mapping[str, Property]] = {
    "InstancePort": Property("integer", "Port of the instances.", required=True),
    "LoadBalancerPort": Property("integer", "Port of the load balancer.", required=True),
    "Protocol": Property(
        "string",
        "Protocol of the connections.",
        required=True,
        constraints=(AllowedValues(("TCP", "HTTP")),),
    ),
    "PolicyNames": Property("list", _UNUSED, implemented=False),
    "SSLCertificateId": Property("string", _UNUSED, implemented=False),
}

PROPERTIES: Final[Mapping[str, Property]] = {
    "AvailabilityZones": Property("list", "Not used.", required=True),
    "HealthCheck": Property("map", "Check of the instances.", schema=_HEALTH_CHECK),
    "Instances": Property("list", "Ids of the instances.", update_allowed=True),
    "Listeners": Property(
        "list",
        "Ports of the load balancer.",
        required=True,
        schema=Property("map", "A port.", schema=_LISTENER),
    ),
    "AppCookieStickinessPolicy": Property("string", _UNUSED, implemented=False),
    "LBCookieStickinessPolicy": Property("string", _UNUSED, implemented=False),
    "SecurityGroups": Property(
        "list", "Security groups of the address. Requires version 2.29 of Octavia's API.", update_allowed=True
    ),
    "Subnets": Property(
        "list",
        "Subnet of the address; only the first is used. Default: that of the first instance, or of the only"
        " network of the project.",
    ),
}

ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "CanonicalHostedZoneName": Attribute("Always empty.", type="string"),
    "CanonicalHostedZoneNameID": Attribute("Always empty.", type="string"),
    "DNSName": Attribute("The address of the load balancer.", type="string"),
    "SourceSecurityGroup.GroupName": Attribute("Always empty.", type="string"),
    "SourceSecurityGroup.OwnerAlias": Attribute("Always empty.", type="string"),
}
