"""Damage that an administrator causes through the APIs of a cloud, and the verdict that it must get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from orchestrator.clients.openstack.cloud import OpenStack

Ids = Mapping[str, str]  # physical ids by the names of the resources


class Damage(NamedTuple):
    """A kind of damage to the resources with a prefix in their names."""

    kind: str
    prefix: str
    verdict: str
    inflict: Callable[[OpenStack, Ids, str], object]  # `admin`, ids, number of the resource
    neighbours: tuple[str, ...] = ()  # prefixes of resources whose objects it changes, too
    is_done: Callable[[OpenStack, Ids, str], bool] = lambda _admin, _ids, _number: (
        True
    )  # it takes effect later

    @property
    def name(self) -> str:
        """A short name."""
        return f"{self.prefix} {self.kind}"


def _server(action: Callable[[OpenStack, str], object]) -> Callable[[OpenStack, Ids, str], object]:
    return lambda admin, ids, number: action(admin, ids[f"server{number}"])


def _port(**values: Any) -> Callable[[OpenStack, Ids, str], object]:
    return lambda admin, ids, number: admin.network.put(f"/ports/{ids[f'port{number}']}", {"port": values})


def _network(
    collection: str, key: str, resource: str, /, **values: Any
) -> Callable[[OpenStack, Ids, str], object]:
    return lambda admin, ids, _number: admin.network.put(f"/{collection}/{ids[resource]}", {key: values})


def _volume(action: Callable[[OpenStack, str], object]) -> Callable[[OpenStack, Ids, str], object]:
    return lambda admin, ids, number: action(admin, ids[f"volume{number}"])


def _detach_port(admin: OpenStack, ids: Ids, number: str) -> None:
    admin.compute.detach_interface(ids[f"server{number}"], ids[f"port{number}"])


def _no_device(admin: OpenStack, ids: Ids, number: str) -> bool:
    port = admin.network.find_one(f"/ports/{ids[f'port{number}']}") or {"port": {"device_id": ""}}
    return not port["port"]["device_id"]


def _detach_disk(admin: OpenStack, ids: Ids, number: str) -> None:
    admin.compute.detach_volume(ids[f"server{number}"], ids[f"disk{number}"])


def _remove_interface(admin: OpenStack, ids: Ids, _number: str) -> None:
    path = f"/routers/{ids['spare_router']}/remove_router_interface"
    admin.network.put(path, {"subnet_id": ids["spare_subnet"]})


def _delete_rule(admin: OpenStack, ids: Ids, _number: str) -> None:
    query = {"security_group_id": ids["group"], "direction": "ingress"}
    [rule] = admin.network.listed("/security-group-rules", "security_group_rules", query)
    admin.network.delete(f"/security-group-rules/{rule['id']}")


def _no_server(admin: OpenStack, ids: Ids, number: str) -> bool:
    return admin.compute.find_one(f"/servers/{ids[f'server{number}']}") is None


def _no_volume(admin: OpenStack, ids: Ids, number: str) -> bool:
    return admin.block_storage.find_one(f"/volumes/{ids[f'volume{number}']}") is None


def _no_disk(admin: OpenStack, ids: Ids, number: str) -> bool:
    volume = admin.block_storage.find_one(f"/volumes/{ids[f'disk{number}']}") or {"volume": {"status": ""}}
    return bool(volume["volume"]["status"] != "detaching")


def _status(status: str) -> Callable[[OpenStack, str], object]:
    body = {"os-reset_status": {"status": status}}
    return lambda admin, id_: admin.block_storage.post(f"/volumes/{id_}/action", body)


DAMAGE: Final = (
    Damage(
        "deleted",
        "server",
        "MISSING",
        _server(lambda admin, id_: admin.compute.delete_server(id_)),
        is_done=_no_server,
    ),
    Damage(
        "in error",
        "server",
        "FAILED",
        _server(lambda admin, id_: admin.compute.act(id_, "os-resetState", {"state": "error"})),
    ),
    Damage(
        "with other metadata",
        "server",
        "MODIFIED",
        _server(lambda admin, id_: admin.compute.set_metadata(id_, {"role": "db", "more": "1"})),
    ),
    Damage(
        "renamed",
        "server",
        "MODIFIED",
        _server(lambda admin, id_: admin.compute.update_server(id_, {"name": "renamed"})),
    ),
    Damage("without its port", "server", "MODIFIED", _detach_port, is_done=_no_device),
    Damage("renamed", "port", "MODIFIED", _port(name="renamed")),
    Damage("without groups", "port", "MODIFIED", _port(security_groups=[])),
    Damage(
        "deleted",
        "port",
        "MISSING",
        lambda admin, ids, number: admin.network.delete(f"/ports/{ids[f'port{number}']}"),
        neighbours=("server",),
    ),
    Damage("detached", "attachment", "MISSING", _detach_disk, neighbours=("server",), is_done=_no_disk),
    Damage(
        "deleted",
        "volume",
        "MISSING",
        _volume(lambda admin, id_: admin.block_storage.delete(f"/volumes/{id_}")),
        is_done=_no_volume,
    ),
    Damage("in error", "volume", "FAILED", _volume(_status("error"))),
    Damage(
        "with other metadata",
        "volume",
        "MODIFIED",
        _volume(
            lambda admin, id_: admin.block_storage.put(
                f"/volumes/{id_}/metadata", {"metadata": {"role": "db"}}
            )
        ),
    ),
    Damage("renamed", "net", "MODIFIED", _network("networks", "network", "net", name="renamed")),
    Damage("renamed", "router", "MODIFIED", _network("routers", "router", "router", name="renamed")),
    Damage(
        "without its gateway",
        "spare_router",
        "MODIFIED",
        _network("routers", "router", "spare_router", external_gateway_info={}),
    ),
    Damage("detached", "spare_interface", "MISSING", _remove_interface),
    Damage("without its rule", "group", "MODIFIED", _delete_rule),
    Damage(
        "disassociated",
        "association",
        "MISSING",
        _network("floatingips", "floatingip", "address", port_id=None),
        neighbours=("address",),
    ),
)
