"""OS::Heat::SwiftSignalHandle: a temporary URL for signals (docs/internals/resource-types.md §A8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.resources.base import Attribute, Context, Created, Observation, Value
from orchestrator.resources.builtin.temporary_urls import temporary_url
from orchestrator.resources.openstack.swift.container_type import ContainerType, swift

INITIAL: Final = b"in_progress"  # content of the object before the first signal
ENDPOINT: Final = "endpoint"


class SwiftSignalHandle(ContainerType):
    """Receives signals as versions of an object in Swift; its reference id is the URL."""

    name = "OS::Heat::SwiftSignalHandle"
    support_version = "2014.2"
    can_check = False  # a handle cannot fail
    attributes = {
        "token": Attribute("Empty: the URL contains its signature.", type="string"),
        ENDPOINT: Attribute("The URL for signals.", type="string", secret=True),
        "curl_cli": Attribute(
            'A curl command that signals; add --data-binary \'{"status": "SUCCESS"}\'.',
            type="string",
            secret=True,
        ),
    }

    def headers(self, ctx: Context, props: Mapping[str, Value]) -> dict[str, str]:
        """Keep every content of an object, so that a URL receives several signals."""
        return {"X-Versions-Location": ctx.physical_name}

    def purges(self, props: Mapping[str, Value]) -> bool:
        """Delete the signals with the container."""
        return True

    def not_empty(self, physical_id: str) -> str:
        """Return the reason why a container with objects is not deleted: there is none."""
        return ""

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the container, and an object for the signals."""
        created = super().create(ctx, props)
        swift(ctx).put_object(created.physical_id, created.physical_id, INITIAL)
        return replace(created, data={**created.data, ENDPOINT: _url(ctx)}, secret=True)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Return the URL, as attributes and as the reference id."""
        observation = super().observe(ctx, physical_id)
        if not observation.exists or ctx.action == "DELETE":
            return observation
        url = ctx.data.get(ENDPOINT) or _url(ctx)  # a handle that was found has no data
        attributes = {"token": "", ENDPOINT: url, "curl_cli": f"curl -i -X PUT '{url}'"}
        return replace(observation, attributes=attributes, reference_id=url)


def _url(ctx: Context) -> str:
    return temporary_url(ctx, ctx.physical_name, ctx.physical_name)
