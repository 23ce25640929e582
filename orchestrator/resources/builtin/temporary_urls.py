"""Signals through temporary URLs of an object store: an agent without credentials puts an object, and
observations read it.

Each resource has its own container, so that an agent that signals after the delete gets 404.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote, urlsplit

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.platform_services.object_store import ObjectStore
from orchestrator.errors import ProviderConflict, ProviderError, ProviderInUse
from orchestrator.resources.base import Context
from orchestrator.resources.software_api import id_of

FIRST_POLL_SECONDS: Final = 2.0
SLOWEST_POLL_SECONDS: Final = 30.0
MAX_SIGNAL_BYTES: Final = 1024 * 1024  # as of a signal to the API
TOO_LARGE: Final = f"more than {MAX_SIGNAL_BYTES // 1024} KiB were signalled"


def object_store(ctx: Context) -> ObjectStore:
    """Return the object store, called with the stack's credential."""
    owner = ctx.location.tree or ctx.location.stack_id
    return OpenStack(ctx.cloud, ctx.deadline_seconds, owner=owner, calls=ctx.calls).object_store


def temporary_url(ctx: Context, container: str, name: str, method: str = "PUT") -> str:
    """Return the temporary URL of an object; the container is created unless it exists.

    All workers propose the same key for an account without one, so that none invalidates the URL of another.
    """
    store = object_store(ctx)
    store.put_container(container, {})
    holder = id_of(f"{ctx.software.place.project_id} temporary URLs")
    return store.temporary_url(container, name, method, ctx.software.credentials(holder).secret)


def has_object_store(ctx: Context) -> bool:
    """Return whether the cloud has an object store."""
    try:
        return bool(ctx.cloud is not None and object_store(ctx).url())
    except ProviderError as error:
        if error.kind != "EndpointNotFound":
            raise
        return False


def place_of(url: str) -> tuple[str, str, str]:
    """Return the path of the account, the container and the object of a URL; "" for missing parts."""
    parts = unquote(urlsplit(url).path).rsplit("/", 2)
    account, container, name = ["", "", *parts][-3:]
    return account, container, name


def poll_seconds(ctx: Context) -> float:
    """Return the time until the next observation: longer for a longer wait."""
    return min(FIRST_POLL_SECONDS + ctx.elapsed_seconds / 20, SLOWEST_POLL_SECONDS)


def remove_container(ctx: Context, container: str) -> None:
    """Delete a container with its objects; a container that does not exist is no error."""
    store = object_store(ctx)
    while names := store.objects(container):
        for name in names:
            store.delete_object(container, name)
    try:
        store.delete_container(container)
    except ProviderConflict as error:  # Swift still counts deleted objects
        raise ProviderInUse(str(error), error.kind) from error
