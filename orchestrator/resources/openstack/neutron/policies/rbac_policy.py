"""OS::Neutron::RBACPolicy: access of another project to an object.

Neutron accepts a policy only once, so that it is found by its properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.clients.openstack.networking.network import (
    ADDRESS_SCOPES,
    NETWORKS,
    QOS_POLICIES,
    RBAC_POLICIES,
    SECURITY_GROUPS,
    SUBNET_POOLS,
)
from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Property, Value
from orchestrator.resources.openstack.creation_marks import EqualValues
from orchestrator.resources.openstack.neutron.base import NeutronType, network
from orchestrator.resources.openstack.property_rules import Refused
from orchestrator.schema.constraints import AllowedValues
from orchestrator.schema.translation import Resolve

SHARED: Final = "access_as_shared"
EXTERNAL: Final = "access_as_external"
OBJECTS: Final[Mapping[str, Collection]] = {
    "network": NETWORKS,
    "qos_policy": QOS_POLICIES,
    "security_group": SECURITY_GROUPS,
    "address_scope": ADDRESS_SCOPES,
    "subnetpool": SUBNET_POOLS,
}


class RBACPolicy(NeutronType):
    """Access of another project to a network, a QoS policy or another object."""

    name = "OS::Neutron::RBACPolicy"
    support_version = "6.0.0"
    collection = RBAC_POLICIES
    mark = EqualValues(("object_id", "action", "target_tenant"))
    rules = (
        Refused(
            f'Invalid action "{{action}}" for object type {{object_type}}. Valid actions: {SHARED}',
            lambda p: p.get("action") == EXTERNAL and p.get("object_type") not in (None, "network"),
            "action",
            alone=False,
        ),
    )
    properties = {
        "object_type": Property(
            "string", "Type of the object.", required=True, constraints=(AllowedValues(tuple(OBJECTS)),)
        ),
        "target_tenant": Property(
            "string", "Project that gets access, `*` for all.", required=True, update_allowed=True
        ),
        "action": Property(
            "string", "Kind of access.", required=True, constraints=(AllowedValues((SHARED, EXTERNAL)),)
        ),
        "object_id": Property("string", "Name or id of the object.", required=True),
        "tenant_id": Property("string", "Project that owns the policy. Only administrators may set it."),
    }

    translation = (Resolve(("object_id",), "neutron", entity_of="object_type"),)

    def request_values(self, ctx: Context, props: Mapping[str, Value], names: Iterable[str]) -> JsonObject:
        """Return the attributes of a request, with the id of the object."""
        values = super().request_values(ctx, props, names)
        if "object_id" in values:
            values["object_id"] = self._object_id(ctx, props)
        return values

    def _object_id(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the id of the object that the template names."""
        return network(ctx).id_of(OBJECTS[props["object_type"]], props["object_id"])
