"""The creation of servers: checks of the request, ports, volumes, and the end of the build."""

from __future__ import annotations

import base64
import binascii
import secrets
import string
import time
from typing import Final

from simulated_openstack.cinder.service import Cinder
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.aggregates import Aggregates
from simulated_openstack.nova.flavors import Flavors
from simulated_openstack.nova.interfaces import Interfaces
from simulated_openstack.nova.keys import KeyPairs, ServerGroups
from simulated_openstack.nova.pages import links_of
from simulated_openstack.nova.quotas import Quotas
from simulated_openstack.nova.servers import Servers
from simulated_openstack.service import Call, Service, new_id, precise_timestamp, timestamp

KNOWN: Final = frozenset(
    {
        "name",
        "flavorRef",
        "imageRef",
        "networks",
        "key_name",
        "security_groups",
        "user_data",
        "metadata",
        "tags",
    }
    | {"availability_zone", "block_device_mapping", "block_device_mapping_v2", "config_drive", "adminPass"}
    | {"description", "accessIPv4", "accessIPv6", "personality", "min_count", "max_count", "hostname", "host"}
    | {"return_reservation_id", "trusted_image_certificates", "hypervisor_hostname", "tags"}
)
HOST_CPUS: Final = 1_000
MAX_USER_DATA: Final = 65_535
NO_HOST: Final = "No valid host was found. "
NO_NETWORK: Final = "Failed to allocate the network(s), not rescheduling."


