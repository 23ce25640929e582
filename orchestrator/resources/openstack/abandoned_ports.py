"""Ports that nova leaves bound to a server that it has deleted."""

from __future__ import annotations

from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.clients.openstack.networking.network import PORTS
from orchestrator.errors import ProviderError


def remove_port(services: OpenStack, port_id: str) -> None:
    """Delete a port, if it exists.

    If neutron or keystone does not answer while nova deletes a server, its ports stay bound, and neutron
    forbids members to delete them. They may unbind them, which is done if nova does not know the server.
    """
    try:
        services.network.remove(PORTS, port_id)
    except ProviderError as error:
        if error.kind != "Forbidden" or not _is_abandoned(services, port_id):
            raise
        services.network.update(PORTS, port_id, {"device_id": "", "device_owner": ""})
        services.network.remove(PORTS, port_id)


def _is_abandoned(services: OpenStack, port_id: str) -> bool:
    port = services.network.find(PORTS, port_id) or {}
    server_id = port.get("device_id")
    bound = bool(server_id) and str(port.get("device_owner")).startswith("compute:")
    return bound and services.compute.current_server(str(server_id)) is None
