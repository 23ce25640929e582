"""The common verbs of containers.

The name of a container is its id. Its metadata contain the request token: a container that was created by
another resource under the same name is not found, and not deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from orchestrator.clients.openstack.platform_services.object_store import ObjectStore
from orchestrator.errors import ProviderConflict, ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Created, Observation, ResourceType, Value
from orchestrator.resources.openstack.conflicts import temporary_conflicts
from orchestrator.resources.openstack.connection import openstack

TOKEN_HEADER: Final = "X-Container-Meta-Orchestrator-Token"  # noqa: S105 - the name of a header
UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f]")  # would end the header
NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # of a header
NOT_SUPPORTED: Final = "ResourceActionNotSupported"
DOMAIN_NAME: Final = Attribute("Host of the URL.", "string")
WEBSITE_URL: Final = Attribute("URL of the container.", "string")


class ContainerType(ResourceType):
    """A container. Swift's requests take effect before they are answered."""

    service = "swift"
    endpoint_type = "object-store"
    live_show = True

    def headers(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, str]:
        """Return the headers of the container."""
        raise NotImplementedError(self.name)

    def container_name(self, ctx: Context, props: Mapping[str, Value]) -> str:
        """Return the name of the container."""
        return ctx.physical_name

    def not_empty(self, physical_id: str) -> str:
        """Return the reason why a container with objects is not deleted."""
        raise NotImplementedError(self.name)

    def purges(self, props: Mapping[str, Value]) -> bool:
        """Return whether the objects are deleted with the container."""
        return False

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the container, or take over a container with the name, as Heat does."""
        name = self.container_name(ctx, props)
        self._put(ctx, name, props, ctx.token)
        return Created(name, {"token": ctx.token})

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the container if it has the token."""
        name = self.container_name(ctx, ctx.properties)
        found = swift(ctx).container(name)
        return name if found is not None and found.get(TOKEN_HEADER.lower()) == token else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the headers of the container; while it is deleted, name the step that deletes its objects."""
        store = swift(ctx)
        found = store.container(physical_id)
        if found is None or (ctx.action == "DELETE" and _is_foreign(ctx, found)):
            return Observation(exists=False)
        if ctx.action == "DELETE":
            step = "purge" if self.purges(ctx.properties) else ""
            return Observation(exists=True, ready=False, step=step, retry_after=0.0 if step else 3.0)
        return Observation(
            exists=True,
            attributes=self.urls(store, physical_id),
            properties=self.observed_properties(ctx, found),
        )

    def observed_properties(self, ctx: Context, found: Mapping[str, str]) -> JsonObject:
        """Return the actual values of given properties."""
        return {}

    def urls(self, store: ObjectStore, physical_id: str) -> JsonObject:
        """Return the attributes that follow from the URL of the account."""
        url = store.url()
        values = {
            "DomainName": urlsplit(url).hostname,
            "WebsiteURL": f"{url}/{physical_id}",
            "RootURL": url,
        }
        return {name: value for name, value in values.items() if name in self.attributes}

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Delete the container; objects are deleted before it in further steps, or are an error.

        Raises:
            ProviderError: the container has objects, and they are not to be deleted.
        """
        store = swift(ctx)
        found = store.container(physical_id)
        if found is None or _is_foreign(ctx, found):
            return
        try:
            store.delete_container(physical_id)
        except ProviderConflict:
            if self.purges(ctx.properties):
                return
            if store.objects(physical_id, 1):
                reason = f"{self.not_empty(physical_id)} is not supported for resource."
                raise ProviderError(reason, NOT_SUPPORTED) from None
            with temporary_conflicts():  # Swift still counts deleted objects
                raise

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Delete some objects, and the container after the last object."""
        store = swift(ctx)
        names = store.objects(physical_id)
        for name in names:
            store.delete_object(physical_id, name)
        with temporary_conflicts():
            if not store.objects(physical_id, 1):
                store.delete_container(physical_id)
        return None

    def release(self, ctx: Context, physical_id: str) -> None:
        """Nothing to give up: a replacement of the same name takes over the container."""

    def reclaim(self, ctx: Context, physical_id: str, props: Mapping[str, Value]) -> None:
        """Take the container back from a replacement of the same name."""
        found = swift(ctx).container(physical_id)
        if found is None or _is_foreign(ctx, found):
            self._put(ctx, physical_id, props, str(ctx.data.get("token") or ""))

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the headers as `show`."""
        return {"show": own_headers(swift(ctx).container(physical_id))}

    def _put(self, ctx: Context, name: str, props: Mapping[str, Value], token: str) -> None:
        headers = self.headers(ctx, props)
        for key, value in headers.items():
            if fault := header_fault(key, value):
                raise ProviderError(fault, "ValueError")
        swift(ctx).put_container(name, headers | {TOKEN_HEADER: token})


def swift(ctx: Context) -> ObjectStore:
    """Return Swift, called with the stack's credential."""
    return openstack(ctx).object_store


def own_headers(found: Mapping[str, str] | None) -> JsonObject:
    """Return the headers of a container without the token."""
    return {name: value for name, value in (found or {}).items() if name != TOKEN_HEADER.lower()}


def header_fault(key: str, value: str) -> str:
    """Return the fault of a header, "" for none."""
    if not NAME.fullmatch(key):
        return f"{key!r} is no name of a header"
    return f"the value of {key} contains control characters" if UNSAFE.search(value) else ""


def _is_foreign(ctx: Context, found: Mapping[str, str]) -> bool:
    """Return whether another resource has taken over the container."""
    own, actual = ctx.data.get("token"), found.get(TOKEN_HEADER.lower())
    return bool(own and actual and own != actual)
