"""Damage that an administrator, or a fault of the cloud, causes to objects of the simulated cloud."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from orchestrator.json_types import JsonObject
from simulated_openstack.cloud import SimulatedCloud


class Damage(NamedTuple):
    """A kind of damage to objects of a type, and the verdict that it must get."""

    kind: str
    type: str
    verdict: str
    properties: tuple[str, ...]  # that are reported, if it is a change
    inflict: Callable[[SimulatedCloud, str], object]

    @property
    def name(self) -> str:
        """A short name."""
        return f"{self.type.rpartition('::')[2].lower()} {self.kind}"


def _server(cloud: SimulatedCloud, id_: str) -> JsonObject:
    row = cloud.nova.servers.table.get(id_)
    assert row is not None, f"no server {id_}"
    return row


def _port(cloud: SimulatedCloud, id_: str) -> JsonObject:
    row = cloud.neutron.ports.table.get(id_)
    assert row is not None, f"no port {id_}"
    return row


def _volume(cloud: SimulatedCloud, id_: str) -> JsonObject:
    row = cloud.cinder.volumes.table.get(id_)
    assert row is not None, f"no volume {id_}"
    return row


def _delete_server(cloud: SimulatedCloud, id_: str) -> None:
    cloud.nova.servers.begin_delete(_server(cloud, id_))
    cloud.schedule.run_due()


def _fail_server(cloud: SimulatedCloud, id_: str) -> None:
    fault = {"code": 500, "message": "the host is lost", "created": "2026-01-01T00:00:00Z"}
    _touch_server(cloud, id_, vm_state="error", task_state=None, fault=fault)


def _touch_server(cloud: SimulatedCloud, id_: str, **values: object) -> None:
    row = _server(cloud, id_)
    row.update(values)
    cloud.nova.servers.touch(row)


def _detach(cloud: SimulatedCloud, id_: str) -> None:
    row = _server(cloud, id_)
    cloud.nova.servers.release(row, _port(cloud, row["port_ids"][0]))
    cloud.nova.servers.touch(row)


def _delete_port(cloud: SimulatedCloud, id_: str) -> None:
    """Delete a port; neutron tells nova, which forgets the interface."""
    port = _port(cloud, id_)
    server = cloud.nova.servers.table.get(port["device_id"])
    if server is not None:
        cloud.nova.servers.release(server, port)
        cloud.nova.servers.touch(server)
    cloud.neutron.ports.discard(port)


def _touch_port(cloud: SimulatedCloud, id_: str, **values: object) -> None:
    cloud.neutron.ports.apply(_port(cloud, id_), dict(values))


def _touch_volume(cloud: SimulatedCloud, id_: str, **values: object) -> None:
    row = _volume(cloud, id_)
    row.update(values)
    cloud.cinder.volumes.touch(row)


def _delete_volume(cloud: SimulatedCloud, id_: str) -> None:
    cloud.cinder.volumes.table.remove(id_)


def _detach_volume(cloud: SimulatedCloud, id_: str) -> None:
    volume = _volume(cloud, id_)
    for attachment in list(volume["attachments"]):
        server = _server(cloud, attachment["server_id"])
        server["volumes"] = [item for item in server["volumes"] if item["id"] != id_]
        cloud.nova.servers.touch(server)
        cloud.cinder.actions.end_detach(volume, server["id"])


SERVER: Final = "OS::Nova::Server"
PORT: Final = "OS::Neutron::Port"
VOLUME: Final = "OS::Cinder::Volume"
ATTACHMENT: Final = "OS::Cinder::VolumeAttachment"

DAMAGE: Final = (
    Damage("deleted", SERVER, "MISSING", (), _delete_server),
    Damage("error", SERVER, "FAILED", (), _fail_server),
    Damage(
        "metadata",
        SERVER,
        "MODIFIED",
        ("metadata",),
        lambda cloud, id_: _touch_server(cloud, id_, metadata={"role": "db", "more": "1"}),
    ),
    Damage(
        "name", SERVER, "MODIFIED", ("name",), lambda cloud, id_: _touch_server(cloud, id_, name="renamed")
    ),
    Damage("detached", SERVER, "MODIFIED", ("networks",), _detach),
    Damage("deleted", PORT, "MISSING", (), _delete_port),
    Damage("name", PORT, "MODIFIED", ("name",), lambda cloud, id_: _touch_port(cloud, id_, name="renamed")),
    Damage(
        "groups",
        PORT,
        "MODIFIED",
        ("security_groups",),
        lambda cloud, id_: _touch_port(cloud, id_, security_groups=[]),
    ),
    Damage(
        "addresses",
        PORT,
        "MODIFIED",
        ("fixed_ips",),
        lambda cloud, id_: _touch_port(cloud, id_, fixed_ips=[]),
    ),
    Damage("deleted", VOLUME, "MISSING", (), _delete_volume),
    Damage("error", VOLUME, "FAILED", (), lambda cloud, id_: _touch_volume(cloud, id_, status="error")),
    Damage(
        "metadata",
        VOLUME,
        "MODIFIED",
        ("metadata",),
        lambda cloud, id_: _touch_volume(
            cloud, id_, metadata={**_volume(cloud, id_)["metadata"], "role": "db"}
        ),
    ),
    Damage(
        "name", VOLUME, "MODIFIED", ("name",), lambda cloud, id_: _touch_volume(cloud, id_, name="renamed")
    ),
    Damage("detached", ATTACHMENT, "MISSING", (), _detach_volume),
)
