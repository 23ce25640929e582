"""The common verbs of Keystone's types: an object with attributes that follow from properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from orchestrator.clients.openstack.identity import TOKEN_ATTRIBUTE, IdentityObjects
from orchestrator.errors import ProviderNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.resources.openstack.connection import openstack

CATALOG_NAME = "identity"


class KeystoneType(ResourceType):
    """An object of Keystone. Its requests take effect before they are answered."""

    service = "keystone"
    endpoint_type = CATALOG_NAME
    live_show = True
    support_message = "Supported versions: keystone v3"

    objects: ClassVar[str]  # the attribute of `Identity` with the objects of this kind
    # By property: the attribute of the object.
    fields: ClassVar[Mapping[str, str]] = {}
    unreadable: ClassVar[frozenset[str]] = frozenset()  # properties that Keystone does not report
    has_name = True  # with the physical name as the default

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object."""
        created = self.objects_of(ctx).create(self.values(ctx, props), ctx.token)
        return Created(created["id"])

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the objects with the token."""
        return self.objects_of(ctx).with_token(token, **self.search(ctx)) or None

    def search(self, ctx: Context) -> dict[str, str]:
        """Return attributes that narrow the search for the object of a lost response."""
        values = self.values(ctx, ctx.properties)
        return {name: values[name] for name in ("name", "domain_id") if values.get(name)}

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        found = self.objects_of(ctx).find(physical_id)
        if found is None:
            return Observation(exists=False)
        return Observation(
            exists=True,
            attributes={name: found.get(name) for name in self.attributes},
            properties=self.observed_properties(ctx, found),
        )

    def observed_properties(self, ctx: Context, found: JsonMapping) -> JsonObject:
        """Return the values of the properties that the template sets; the others belong to Keystone."""
        return {
            name: found.get(field)
            for name, field in self.fields.items()
            if name in ctx.properties and name not in self.unreadable
        }

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Read the object as `show`."""
        found = self.objects_of(ctx).find(physical_id) or {}
        return {"show": {name: value for name, value in found.items() if name != TOKEN_ATTRIBUTE}}

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Change the object."""
        names = changed & self.fields.keys()
        if names:
            values = self.values(ctx, props)
            self.objects_of(ctx).update(
                physical_id,
                {field: values.get(field) for name, field in self.fields.items() if name in names},
            )
        return Created(physical_id, ctx.data)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the object."""
        self.objects_of(ctx).remove(physical_id)

    def rename(self, ctx: Context, physical_id: str, name: str) -> None:
        """Change the name of the object."""
        with suppress(ProviderNotFound):
            self.objects_of(ctx).update(physical_id, {"name": name})

    def objects_of(self, ctx: Context) -> IdentityObjects:
        """Return the objects of this kind."""
        objects: IdentityObjects = getattr(openstack(ctx).identity, self.objects)
        return objects

    def values(self, ctx: Context, props: Mapping[str, Value]) -> JsonObject:
        """Return the attributes of the object; the physical name is the default of a name."""
        values = {field: props[name] for name, field in self.fields.items() if props.get(name) is not None}
        if self.has_name:
            values["name"] = props.get("name") or ctx.physical_name
        return values
