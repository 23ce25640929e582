"""The actions of servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from simulated_openstack.glance.service import Glance
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.flavors import Flavors
from simulated_openstack.nova.servers import Servers, require_state
from simulated_openstack.service import Call, Service, timestamp

# action -> its name in errors, states that permit it, the task, and the state and power afterwards
SIMPLE: Final[dict[str, tuple[str, tuple[str, ...], str, str, int]]] = {
    "os-stop": ("stop", ("active", "error"), "powering-off", "stopped", 4),
    "os-start": ("start", ("stopped",), "powering-on", "active", 1),
    "pause": ("pause", ("active",), "pausing", "paused", 1),
    "unpause": ("unpause", ("paused",), "unpausing", "active", 1),
    "suspend": ("suspend", ("active",), "suspending", "suspended", 4),
    "resume": ("resume", ("suspended",), "resuming", "active", 1),
    "unrescue": ("unrescue", ("rescued",), "unrescuing", "active", 1),
    "revertResize": ("revertResize", ("resized",), "resize_reverting", "active", 1),
}
RECORDED: Final = frozenset(SIMPLE) | {
    "changePassword",
    "confirmResize",
    "createImage",
    "lock",
    "os-resetState",
    "reboot",
    "rebuild",
    "rescue",
    "resize",
    "unlock",
}
STATES: Final = {"active": "active", "error": "error"}
IMAGEABLE: Final = ("active", "stopped", "paused", "suspended")


class Actions:
    """`POST /servers/{id}/action`."""

    def __init__(
        self, nova: Service, servers: Servers, flavors: Flavors, glance: Glance, neutron: Neutron
    ) -> None:
        """Add the route."""
        self._servers, self._flavors, self._glance, self._neutron = servers, flavors, glance, neutron
        self.nova = nova
        self.handlers: dict[str, Callable[[Call, JsonObject, Any], Response]] = {
            "reboot": self.reboot,
            "resize": self.resize,
            "confirmResize": self.confirm_resize,
            "rebuild": self.rebuild,
            "changePassword": self.change_password,
            "rescue": self.rescue,
            "lock": self.lock,
            "unlock": self.unlock,
            "createImage": self.create_image,
            "os-resetState": self.reset_state,
            "forceDelete": self.force_delete,
            "addSecurityGroup": self.add_group,
            "removeSecurityGroup": self.remove_group,
            "os-getConsoleOutput": self.console_output,
            "os-getVNCConsole": self.console,
        }
        nova.cloud.schedule.register("server.acted", self._acted)
        nova.router.add("POST", "/v2.1/servers/{id_}/action", self.act)
        nova.router.add("POST", "/v2.1/servers/{id_}/remote-consoles", self.remote_console)

    def act(self, call: Call, id_: str) -> Response:
        """Carry out an action."""
        body = call.body if isinstance(call.body, dict) else {}
        name = next(iter(body), "")
        row = self._servers.visible(call, id_)
        if name not in SIMPLE and name not in self.handlers:
            raise ApiError(400, f"There is no such action: {name}")
        if row["locked"] and not call.caller.is_admin and name != "unlock":
            raise ApiError(409, f"Instance {id_} is locked")
        response = self._carry_out(call, row, name, body[name])
        if name in RECORDED:
            self._servers.record(call, row, name.removeprefix("os-"))
            self._servers.table.save(row)
        return response

    def _carry_out(self, call: Call, row: JsonObject, name: str, body: Any) -> Response:
        if name in SIMPLE:
            verb, states, task, state, power = SIMPLE[name]
            require_state(row, verb, states)
            changes: JsonObject = {"vm_state": state, "power_state": power}
            if name == "revertResize":
                changes["flavor"] = row["old_flavor"]
            return self._begin(row, task, changes)
        return self.handlers[name](call, row, body)

    def reboot(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Reboot a server."""
        del call
        hard = body.get("type") == "HARD"
        states = ("active", "stopped", "paused", "suspended", "error") if hard else ("active",)
        require_state(row, "reboot", states)
        self.nova.cloud.faults.action("reboot", row["name"])  # the server is active again in any case
        return self._begin(
            row, "rebooting_hard" if hard else "rebooting", {"vm_state": "active", "power_state": 1}
        )

    def resize(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Change the flavor; the change is to be confirmed."""
        flavor = self._flavors.usable(call, body.get("flavorRef", ""), status=400)
        require_state(row, "resize", ("active", "stopped"))
        if flavor["id"] == row["flavor"]["id"]:
            raise ApiError(400, "When resizing, instances must change flavor!")
        if flavor["disk"] < row["flavor"]["disk"] and row["image_id"]:
            raise ApiError(400, "Resize disk down is not allowed.")
        kept = {key: value for key, value in flavor.items() if key != "access"}
        row["old_flavor"] = row["flavor"]
        return self._begin(row, "resize_prep", {"vm_state": "resized", "flavor": kept})

    def confirm_resize(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Confirm a change of flavor."""
        del call, body
        require_state(row, "confirmResize", ("resized",))
        row["task_state"] = None
        self._begin(row, "", {"vm_state": "active", "power_state": 1})
        return Response(204)

    def rebuild(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Rebuild a server from an image."""
        try:
            image = self._glance.images.visible(call, body.get("imageRef", ""))
        except ApiError as error:
            raise ApiError(400, "Cannot find image for rebuild") from error
        require_state(row, "rebuild", ("active", "stopped", "error"))
        names = ("name", "metadata", "description", "user_data", "key_name")
        row |= {name: body[name] for name in names if name in body}
        row["image_id"] = image["id"]
        fault = self.nova.cloud.faults.action("spawn", row["name"])
        state = "error" if fault.error else "active"
        self._begin(row, "rebuilding", {"vm_state": state, "power_state": 1}, fault.delay)
        view = self._servers.view(call, row)
        view.pop("security_groups", None)
        data = view.pop("OS-EXT-SRV-ATTR:user_data", row["user_data"])
        view["adminPass"] = body.get("adminPass") or "simulated"
        if call.version >= (2, 57):
            view["user_data"] = data
        return Response(202, {"server": view}, {"Location": f"{call.base}/v2.1/servers/{row['id']}"})

    def change_password(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Change the password."""
        del call, body
        require_state(row, "changePassword", ("active",))
        return self._begin(row, "updating_password", {})

    def rescue(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Rescue a server."""
        del call, body
        require_state(row, "rescue", ("active", "stopped", "error"))
        self._begin(row, "rescuing", {"vm_state": "rescued", "power_state": 1})
        return Response(200, {"adminPass": "simulated"})

    def lock(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Lock a server."""
        del call, body
        row["locked"] = True
        self._servers.touch(row)
        return Response(202)

    def unlock(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Unlock a server."""
        del call, body
        row["locked"] = False
        self._servers.touch(row)
        return Response(202)

    def create_image(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Make an image of a server."""
        require_state(row, "createImage", IMAGEABLE)
        values = {"name": body.get("name"), "disk_format": "raw", "container_format": "bare"}
        extra = {"visibility": "private", "image_type": "snapshot", "instance_uuid": row["id"]}
        metadata = {key: str(value) for key, value in (body.get("metadata") or {}).items()}
        images = self._glance.images
        image = images.create(row["project_id"], {**metadata, **values, **extra})
        image["status"] = "importing"
        images.table.save(image)
        self.nova.cloud.schedule.after(self.nova.cloud.delays.image, "image.import", image["id"])
        self._begin(row, "image_snapshot", {})
        if call.version >= (2, 45):
            return Response(202, {"image_id": image["id"]})
        location = f"{self._glance.base}/v2/images/{image['id']}"
        return Response(202, None, {"Location": location})

    def reset_state(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Set the state."""
        if not call.caller.is_admin:
            rule = "os_compute_api:os-admin-actions:reset_state"
            raise ApiError(403, f"Policy doesn't allow {rule} to be performed.")
        row |= {"vm_state": STATES.get(body.get("state"), "error"), "task_state": None}
        self._servers.touch(row)
        return Response(202)

    def force_delete(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Delete a server in any state."""
        del call, body
        self._servers.begin_delete(row)
        return Response(202)

    def add_group(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Add a security group to the ports."""
        group = self._group(call, body.get("name", ""))
        for port in self._servers.ports(row):
            if group["id"] in port["security_groups"]:
                text = (
                    "Invalid input for security_groups. Reason: Duplicate items in the list:"
                    f" '{group['id']}'."
                )
                raise ApiError(400, f"{text}\nNeutron server returns request_ids: ['req-{group['id']}']")
            self._set_groups(port, [*port["security_groups"], group["id"]])
        return Response(202)

    def remove_group(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Remove a security group from the ports."""
        group = self._group(call, body.get("name", ""))
        ports = [port for port in self._servers.ports(row) if group["id"] in port["security_groups"]]
        if not ports:
            text = f"Security group {body.get('name')} not associated with the instance {row['id']}"
            raise ApiError(404, text)
        for port in ports:
            self._set_groups(port, [id_ for id_ in port["security_groups"] if id_ != group["id"]])
        return Response(202)

    def console_output(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Show the output of a simulated console."""
        del call, body
        return Response(200, {"output": f"simulated server {row['name']}\n"})

    def console(self, call: Call, row: JsonObject, body: Any) -> Response:
        """Show the URL of a console that does not exist."""
        del call
        url = f"http://127.0.0.1:6080/simulated/{row['id']}"
        return Response(200, {"console": {"type": (body or {}).get("type"), "url": url}})

    def remote_console(self, call: Call, id_: str) -> Response:
        """Show the URL of a console that does not exist."""
        row = self._servers.visible(call, id_)
        given = (call.body or {}).get("remote_console") or {}
        url = f"http://127.0.0.1:6080/simulated/{row['id']}"
        return Response(200, {"remote_console": {**given, "url": url}})

    def _begin(self, row: JsonObject, task: str, changes: JsonObject, extra_seconds: float = 0.0) -> Response:
        """Start a task, at whose end the changes are applied."""
        row["task_state"] = task or None
        self._servers.touch(row)
        seconds = self.nova.cloud.delays.server_action + extra_seconds
        self.nova.cloud.schedule.after(seconds, "server.acted", row["id"], task, changes)
        return Response(202)

    def _acted(self, id_: str, task: str, changes: JsonObject) -> None:
        row = self._servers.table.get(id_)
        if row is None or row["task_state"] != (task or None):
            return
        row |= {**changes, "task_state": None}
        if row["vm_state"] == "error" and task == "rebuilding":
            row["fault"] = {"code": 500, "created": timestamp(), "message": "the rebuild failed"}
        self._servers.touch(row)

    def _group(self, call: Call, name: str) -> JsonObject:
        project = call.caller.project_id
        for group in self._neutron.security_groups.table.where("project_id", project):
            if name in (group["id"], group["name"]):
                found: JsonObject = group
                return found
        raise ApiError(404, f"Security group {name} is not found for project {project}")

    def _set_groups(self, port: JsonObject, ids: list[str]) -> None:
        ports = self._neutron.ports
        ports.touch(ports.apply(port, {"security_groups": ids}))
