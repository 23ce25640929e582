"""OS::Swift::Container."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Fault, Property, Unique, Value
from orchestrator.resources.openstack.swift.container_type import (
    DOMAIN_NAME,
    WEBSITE_URL,
    ContainerType,
    header_fault,
    own_headers,
    swift,
)

READ, WRITE = "X-Container-Read", "X-Container-Write"
CONTAINER_META, ACCOUNT_META = "X-Container-Meta", "X-Account-Meta"
PURGE: Final = "PurgeOnDelete"
COUNTS: Final = {"ObjectCount": "x-container-object-count", "BytesUsed": "x-container-bytes-used"}


class Container(ContainerType):
    """A container for objects. Every change replaces it."""

    name = "OS::Swift::Container"
    support_version = "2014.1"
    unique = Unique((("name",),), "take over")
    properties = {
        "name": Property("string", "Name of the container. Default: the physical name."),
        READ: Property("string", "Access list for reading objects."),
        WRITE: Property("string", "Access list for writing objects."),
        CONTAINER_META: Property("map", "Metadata of the container.", default={}),
        ACCOUNT_META: Property("map", "Metadata that are added to the account of the project.", default={}),
        PURGE: Property(
            "boolean", "Whether a delete removes the objects; otherwise they prevent it.", default=False
        ),
    }
    attributes = {
        "DomainName": DOMAIN_NAME,
        "WebsiteURL": WEBSITE_URL,
        "RootURL": Attribute("URL of the account.", "string"),
        "ObjectCount": Attribute("Number of objects.", "integer", live=True),
        "BytesUsed": Attribute("Bytes in the objects.", "integer", live=True),
        "HeadContainer": Attribute("Headers of the container.", "map", live=True),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Refuse names that Swift would take for an object, and values that no header can have."""
        faults = []
        if "/" in str(properties.get("name") or ""):
            faults.append(Fault("The name of a container must not contain a slash.", "name"))
        for name in (CONTAINER_META, ACCOUNT_META):
            headers = _metadata(name, properties.get(name))
            faults += [Fault(text, name) for pair in headers.items() if (text := header_fault(*pair))]
        return faults

    def container_name(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the given name, or the physical name."""
        return props.get("name") or ctx.physical_name

    def headers(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, str]:
        """Return metadata and access lists."""
        access = {name: str(props[name]) for name in (READ, WRITE) if props.get(name) is not None}
        return _metadata(CONTAINER_META, props.get(CONTAINER_META)) | access

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the container, and add metadata to the account."""
        created = super().create(ctx, props)
        if account := _metadata(ACCOUNT_META, props.get(ACCOUNT_META)):
            swift(ctx).set_account_headers(account)
        return created

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the container if it has the token, and the account the metadata; otherwise the create is
        repeated.
        """
        found = super().find(ctx, token)
        given = ctx.properties.get(ACCOUNT_META)
        complete = not found or not given or self._account_metadata(ctx, given) == given
        return found if complete else None

    def observed_properties(self, ctx: Context, found: Mapping[str, str]) -> JsonObject:
        """Return access lists and metadata, as far as the template sets them."""
        values: JsonObject = {
            name: found.get(name.lower()) for name in (READ, WRITE) if ctx.properties.get(name)
        }
        if given := ctx.properties.get(CONTAINER_META):
            values[CONTAINER_META] = _given(CONTAINER_META, given, found)
        if given := ctx.properties.get(ACCOUNT_META):
            values[ACCOUNT_META] = self._account_metadata(ctx, given)
        return values

    def _account_metadata(self, ctx: Context, given: Mapping[str, Value]) -> JsonObject:
        return _given(ACCOUNT_META, given, swift(ctx).account())

    def purges(self, props: Mapping[str, Value]) -> bool:
        """Return whether the objects are deleted with the container."""
        return bool(props.get(PURGE))

    def not_empty(self, physical_id: str) -> str:
        """Return Heat's words."""
        return f"Deleting non-empty container ({physical_id}) when {PURGE} is False"

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the headers, and counts from them; null without the container."""
        found = swift(ctx).container(physical_id)
        if found is None:
            return dict.fromkeys(names)
        counts = {name: int(found.get(header) or 0) for name, header in COUNTS.items()}
        return {**counts, "HeadContainer": own_headers(found), "show": own_headers(found)}


def _metadata(prefix: str, given: Mapping[str, Value] | None) -> dict[str, str]:
    """Return metadata as headers."""
    return {f"{prefix}-{key}": str(value) for key, value in (given or {}).items()}


def _given(prefix: str, given: Mapping[str, Value], found: Mapping[str, str]) -> JsonObject:
    """Return the actual values of given metadata; values that are no texts are stored as texts."""
    actual = {key: found.get(f"{prefix}-{key}".lower()) for key in given}
    return {
        key: given[key] if value == str(given[key]) else value
        for key, value in actual.items()
        if value is not None
    }
