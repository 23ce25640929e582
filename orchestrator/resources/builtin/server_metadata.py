"""The metadata of a server in an object store (POLL_TEMP_URL): its agent polls a temporary URL.

Every publication for the server writes the object again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Fault, Value
from orchestrator.resources.builtin.temporary_urls import (
    has_object_store,
    object_store,
    remove_container,
    temporary_url,
)
from orchestrator.resources.software_api import MetadataObject

AGENT: Final = "os-collect-config"  # the key of the metadata under which agents read their own settings
DEPLOYMENTS: Final = "deployments"
TRANSPORT: Final = "software_config_transport"
PLACE: Final = "deployment_swift_data"
TEMP_URL: Final = "POLL_TEMP_URL"
QUEUE: Final = "ZAQAR_MESSAGE"
MAX_WRITES: Final = 10  # of a publication, while other publications write too


def transport_faults(properties: Mapping[str, Value]) -> Sequence[Fault]:
    """Refuse the transport by a message queue."""
    if properties.get(TRANSPORT) == QUEUE:
        return (Fault(f"{QUEUE} is not supported here.", TRANSPORT),)
    return ()


def require_object_store(_type: Any, ctx: Context, props: Mapping[str, Value]) -> Sequence[Fault]:
    """Require an object store for the transport through it: the verb `inquire` of a server."""
    if props.get(TRANSPORT) != TEMP_URL or has_object_store(ctx):
        return ()
    return (Fault(f"{TEMP_URL} requires an object store, and the cloud has none.", TRANSPORT),)


def prepare(ctx: Context, props: Mapping[str, Value], server_id: str) -> None:
    """Choose the object for a server with this transport, and record its URL."""
    if props.get(TRANSPORT) != TEMP_URL:
        return
    chosen = props.get(PLACE) or {}
    container, name = chosen.get("container") or ctx.physical_name, chosen.get("object") or server_id
    url = temporary_url(ctx, container, name, "GET")
    ctx.software.set_metadata_object(server_id, MetadataObject(container, name, url))


def collector(ctx: Context, server_id: str) -> JsonObject:
    """Return the settings of the agent: the URL of the object."""
    place = ctx.software.metadata_object(server_id)
    return {"metadata_url": None if place is None else place.url}


def write(ctx: Context, server_id: str, metadata: JsonMapping) -> None:
    """Write the object of a server, if it has one."""
    if (place := ctx.software.metadata_object(server_id)) is not None:
        object_store(ctx).put_object(place.container, place.name, json.dumps(metadata).encode())


def publish(ctx: Context, server_id: str) -> None:
    """Write the present deployments of a server into its object, if it has one.

    The object is read after each write: if another publication was faster, its write is repeated.
    """
    place = ctx.software.metadata_object(server_id)
    if place is None:
        return
    for _ in range(MAX_WRITES):
        deployments = list(ctx.software.published(server_id))
        content = object_store(ctx).object_content(place.container, place.name)
        metadata = json.loads(content) if content else {}
        if content and metadata.get(DEPLOYMENTS) == deployments:
            return
        write(ctx, server_id, {**metadata, DEPLOYMENTS: deployments})


def remove(ctx: Context, server_id: str) -> None:
    """Delete the object of a server, and its container unless the container has further objects."""
    place = ctx.software.metadata_object(server_id)
    if place is None:
        return
    if place.container == ctx.physical_name:
        remove_container(ctx, place.container)
    else:
        object_store(ctx).delete_object(place.container, place.name)
        if not object_store(ctx).objects(place.container, 1):
            remove_container(ctx, place.container)
    ctx.software.set_metadata_object(server_id, None)
