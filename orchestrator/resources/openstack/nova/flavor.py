"""OS::Nova::Flavor (docs/internals/resource-types.md §C 19).

Without `flavorid`, the id follows from the request token, so that `find` recognizes the flavor of a lost
create. With `flavorid`, a flavor with this id and the same values is taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.clients.openstack.compute import FLAVORS
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Property,
    Unique,
    Value,
)
from orchestrator.resources.openstack.collection_type import CollectionType, CreationMark
from orchestrator.resources.openstack.specs_and_access import PROJECTS_FIELD, SPECS_FIELD, Access, SpecsType
from orchestrator.resources.software_api import id_of
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule

PUBLIC: Final = "os-flavor-access:is_public"


def _id(ctx: Context) -> str:
    return str(ctx.properties.get("flavorid") or id_of(ctx.token))


class TokenInId(CreationMark):
    """The id follows from the token, unless the template sets it."""

    def find(self, type_: CollectionType, ctx: Context, token: str) -> Sequence[str]:
        """Return the flavor with the id, if it has the values."""
        flavor = type_.api(ctx).find(FLAVORS, _id(ctx))
        return [str(flavor["id"])] if flavor is not None and self.is_own(type_, ctx, flavor) else []

    def is_own(self, type_: CollectionType, ctx: Context, actual: JsonMapping) -> bool:
        """Return whether a flavor has the name and the size of the resource, as far as they are known."""
        props = ctx.properties
        sizes = all(actual.get(name) == props[name] for name in ("ram", "vcpus") if name in props)
        return sizes and actual.get("name") == (props.get("name") or ctx.physical_name)


class Flavor(SpecsType):
    """A size of servers. Requires the role of an administrator."""

    name = "OS::Nova::Flavor"
    support_version = "2014.2"
    service = "nova"
    endpoint_type = "compute"
    collection = FLAVORS
    mark = TokenInId()
    checks_owner = True
    noun = "flavor"
    specs_path = "os-extra_specs"
    access = Access(
        "os-flavor-access", "flavor_access", "tenant_id", "tenant", "addTenantAccess", "removeTenantAccess"
    )
    public_key = PUBLIC
    specs_property = "extra_specs"
    projects_property = "tenants"
    unique = Unique((("name",), ("flavorid",)), "delete", searched=True)
    fields = {
        "flavorid": "id",
        "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
        "is_public": PUBLIC,
        "extra_specs": SPECS_FIELD,
        "tenants": PROJECTS_FIELD,
    }
    properties: ClassVar[Mapping[str, Property]] = {
        "name": Property("string", "The name of the flavor."),
        "flavorid": Property("string", "The id of the flavor."),
        "ram": Property("integer", "Memory in MiB.", required=True),
        "vcpus": Property("integer", "Number of virtual processors.", required=True),
        "disk": Property("integer", "Size of the root disk in GiB.", default=0),
        "swap": Property("integer", "Size of the swap disk in MiB.", default=0),
        "ephemeral": Property("integer", "Size of a further local disk in GiB.", default=0),
        "rxtx_factor": Property("number", "Factor of the network bandwidth.", default=1.0),
        "extra_specs": Property("map", "Requirements of the hosts.", update_allowed=True),
        "is_public": Property("boolean", "Whether every project may use the flavor.", default=True),
        "tenants": Property(
            "list",
            "Projects that may use a private flavor.",
            default=[],
            update_allowed=True,
            schema=Property("string", "Name or id of a project.", constraints=(Custom("keystone.project"),)),
        ),
    }
    translation: ClassVar[tuple[Rule, ...]] = (Resolve(("tenants",), "keystone.project"),)
    attributes: ClassVar[Mapping[str, Attribute]] = {
        "is_public": Attribute("Whether every project may use the flavor.", type="boolean"),
        "extra_specs": Attribute("The requirements of the hosts.", type="map"),
    }

    def new_values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of a create request, with an id."""
        return {**super().new_values(ctx, props), "id": _id(ctx)}
