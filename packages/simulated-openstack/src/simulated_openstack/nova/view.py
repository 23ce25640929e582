"""Servers as the API shows them, by microversion."""

from __future__ import annotations

from typing import Any, Final

from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.pages import links_of
from simulated_openstack.service import Call

HOST: Final = "fakehost"
HOST_ID: Final = "e7534ecb674f30e18770da1287f74fbf89e0af552a5210f04e87ee27"
COPIED: Final = ("id", "name", "user_id", "created", "updated", "metadata", "key_name")
STATUSES: Final = {
    "building": "BUILD",
    "active": "ACTIVE",
    "stopped": "SHUTOFF",
    "paused": "PAUSED",
    "suspended": "SUSPENDED",
    "resized": "VERIFY_RESIZE",
    "rescued": "RESCUE",
    "error": "ERROR",
    "deleted": "DELETED",
}
TASK_STATUSES: Final = {
    "rebooting": "REBOOT",
    "rebooting_hard": "HARD_REBOOT",
    "updating_password": "PASSWORD",
    "rebuilding": "REBUILD",
    "resize_prep": "RESIZE",
    "resize_migrating": "RESIZE",
    "resize_reverting": "REVERT_RESIZE",
}


def status_of(row: JsonObject) -> str:
    """Return the status that follows from the state of the machine and its task."""
    if row["vm_state"] in {"active", "stopped", "resized", "error"}:
        task = TASK_STATUSES.get(row["task_state"] or "")
        if task is not None and not (row["vm_state"] == "error" and row["task_state"] != "rebuilding"):
            return task
    return STATUSES[row["vm_state"]]


def server_view(neutron: Neutron, ports: list[JsonObject], call: Call, row: JsonObject) -> JsonObject:
    """Return a server as the API shows it to a caller."""
    placed = row["vm_state"] not in {"building", "deleted"} and row["launched_at"] is not None
    view: JsonObject = {
        **{name: row[name] for name in COPIED},
        "tenant_id": row["project_id"],
        "status": status_of(row),
        "links": links_of(call, "servers", row["id"]),
        "image": _image(call, row),
        "flavor": _flavor(call, row),
        "addresses": _addresses(neutron, ports, row),
        "accessIPv4": row["accessIPv4"],
        "accessIPv6": row["accessIPv6"],
        "hostId": HOST_ID if placed else "",
        "config_drive": "True" if row["config_drive"] else "",
        "OS-DCF:diskConfig": row["disk_config"],
        "OS-EXT-AZ:availability_zone": row["zone"] if placed else "",
        "OS-EXT-STS:task_state": row["task_state"],
        "OS-EXT-STS:vm_state": row["vm_state"],
        "OS-EXT-STS:power_state": row["power_state"],
        "OS-SRV-USG:launched_at": row["launched_at"],
        "OS-SRV-USG:terminated_at": None,
        "os-extended-volumes:volumes_attached": _volumes(call, row),
    }
    if row["vm_state"] in {"error", "deleted"} and row["fault"]:
        view["fault"] = row["fault"]
    if row["vm_state"] in {"building", "active", "stopped", "resized"}:
        view["progress"] = 0
    groups = _groups(neutron, ports, row)
    if groups:
        view["security_groups"] = [{"name": name} for name in groups]
    _add_newer(call, row, view)
    if call.caller.is_admin:
        _add_admin(call, row, view, placed=placed)
    return view


def _add_newer(call: Call, row: JsonObject, view: JsonObject) -> None:
    """Add the fields of later microversions."""
    if call.version >= (2, 9):
        view["locked"] = row["locked"]
    if call.version >= (2, 19):
        view["description"] = row["description"]
    if call.version >= (2, 26):
        view["tags"] = row["tags"]
    if call.version >= (2, 63):
        view["trusted_image_certificates"] = None
    if call.version >= (2, 71):
        view["server_groups"] = [row["group_id"]] if row["group_id"] else []
    if call.version >= (2, 73):
        view["locked_reason"] = None
    if call.version >= (2, 96):
        view["pinned_availability_zone"] = row["pinned_zone"]


def _add_admin(call: Call, row: JsonObject, view: JsonObject, *, placed: bool) -> None:
    """Add the fields that only an administrator sees."""
    prefix = "OS-EXT-SRV-ATTR:"
    view |= {
        f"{prefix}host": HOST if placed else None,
        f"{prefix}hypervisor_hostname": HOST if placed else None,
        f"{prefix}instance_name": f"instance-{row['number']:08x}",
    }
    if call.version >= (2, 3):
        view |= {
            f"{prefix}hostname": row["hostname"],
            f"{prefix}kernel_id": "",
            f"{prefix}ramdisk_id": "",
            f"{prefix}launch_index": 0,
            f"{prefix}reservation_id": row["reservation_id"],
            f"{prefix}root_device_name": "/dev/sda" if placed else None,
            f"{prefix}user_data": row["user_data"],
        }
    if call.version >= (2, 16):
        view["host_status"] = "UP" if placed else ""


def _image(call: Call, row: JsonObject) -> Any:
    if not row["image_id"]:
        return ""
    link = {"rel": "bookmark", "href": f"{call.base}/images/{row['image_id']}"}
    return {"id": row["image_id"], "links": [link]}


def _flavor(call: Call, row: JsonObject) -> JsonObject:
    flavor = row["flavor"]
    if call.version < (2, 47):
        link = {"rel": "bookmark", "href": f"{call.base}/flavors/{flavor['id']}"}
        return {"id": flavor["id"], "links": [link]}
    names = ("vcpus", "ram", "disk", "ephemeral", "swap", "extra_specs")
    return {**{name: flavor[name] for name in names}, "original_name": flavor["name"]}


def _addresses(neutron: Neutron, ports: list[JsonObject], row: JsonObject) -> JsonObject:
    found: JsonObject = {}
    for port in ports if row["vm_state"] not in {"building", "deleted"} else ():
        network = neutron.networks.table.get(port["network_id"]) or {"name": port["network_id"]}
        entries = found.setdefault(network["name"], [])
        for fixed in port["fixed_ips"]:
            entries.append(_address(fixed["ip_address"], "fixed", port["mac_address"]))
        for floating in neutron.floating_ips.table.where("port_id", port["id"]):
            entries.append(_address(floating["floating_ip_address"], "floating", port["mac_address"]))
    return found


def _address(text: str, kind: str, mac: str) -> JsonObject:
    version = 6 if ":" in text else 4
    return {"addr": text, "version": version, "OS-EXT-IPS:type": kind, "OS-EXT-IPS-MAC:mac_addr": mac}


def _volumes(call: Call, row: JsonObject) -> list[JsonObject]:
    if call.version < (2, 3):
        return [{"id": item["id"]} for item in row["volumes"]]
    names = ("id", "delete_on_termination")
    return [{name: item[name] for name in names} for item in row["volumes"]]


def _groups(neutron: Neutron, ports: list[JsonObject], row: JsonObject) -> list[str]:
    """Return the names of the security groups of the ports."""
    table = neutron.security_groups.table
    ports = ports if row["vm_state"] not in {"building", "deleted"} else []
    ids = dict.fromkeys(id_ for port in ports for id_ in port["security_groups"])
    return [group["name"] for id_ in ids if (group := table.get(id_)) is not None]
