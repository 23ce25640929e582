"""The release of ports and addresses of a server that is replaced, and their return on a rollback.

A port cannot be attached to two servers, and an address cannot be used twice. The old server gives up the
template's ports, and the fixed addresses of its own ports and of nova's ports.

A deleted server may hold ports for a while: Nova deletes a server without a host at once. A host that builds
it at that moment binds its ports all the same, and frees them when it notices the deletion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.clients.openstack.networking.network import PORTS
from orchestrator.errors import ProviderConflict
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Observation
from orchestrator.resources.openstack.conflicts import repeated_conflicts
from orchestrator.resources.openstack.connection import openstack
from orchestrator.resources.openstack.creation_times import CLOCK_SECONDS, parsed_time
from orchestrator.resources.openstack.nova.base import compute
from orchestrator.resources.openstack.nova.server import interfaces, state

Entry = Mapping[str, Any]
FREED_SECONDS: Final = 120.0  # after its last change, until a port of a deleted server counts as in use
ATTACH_SECONDS: Final = 120.0  # after its last change, until a port counts as attached without being active
RETRY_SECONDS: Final = 2.0


def release(ctx: Context, server_id: str) -> None:
    """Request the release; repeated requests have no further effect. A build must end first: Nova detaches
    nothing before, and attaches the ports late.
    """
    server = compute(ctx).current_server(server_id)
    if server is not None and state.is_changing(server):
        return
    for port_id in _attached(ctx, server_id):
        _detach(ctx, server_id, port_id)
    for port in _own_ports(ctx):
        if port["entry"].get("fixed_ip"):
            openstack(ctx).network.update(PORTS, port["id"], {"fixed_ips": []})


def _detach(ctx: Context, server_id: str, port_id: str) -> None:
    """Request the detachment. Nova refuses it for a server in error; neutron then frees the port. Nova also
    refuses it for a server with a task in progress; a later request repeats it.
    """
    try:
        compute(ctx).detach_interface(server_id, port_id)
    except ProviderConflict:
        server = compute(ctx).current_server(server_id)
        if server is not None and state.is_changing(server):
            return
        if server is None or state.status_of(server) != "ERROR":
            raise
        openstack(ctx).network.update(PORTS, port_id, {"device_id": "", "device_owner": ""})


def observe_release(ctx: Context, server: Mapping[str, Any]) -> Observation:
    """Return the observation of a server that is to release its ports and addresses."""
    if state.is_changing(server):
        return replace(state.waiting(server), released=False)
    return Observation(exists=True, released=not _attached(ctx, server["id"]))


def reclaim(ctx: Context, server_id: str) -> None:
    """Attach what was released, and restore the addresses of own ports."""
    for port in _own_ports(ctx):
        entry = port["entry"]
        if entry.get("fixed_ip"):
            address = {"ip_address": entry["fixed_ip"]}
            if entry.get("subnet"):
                address["subnet_id"] = entry["subnet"]
            openstack(ctx).network.update(PORTS, port["id"], {"fixed_ips": [address]})
    released = _released_entries(ctx)
    attached = compute(ctx).interfaces(server_id)
    for entry, port_id in zip(released, interfaces.matched_ports(released, [], attached), strict=True):
        if port_id is None:
            with awaiting_ports(ctx, [entry.get("port")]):
                compute(ctx).attach_interface(server_id, interfaces.attachment(entry, []))


def observe_reclaim(ctx: Context, server: Mapping[str, Any]) -> Observation:
    """Return the observation of an active server that is to have its ports again."""
    attached = {one["port_id"]: one for one in compute(ctx).interfaces(server["id"])}
    ports = interfaces.matched_ports(_released_entries(ctx), [], list(attached.values()))
    if all(port and is_attached(ctx, attached[port]) for port in ports):
        return Observation(exists=True)
    reason = "interfaces are being attached"
    return Observation(exists=True, ready=False, busy=True, retry_after=RETRY_SECONDS, reason=reason)


def is_attached(ctx: Context, interface: Mapping[str, Any]) -> bool:
    """Return whether a listed interface is attached. Nova lists a port before the hypervisor attaches it, and
    frees it again if that fails. A port of a disabled network, for example, never becomes active.
    """
    if interface.get("port_state") == "ACTIVE":
        return True
    port = openstack(ctx).network.find(PORTS, interface["port_id"])
    return port is not None and not (port.get("admin_state_up") and _has_changed(port, ATTACH_SECONDS))


def _attached(ctx: Context, server_id: str) -> list[str]:
    """Return the attached ports that are to be released."""
    released = _released_entries(ctx)
    if not released:
        return []
    attached = compute(ctx).interfaces(server_id)
    return [port for port in interfaces.matched_ports(released, [], attached) if port]


def _released_entries(ctx: Context) -> list[JsonObject]:
    """Return the entries with the template's ports, and those with an address on a port of nova."""
    return [
        entry
        for entry in ctx.data.get("networks") or interfaces.entries(ctx.properties)
        if entry.get("port") or (entry.get("fixed_ip") and not interfaces.needs_own_port(entry))
    ]


def _own_ports(ctx: Context) -> list[JsonObject]:
    return list(ctx.data.get("ports") or ())


def awaiting_ports(ctx: Context, port_ids: Sequence[str | None]) -> AbstractContextManager[None]:
    """Report the conflict of a request as temporary while a deleted server holds one of its ports
    (`repeated_conflicts`).
    """
    return repeated_conflicts(
        lambda message: any(id_ and id_ in message and _is_being_freed(ctx, id_) for id_ in port_ids),
        RETRY_SECONDS,
    )


def _is_being_freed(ctx: Context, port_id: str) -> bool:
    """Whether the holder of a port does not exist, or has just freed it."""
    port: dict[str, Any] = openstack(ctx).network.find(PORTS, port_id) or {}
    if not _has_changed(port, FREED_SECONDS):
        return False
    holder, owner = port.get("device_id"), port.get("device_owner") or ""
    if owner and not owner.startswith("compute:"):
        return False  # of a router, for example
    return not holder or compute(ctx).current_server(holder) is None


def _has_changed(port: Mapping[str, Any], seconds: float) -> bool:
    """Whether a port has changed within so many seconds."""
    changed = parsed_time(port.get("updated_at"))
    return changed is not None and (datetime.now(UTC) - changed).total_seconds() <= seconds + CLOCK_SECONDS
