"""What others do to the objects of a stack before an action: named in the table of faults."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.errors import ProviderNotFound
from qa.acceptance.background import working

UNDONE_SECONDS: Final = 20.0  # after which an obstacle is removed
GONE_SECONDS: Final = 60.0

Ids = Mapping[str, str]  # the physical ids by the names of the resources
Preparation = Callable[[OpenStack, Ids], AbstractContextManager[None]]


@contextmanager
def deleted_server(admin: OpenStack, ids: Ids) -> Iterator[None]:
    """Delete a server."""
    admin.compute.delete(f"/servers/{ids['web2']}")
    until = time.monotonic() + GONE_SECONDS
    while admin.compute.find_one(f"/servers/{ids['web2']}") is not None and time.monotonic() < until:
        time.sleep(0.5)
    yield


@contextmanager
def server_in_error(admin: OpenStack, ids: Ids) -> Iterator[None]:
    """Set a server to ERROR."""
    admin.compute.post(f"/servers/{ids['web2']}/action", {"os-resetState": {"state": "error"}})
    yield


@contextmanager
def locked_server(admin: OpenStack, ids: Ids) -> Iterator[None]:
    """Lock a server for a while."""
    path = f"/servers/{ids['web2']}/action"
    admin.compute.post(path, {"lock": None})
    with _undone(lambda: admin.compute.post(path, {"unlock": None})):
        yield


@contextmanager
def foreign_port(admin: OpenStack, ids: Ids) -> Iterator[None]:
    """Keep a port on the network for a while."""
    body = {"network_id": ids["net"], "name": "foreign", "fixed_ips": []}
    port = admin.network.post("/ports", {"port": body})["port"]["id"]
    with _undone(lambda: admin.network.delete(f"/ports/{port}")):
        yield


@contextmanager
def detached_volume(admin: OpenStack, ids: Ids) -> Iterator[None]:
    """Detach a volume."""
    admin.compute.delete(f"/servers/{ids['web1']}/os-volume_attachments/{ids['volume']}")
    until = time.monotonic() + GONE_SECONDS
    path = f"/volumes/{ids['volume']}"
    while admin.block_storage.get(path)["volume"]["status"] != "available" and time.monotonic() < until:
        time.sleep(0.5)
    yield


@contextmanager
def no_quota(admin: OpenStack, _ids: Ids) -> Iterator[None]:
    """Take away the quota of servers for a while."""
    path = f"/os-quota-sets/{admin.cloud.session().get_project_id()}"
    instances = admin.compute.get(path)["quota_set"]["instances"]
    admin.compute.put(path, {"quota_set": {"instances": 0}})
    with _undone(lambda: admin.compute.put(path, {"quota_set": {"instances": instances}})):
        yield


@contextmanager
def _undone(undo: Callable[[], object]) -> Iterator[None]:
    """Undo a change after a while, at the latest after the block."""

    def wait_and_undo(over: threading.Event) -> None:
        over.wait(UNDONE_SECONDS)
        with suppress(ProviderNotFound):
            undo()

    with working(wait_and_undo):
        yield


PREPARATIONS: Final[Mapping[str, Preparation]] = {
    "delete a server": deleted_server,
    "server in error": server_in_error,
    "lock a server": locked_server,
    "foreign port": foreign_port,
    "detach the volume": detached_volume,
    "no quota": no_quota,
}
