"""Servers: lists, changes and deletion. `build.py` creates them, `actions.py` operates them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final

from simulated_openstack.cinder.service import Cinder
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.pages import links_of, page_of
from simulated_openstack.nova.view import server_view, status_of
from simulated_openstack.service import Call, Service, timestamp
from simulated_openstack.state import Table

FREE: Final = {"device_id": "", "device_owner": "", "binding:host_id": ""}  # a port without a server
MAX_ACTIONS: Final = 50  # kept for each server


class Servers:
    """All servers."""

    def __init__(self, nova: Service, neutron: Neutron, cinder: Cinder) -> None:
        """Add the routes."""
        self._neutron, self._cinder = neutron, cinder
        self.nova = nova
        self.table: Table = nova.cloud.state.table("nova.server", "project_id", "group_id")
        schedule = nova.cloud.schedule
        schedule.register("server.deleted", self._deleted)
        schedule.register("server.purged", self._purged)
        schedule.register("server.ports_freed", self._ports_freed)
        add = nova.router.add
        one = "/v2.1/servers/{id_}"
        add("GET", "/v2.1/servers", self.index)
        add("GET", "/v2.1/servers/detail", self.detail)
        add("GET", one, self.show)
        add("PUT", one, self.put)
        add("DELETE", one, self.delete)
        add("GET", f"{one}/ips", self.addresses)
        add("GET", f"{one}/diagnostics", self.diagnostics)
        add("GET", f"{one}/os-instance-actions", self.actions)

    def visible(self, call: Call, id_: str) -> JsonObject:
        """Return a server of the caller's project.

        Raises:
            ApiError: 404.
        """
        row = self.table.get(id_)
        if row is None or (not call.caller.is_admin and row["project_id"] != call.caller.project_id):
            raise ApiError(404, f"Instance {id_} could not be found.")
        return row

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed server."""
        row["updated"] = timestamp()
        return self.table.save(row)

    def ports(self, row: JsonObject) -> list[JsonObject]:
        """Return the ports of a server, in their order."""
        ports = self._neutron.ports.table
        found = [port for id_ in row["port_ids"] if (port := ports.get(id_)) is not None]
        return [port for port in found if port["device_id"] == row["id"]]

    def volumes(self, row: JsonObject) -> list[JsonObject]:
        """Return the volumes of a server."""
        volumes = self._cinder.volumes.table
        return [volume for item in row["volumes"] if (volume := volumes.get(item["id"])) is not None]

    def release(self, row: JsonObject, port: JsonObject) -> None:
        """Free a port; ports that nova made are deleted."""
        ports = self._neutron.ports
        row["port_ids"] = [id_ for id_ in row["port_ids"] if id_ != port["id"]]
        if port["id"] in row["own_ports"]:
            row["own_ports"].remove(port["id"])
            ports.discard(port)
        else:
            ports.apply(port, FREE)

    def view(self, call: Call, row: JsonObject) -> JsonObject:
        """Return a server as the API shows it."""
        return server_view(self._neutron, self.ports(row), call, row)

    # requests

    def index(self, call: Call) -> Response:
        """List servers with their names only."""
        rows, links = page_of(call, self._matching(call), "servers")
        shown = [
            {"id": row["id"], "name": row["name"], "links": links_of(call, "servers", row["id"])}
            for row in rows
        ]
        return Response(200, {"servers": shown, **links})

    def detail(self, call: Call) -> Response:
        """List servers."""
        rows, links = page_of(call, self._matching(call), "servers")
        return Response(200, {"servers": [_listed(self.view(call, row)) for row in rows], **links})

    def show(self, call: Call, id_: str) -> Response:
        """Show a server."""
        return Response(200, {"server": self.view(call, self.visible(call, id_))})

    def put(self, call: Call, id_: str) -> Response:
        """Change name, description or access addresses."""
        row = self.visible(call, id_)
        given = (call.body or {}).get("server") or {}
        names = ("name", "description", "accessIPv4", "accessIPv6", "hostname")
        row |= {name: given[name] for name in names if name in given}
        return Response(200, {"server": self.view(call, self.touch(row))})

    def delete(self, call: Call, id_: str) -> Response:
        """Begin to delete a server."""
        row = self.visible(call, id_)
        if row["locked"] and not call.caller.is_admin:
            raise ApiError(409, f"Instance {id_} is locked")
        if row["vm_state"] != "deleted" and row["task_state"] != "deleting":
            self.record(call, row, "delete")
            if row.get("scheduled_at", 0.0) > time.time():
                self._delete_unscheduled(row)
            else:
                self.begin_delete(row)
        return Response(204)

    def _delete_unscheduled(self, row: JsonObject) -> None:
        """Delete a server without a host at once. The host that builds it meanwhile frees the ports later."""
        self._detach_volumes(row)
        self._purged(row["id"])
        fault = self.nova.cloud.faults.action("destroy", row["name"])
        seconds = self.nova.cloud.delays.server_delete + fault.delay
        self.nova.cloud.schedule.after(seconds, "server.ports_freed", row["id"], row["port_ids"])

    def begin_delete(self, row: JsonObject) -> None:
        """Delete a server after a while; a fault puts it in error."""
        row["task_state"] = "deleting"
        self.touch(row)
        fault = self.nova.cloud.faults.action("destroy", row["name"])
        seconds = self.nova.cloud.delays.server_delete + fault.delay
        self.nova.cloud.schedule.after(seconds, "server.deleted", row["id"], fault.error)

    def addresses(self, call: Call, id_: str) -> Response:
        """Show the addresses."""
        view = self.view(call, self.visible(call, id_))["addresses"]
        names = ("version", "addr")
        shown = {net: [{name: item[name] for name in names} for item in items] for net, items in view.items()}
        return Response(200, {"addresses": shown})

    def diagnostics(self, call: Call, id_: str) -> Response:
        """Show the state of the simulated machine."""
        row = self.visible(call, id_)
        return Response(200, {"state": row["vm_state"], "driver": "simulated"})

    def actions(self, call: Call, id_: str) -> Response:
        """List the latest actions, the newest first."""
        row = self.visible(call, id_)
        shown = row.get("actions", [])[::-1]
        if call.version >= (2, 58):
            shown = [{**entry, "updated_at": entry["start_time"]} for entry in shown]
        return Response(200, {"instanceActions": shown})

    def record(self, call: Call, row: JsonObject, action: str) -> None:
        """Keep an action among the latest of a server, which the caller saves."""
        entry = {
            "action": action,
            "instance_uuid": row["id"],
            "request_id": call.request.id,
            "user_id": call.caller.user_id,
            "project_id": call.caller.project_id,
            "start_time": f"{timestamp(zone='')}.000000",
            "message": None,
        }
        row["actions"] = [*row.get("actions", []), entry][-MAX_ACTIONS:]

    def mark_failed(self, row: JsonObject, action: str) -> None:
        """Mark the latest of these actions as failed; the caller saves the server."""
        found = [entry for entry in row.get("actions", []) if entry["action"] == action]
        if found:
            found[-1]["message"] = "Error"

    # helpers

    def _matching(self, call: Call) -> list[JsonObject]:
        query = call.request.query
        values = dict(query)
        every = call.caller.is_admin and values.get("all_tenants", "0") in {"1", "True", "true", ""}
        every = every and "all_tenants" in values
        rows = list(self.table) if every else self.table.where("project_id", call.caller.project_id)
        since = values.get("changes-since")
        if since is None:
            rows = [row for row in rows if row["vm_state"] != "deleted"]
        else:
            rows = [row for row in rows if _seconds(row["updated"]) >= _seconds(since)]
        for key, value in query:
            test = FILTERS.get(key)
            if test is not None:
                rows = [row for row in rows if test(row, value)]
        rows.reverse()  # the newest first
        return rows

    def _deleted(self, id_: str, error: str | None) -> None:
        row = self.table.get(id_)
        if row is None or row["task_state"] != "deleting":
            return
        if error:
            row |= {"vm_state": "error", "task_state": None, "fault": _fault(error)}
            self.mark_failed(row, "delete")
            self.touch(row)
            return
        for port in self.ports(row):
            self.release(row, port)
        self._detach_volumes(row)
        row |= {"vm_state": "deleted", "task_state": None, "volumes": [], "power_state": 4}
        self.touch(row)
        self.nova.cloud.schedule.after(self.nova.cloud.delays.server_delete / 2, "server.purged", id_)

    def _detach_volumes(self, row: JsonObject) -> None:
        for item, volume in zip(list(row["volumes"]), self.volumes(row), strict=False):
            self._cinder.actions.end_detach(volume, row["id"])
            if item["delete_on_termination"]:
                self._cinder.volumes.remove(volume)

    def _purged(self, id_: str) -> None:
        self.table.remove(id_)

    def _ports_freed(self, id_: str, port_ids: list[str]) -> None:
        ports = self._neutron.ports
        for port_id in port_ids:
            port = ports.table.get(port_id)
            if port is not None and port["device_id"] == id_:
                ports.apply(port, FREE)