class Build:
    """`POST /servers`."""

    def __init__(
        self,
        nova: Service,
        servers: Servers,
        neutron: Neutron,
        flavors: Flavors,
        keys: KeyPairs,
        groups: ServerGroups,
        aggregates: Aggregates,
        quotas: Quotas,
        glance: Glance,
        cinder: Cinder,
        interfaces: Interfaces,
    ) -> None:
        """Add the route."""
        self._servers, self._neutron, self._flavors, self._keys = servers, neutron, flavors, keys
        self._groups, self._aggregates, self._quotas, self._glance = groups, aggregates, quotas, glance
        self._cinder, self._interfaces = cinder, interfaces
        self.nova = nova
        nova.cloud.schedule.register("server.built", self._built)
        nova.router.add("POST", "/v2.1/servers", self.post)

    def post(self, call: Call) -> Response:
        """Accept a server, which becomes active after a while."""
        body = call.body if isinstance(call.body, dict) else {}
        given = body.get("server")
        if not isinstance(given, dict):
            raise ApiError(400, "Invalid input for field/attribute server.")
        hints = body.get("os:scheduler_hints") or body.get("OS-SCH-HNT:scheduler_hints") or {}
        unknown = [name for name in given if name not in KNOWN and not name.startswith("OS-")]
        if unknown:
            text = f"Additional properties are not allowed ('{unknown[0]}' was unexpected)"
            raise ApiError(400, f"Invalid input for field/attribute server. {text}")
        row = self._row(call, given, hints)
        self._servers.record(call, row, "create")
        self._servers.table.save(row)
        for id_ in row["port_ids"]:
            port = self._neutron.ports.found(id_)
            self._neutron.ports.apply(port, {"device_id": row["id"]})
        self._begin(row)
        groups = [{"name": item["name"]} for item in given.get("security_groups") or [{"name": "default"}]]
        view = {
            "id": row["id"],
            "links": links_of(call, "servers", row["id"]),
            "OS-DCF:diskConfig": row["disk_config"],
            "adminPass": given.get("adminPass") or _password(),
            "security_groups": groups,
        }
        location = {"Location": f"{call.base}/v2.1/servers/{row['id']}"}
        return Response(202, {"server": view}, location)

    def _begin(self, row: JsonObject) -> None:
        queued = self.nova.cloud.faults.action("schedule", row["name"]).delay
        if queued:
            row["scheduled_at"] = time.time() + queued
        fault = self.nova.cloud.faults.action("spawn", row["name"])
        seconds = self.nova.cloud.delays.server_build + queued + fault.delay
        self.nova.cloud.schedule.after(seconds, "server.built", row["id"], fault.error)

    def _row(self, call: Call, given: JsonObject, hints: JsonObject) -> JsonObject:
        """Return a new server; refuse what the service refuses at once."""
        name = given.get("name", "")
        if not name:
            raise ApiError(
                400, f"Invalid input for field/attribute name. Value: {name}. '' should be non-empty"
            )
        flavor = self._flavors.usable(call, given.get("flavorRef", ""), status=400)
        disks = given.get("block_device_mapping_v2") or []
        image_id = self._image(call, given, disks)
        if given.get("key_name") and self._keys.find(call.caller.user_id, given["key_name"]) is None:
            raise ApiError(400, "Invalid key_name provided.")
        _check_user_data(given.get("user_data"))
        groups = self._group_ids(call, given)
        networks = self._networks(call, given)
        if hints.get("group"):
            self._groups.found(hints["group"], status=400)
        zone = (given.get("availability_zone") or "").split(":")[0]
        if zone and zone not in self._aggregates.zone_names():
            raise ApiError(400, "The requested availability zone is not available")
        volumes = self._volumes(call, disks)
        self._quotas.require(call.caller.project_id, flavor)
        return {
            **_new_server(call, given, name),
            "flavor": {key: value for key, value in flavor.items() if key != "access"},
            "image_id": image_id,
            "zone": zone or "nova",
            "pinned_zone": zone or None,
            "group_id": hints.get("group"),
            "networks": networks,
            "group_ids": groups,
            "port_ids": [item["port"] for item in networks if "port" in item],
            "volumes": volumes,
            "disks": _new_volumes(disks),
            "number": len(self._servers.table) + 1,
        }

    def _image(self, call: Call, given: JsonObject, disks: list[JsonObject]) -> str:
        image_id = given.get("imageRef") or ""
        if not image_id:
            if not disks and not given.get("block_device_mapping"):
                raise ApiError(400, "Missing imageRef attribute")
            return ""
        images = self._glance.images
        try:
            image = images.visible(call, image_id.rsplit("/", 1)[-1])
        except ApiError as error:
            raise ApiError(400, "Can not find requested image") from error
        if image["status"] != "active":
            raise ApiError(400, f"Image {image_id} is not active.")
        return str(image["id"])

    def _group_ids(self, call: Call, given: JsonObject) -> list[str]:
        """Return the ids of the security groups, given by name or id."""
        table = self._neutron.security_groups
        own = table.table.where("project_id", call.caller.project_id)
        ids = []
        for item in given.get("security_groups") or ():
            name = item["name"]
            if name == "default":
                ids.append(table.default(call.caller.project_id)["id"])
                continue
            found = [row for row in own if name in (row["id"], row["name"])]
            if not found:
                raise ApiError(400, f"Unable to find security_group with name or id '{name}'")
            if len(found) > 1:
                text = f"Multiple security groups found matching '{name}'. Use an ID to be more specific."
                raise ApiError(409, text)
            ids.append(found[0]["id"])
        return ids

    def _networks(self, call: Call, given: JsonObject) -> list[JsonObject]:
        """Return the networks to connect: each a port, or a network with an address."""
        wanted = given.get("networks")
        neutron = self._neutron
        if wanted == "none":
            return []
        if wanted in (None, "auto", []):
            rows = neutron.networks.table.where("project_id", call.caller.project_id)
            own = [row for row in rows if not row["router:external"]]
            if len(own) > 1:
                raise ApiError(409, "Multiple possible networks found, use a Network ID to be more specific.")
            return [{"uuid": row["id"]} for row in own]
        items = []
        for item in wanted:
            if item.get("port"):
                items.append({"port": self._port(call, item["port"])})
                continue
            network = neutron.networks.table.get(item.get("uuid", ""))
            if network is None or not neutron.networks.is_visible(call, network):
                raise ApiError(400, f"Network {item.get('uuid')} could not be found.")
            entry = {"uuid": network["id"]}
            if item.get("fixed_ip"):
                entry["fixed_ip"] = item["fixed_ip"]
            items.append(entry)
        return items

    def _port(self, call: Call, id_: str) -> str:
        ports = self._neutron.ports
        port = ports.table.get(id_)
        if port is None or not ports.is_visible(call, port):
            raise ApiError(400, f"Port id {id_} could not be found.")
        if port["device_id"]:
            raise ApiError(409, f"Port {id_} is still in use.")
        return id_

    def _volumes(self, call: Call, disks: list[JsonObject]) -> list[JsonObject]:
        """Return the existing volumes to attach; they are reserved."""
        cinder = self._cinder
        attached = []
        for disk in disks:
            if disk.get("source_type") != "volume":
                continue
            try:
                volume = cinder.volumes.visible(call, disk.get("uuid", ""))
            except ApiError as error:
                raise ApiError(400, f"Volume {disk.get('uuid')} could not be found.") from error
            cinder.actions.begin_attach(volume)
            keep = {"delete_on_termination": bool(disk.get("delete_on_termination")), "tag": disk.get("tag")}
            attached.append({"id": volume["id"], "device": disk.get("device_name"), **keep})
            disk["volume"] = volume["id"]
        return attached

    # the end of the build

    def _built(self, id_: str, error: str | None) -> None:
        row = self._servers.table.get(id_)
        if row is None or row["vm_state"] != "building" or row["task_state"] == "deleting":
            return
        if row["flavor"]["vcpus"] > HOST_CPUS:
            self._fail(row, NO_HOST)
        elif error:
            self._fail(
                row,
                "Exceeded maximum number of retries. Exhausted all hosts available for retrying build"
                " failures for"
                f" instance {id_}.",
            )
        else:
            try:
                self._connect(row)
                self._add_disks(row)
            except ApiError:
                self._fail(row, NO_NETWORK)
                return
            row |= {"vm_state": "active", "task_state": None, "power_state": 1}
            row["launched_at"] = precise_timestamp()
            self._servers.touch(row)

    def _fail(self, row: JsonObject, message: str) -> None:
        row |= {"vm_state": "error", "task_state": None}
        row["fault"] = {"code": 500, "created": timestamp(), "message": message}
        self._servers.touch(row)

    def _connect(self, row: JsonObject) -> None:
        """Bind the ports of a server, and make those that the request left to nova."""
        neutron = self._neutron
        ids = []
        for item in row["networks"]:
            if "port" in item:
                port = neutron.ports.found(item["port"])
            else:
                network = neutron.networks.found(item["uuid"])
                values: JsonObject = {"device_id": row["id"]}
                if row["group_ids"]:
                    values["security_groups"] = row["group_ids"]
                if item.get("fixed_ip"):
                    values["fixed_ips"] = [{"ip_address": item["fixed_ip"]}]
                port = neutron.ports.add(network, row["project_id"], values)
                row["own_ports"].append(port["id"])
            ids.append(port["id"])
            self._interfaces.bind(row, port)
            if port["binding:vif_type"] == "binding_failed":
                raise ApiError(500, "binding failed")
        row["port_ids"] = ids

    def _add_disks(self, row: JsonObject) -> None:
        """Attach the volumes, and make those that are made from images or empty."""
        cinder = self._cinder
        for disk in row.pop("disks", []):
            volume = cinder.volumes.make(row, disk)
            entry = {"id": volume["id"], "device": disk.get("device_name"), "tag": disk.get("tag")}
            row["volumes"].append({**entry, "delete_on_termination": bool(disk.get("delete_on_termination"))})
        for number, item in enumerate(row["volumes"]):
            volume = cinder.volumes.found(item["id"])
            item["device"] = item["device"] or f"/dev/sd{string.ascii_lowercase[number]}"
            cinder.actions.end_attach(volume, row["id"], item["device"], precise_timestamp())


