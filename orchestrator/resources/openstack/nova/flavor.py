"""OS::Nova::Flavor (docs/internals/resource-types.md §C 19).

Without `flavorid`, the id follows from the request token, so that `find` recognizes the flavor of a lost
create. With `flavorid`, a flavor with this id and the same values is taken for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    Unique,
    Value,
)
from orchestrator.resources.openstack.nova.base import NovaType, compute
from orchestrator.resources.openstack.settings import as_texts, equal_settings
from orchestrator.resources.openstack.specs_and_access import apply_access, apply_specs
from orchestrator.resources.software_api import id_of
from orchestrator.schema.constraints import Custom
from orchestrator.schema.translation import Resolve, Rule

PUBLIC: Final = "os-flavor-access:is_public"
FIELDS: Final = {
    "ram": "ram",
    "vcpus": "vcpus",
    "disk": "disk",
    "swap": "swap",
    "ephemeral": "OS-FLV-EXT-DATA:ephemeral",
    "rxtx_factor": "rxtx_factor",
    "is_public": PUBLIC,
}


class Flavor(NovaType):
    """A size of servers. Requires the role of an administrator."""

    name = "OS::Nova::Flavor"
    support_version = "2014.2"
    unique = Unique((("name",), ("flavorid",)), "delete", searched=True)
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

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A public flavor has no list of projects."""
        if properties.get("is_public") and properties.get("tenants"):
            return (Fault('Can not specify property "tenants" if the flavor is public.', alone=True),)
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the flavor; specs and projects are further steps."""
        flavor: JsonObject = {"name": props.get("name") or ctx.physical_name, "id": _id(ctx, props)}
        flavor |= {key: props[name] for name, key in FIELDS.items() if name in props}
        return Created(compute(ctx).flavors.create(flavor)["id"])

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the flavor with the id of this token, or with the given id and values."""
        flavor = compute(ctx).flavors.get(_id(ctx, ctx.properties))
        return str(flavor["id"]) if flavor is not None and _is_own(ctx, flavor) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the flavor, and compare its specs and projects."""
        nova = compute(ctx)
        flavor = nova.flavors.get(physical_id)
        if flavor is None or ctx.action == "DELETE":
            return Observation(exists=flavor is not None and _is_own(ctx, flavor), ready=False)
        specs, public = nova.flavors.specs(physical_id), flavor.get(PUBLIC)
        shown = {"is_public": public, "extra_specs": specs}
        actual: JsonObject = {"extra_specs": specs}
        wanted = set(ctx.properties.get("tenants") or ())
        if not public:
            actual["tenants"] = sorted(nova.flavors.projects(physical_id))
        changing = ctx.action in ("CREATE", "UPDATE")
        differs = specs != as_texts(ctx.properties.get("extra_specs")) or (
            not public and wanted != set(actual["tenants"])
        )
        step = "configure" if changing and differs else ""
        return Observation(exists=True, ready=not step, step=step, attributes=shown, properties=actual)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Nothing to request: `observe` reports the step."""
        return Created(physical_id)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the specs and the projects."""
        flavors = compute(ctx).flavors
        apply_specs(flavors, physical_id, as_texts(props.get("extra_specs")))
        if not props.get("is_public", True):
            apply_access(flavors, physical_id, props.get("tenants") or ())
        return None

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal."""
        return equal_settings(name, before, after, members="tenants", texts="extra_specs")

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the flavor, unless it has other values: then it belongs to another user."""
        flavors = compute(ctx).flavors
        flavor = flavors.get(physical_id)
        if flavor is not None and _is_own(ctx, flavor):
            flavors.delete(physical_id)

    def raw(self, ctx: Context, physical_id: str) -> JsonObject | None:
        """Return nova's view of the flavor."""
        return compute(ctx).flavors.get(physical_id)


def _is_own(ctx: Context, flavor: Mapping[str, Value]) -> bool:
    """Return whether a flavor has the name and the size of the resource, as far as they are known."""
    props = ctx.properties
    sizes = all(flavor.get(FIELDS[name]) == props[name] for name in ("ram", "vcpus") if name in props)
    return sizes and flavor.get("name") == (props.get("name") or ctx.physical_name)


def _id(ctx: Context, props: Mapping[str, Value]) -> str:
    return str(props.get("flavorid") or id_of(ctx.token))