def _listed(view: JsonObject) -> JsonObject:
    """Return a view for a list, which leaves out the groups."""
    view.pop("server_groups", None)
    return view


def _tags(value: str) -> set[str]:
    return set(value.split(","))


FILTERS: Final[dict[str, Callable[[JsonObject, str], bool]]] = {
    "name": lambda row, value: re.search(value, row["name"]) is not None,
    "status": lambda row, value: status_of(row) == value.upper(),
    "image": lambda row, value: row["image_id"] == value.rsplit("/", 1)[-1],
    "flavor": lambda row, value: row["flavor"]["id"] == value.rsplit("/", 1)[-1],
    "uuid": lambda row, value: row["id"] == value,
    "project_id": lambda row, value: row["project_id"] == value,
    "user_id": lambda row, value: row["user_id"] == value,
    "tags": lambda row, value: _tags(value) <= set(row["tags"]),
    "tags-any": lambda row, value: bool(_tags(value) & set(row["tags"])),
    "not-tags": lambda row, value: not _tags(value) <= set(row["tags"]),
    "not-tags-any": lambda row, value: not _tags(value) & set(row["tags"]),
}


def _seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise ApiError(400, "Invalid input for query parameters changes-since.") from error
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()


def _fault(message: str) -> JsonObject:
    return {"code": 500, "created": timestamp(), "message": message}


def require_state(row: JsonObject, verb: str, states: Collection[str]) -> None:
    """Refuse an action on a server in other states, or during another task."""
    start = f"Cannot '{verb}' instance {row['id']} while it is in"
    if row["vm_state"] not in states:
        raise ApiError(409, f"{start} vm_state {row['vm_state']}")
    if row["task_state"] is not None:
        raise ApiError(409, f"{start} task_state {row['task_state']}")