def _new_server(call: Call, given: JsonObject, name: str) -> JsonObject:
    """Return the fields of a new server that follow from the request alone."""
    now = timestamp()
    return {
        "id": new_id(),
        "name": name,
        "hostname": _hostname(name),
        "project_id": call.caller.project_id,
        "user_id": call.caller.user_id,
        "created": now,
        "updated": now,
        "vm_state": "building",
        "task_state": "scheduling",
        "power_state": 0,
        "launched_at": None,
        "fault": None,
        "key_name": given.get("key_name"),
        "metadata": dict(given.get("metadata") or {}),
        "tags": sorted(set(given.get("tags") or [])),
        "description": given.get("description"),
        "user_data": given.get("user_data"),
        "config_drive": given.get("config_drive") in (True, "True", "true", "1"),
        "disk_config": given.get("OS-DCF:diskConfig") or "MANUAL",
        "accessIPv4": given.get("accessIPv4", ""),
        "accessIPv6": given.get("accessIPv6", ""),
        "reservation_id": f"r-{secrets.token_hex(4)}",
        "locked": False,
        "own_ports": [],  # made by nova, and deleted with the server
    }


def _new_volumes(disks: list[JsonObject]) -> list[JsonObject]:
    """Return the disks for which a volume is made."""
    return [disk for disk in disks if disk.get("destination_type") == "volume" and "volume" not in disk]


def _check_user_data(text: str | None) -> None:
    if text is None:
        return
    try:
        base64.b64decode(text)
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, "Userdata content cannot be decoded") from error
    if len(text) > MAX_USER_DATA:
        raise ApiError(400, f"Invalid input for field/attribute user_data. '{text[:9]}...' is too long")


def _hostname(name: str) -> str:
    kept = "".join(char if char.isalnum() or char in "-." else "-" for char in name.lower())
    return kept.strip("-.")[:63]


def _password() -> str:
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(12))
