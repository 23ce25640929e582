"""Objects that belong together: a server and its port, a volume and its attachment."""

from __future__ import annotations

from simulated_openstack.cloud import SimulatedCloud
from tests.openstack.observation.damage import ATTACHMENT, PORT, SERVER, VOLUME
from tests.openstack.observation.ledger import Target

Place = tuple[int, str]


def place_of(target: Target) -> Place:
    """Return the common identity of a server and its port, and a volume and its attachment."""
    family = "disk" if target.type in (VOLUME, ATTACHMENT) else "server"
    return target.stack_id, family + target.name.lstrip("abcdefghijklmnopqrstuvwxyz")


def is_apart(cloud: SimulatedCloud, target: Target) -> bool:
    """Whether no volume is attached to the server or the server of the port, or the volume to a server."""
    if target.type == VOLUME:
        return not cloud.cinder.volumes.found(target.physical_id)["attachments"]
    if target.type == PORT:
        port = cloud.neutron.ports.table.get(target.physical_id)
        server = cloud.nova.servers.table.get(port["device_id"]) if port is not None else None
    else:
        server = cloud.nova.servers.table.get(target.physical_id) if target.type == SERVER else None
    return server is None or not server["volumes"]
