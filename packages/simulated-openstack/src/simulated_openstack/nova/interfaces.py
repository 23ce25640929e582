"""Ports of servers: attached, detached, bound; and their security groups."""

from __future__ import annotations

from simulated_openstack.faults import ActionFault
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.servers import Servers, require_state
from simulated_openstack.nova.view import HOST
from simulated_openstack.service import Call, Service


class Interfaces:
    """`/servers/{id}/os-interface` and `/servers/{id}/os-security-groups`."""

    def __init__(self, nova: Service, neutron: Neutron, servers: Servers) -> None:
        """Add the routes."""
        self._neutron, self._servers = neutron, servers
        self.nova = nova
        nova.cloud.schedule.register("interface.detached", self._detached)
        nova.cloud.schedule.register("interface.attached", self._attached)
        add = nova.router.add
        root = "/v2.1/servers/{id_}/os-interface"
        add("GET", root, self.index)
        add("POST", root, self.attach)
        add("GET", root + "/{port_id}", self.show)
        add("DELETE", root + "/{port_id}", self.detach)
        add("GET", "/v2.1/servers/{id_}/os-security-groups", self.security_groups)

    def bind(self, row: JsonObject, port: JsonObject) -> None:
        """Bind a port to the host of a server."""
        values = {"device_id": row["id"], "device_owner": f"compute:{row['zone']}", "binding:host_id": HOST}
        self._neutron.ports.apply(port, values)

    def index(self, call: Call, id_: str) -> Response:
        """List the ports of a server."""
        row = self._servers.visible(call, id_)
        views = [_view(call, port) for port in self._servers.ports(row)]
        return Response(200, {"interfaceAttachments": views})

    def attach(self, call: Call, id_: str) -> Response:
        """Attach a port, or a new port on a network."""
        row = self._servers.visible(call, id_)
        require_state(row, "attach_interface", ("active", "paused", "stopped"))
        self._servers.record(call, row, "attach_interface")
        given = (call.body or {}).get("interfaceAttachment") or {}
        ports = self._neutron.ports
        if given.get("port_id"):
            port = ports.table.get(given["port_id"])
            if port is None:
                raise ApiError(404, f"Port id {given['port_id']} could not be found.")
            if port["device_id"]:
                self._servers.mark_failed(row, "attach_interface")
                self._servers.table.save(row)
                raise ApiError(409, f"Port {port['id']} is still in use.")
        else:
            port = self._new_port(call, row, given)
        row["port_ids"] = [*row["port_ids"], port["id"]]
        self._servers.touch(row)
        fault = self.nova.cloud.faults.action("attach_interface", row["name"])
        if fault.error or fault.delay:
            self._attach_slowly(row, port, fault)
        else:
            self.bind(row, port)
        return Response(200, {"interfaceAttachment": _view(call, port)})

    def _attach_slowly(self, row: JsonObject, port: JsonObject, fault: ActionFault) -> None:
        """List the port at once, and let the hypervisor attach it, or fail, after a while. Nova answers only
        then: a rule of `api` takes the answer away.
        """
        values = {"device_id": row["id"], "device_owner": f"compute:{row['zone']}"}
        self._neutron.ports.apply(port, values)
        event = ("interface.attached", row["id"], port["id"], fault.error)
        self.nova.cloud.schedule.after(fault.delay, *event)

    def show(self, call: Call, id_: str, port_id: str) -> Response:
        """Show a port of a server."""
        row = self._servers.visible(call, id_)
        port = self._neutron.ports.table.get(port_id)
        if port is None:
            raise ApiError(404, f"Port id {port_id} could not be found.")
        if port_id not in row["port_ids"]:
            raise ApiError(404, f"Instance {id_} does not have a port with id {port_id}")
        return Response(200, {"interfaceAttachment": _view(call, port)})

    def detach(self, call: Call, id_: str, port_id: str) -> Response:
        """Detach a port after a while; an unknown port is accepted, as by nova."""
        row = self._servers.visible(call, id_)
        require_state(row, "detach_interface", ("active", "paused", "stopped"))
        self._servers.record(call, row, "detach_interface")
        self._servers.table.save(row)
        seconds = self.nova.cloud.delays.server_action
        self.nova.cloud.schedule.after(seconds, "interface.detached", id_, port_id)
        return Response(202)

    def security_groups(self, call: Call, id_: str) -> Response:
        """List the security groups of a server's ports."""
        row = self._servers.visible(call, id_)
        groups = self._neutron.security_groups
        ids = dict.fromkeys(g for port in self._servers.ports(row) for g in port["security_groups"])
        views = [
            {
                **{name: group[name] for name in ("id", "name", "description")},
                "tenant_id": group["project_id"],
                "rules": [self._rule(rule) for rule in self._ingress(group["id"])],
            }
            for group_id in ids
            if (group := groups.table.get(group_id)) is not None
        ]
        return Response(200, {"security_groups": views})

    def _ingress(self, group_id: str) -> list[JsonObject]:
        rules = self._neutron.security_group_rules.of_group(group_id)
        return [rule for rule in rules if rule["direction"] == "ingress"]

    def _rule(self, rule: JsonObject) -> JsonObject:
        remote = self._neutron.security_groups.table.get(rule["remote_group_id"] or "")
        group = {"name": remote["name"], "tenant_id": remote["project_id"]} if remote else {}
        return {
            "id": rule["id"],
            "parent_group_id": rule["security_group_id"],
            "ip_protocol": rule["protocol"],
            "from_port": rule["port_range_min"],
            "to_port": rule["port_range_max"],
            "group": group,
            "ip_range": {"cidr": rule["remote_ip_prefix"]} if rule["remote_ip_prefix"] else {},
        }

    def _new_port(self, call: Call, row: JsonObject, given: JsonObject) -> JsonObject:
        neutron = self._neutron
        network = neutron.networks.table.get(given.get("net_id") or "")
        if network is None or not neutron.networks.is_visible(call, network):
            raise ApiError(404, f"Network {given.get('net_id')} could not be found.")
        values: JsonObject = {"device_id": row["id"]}
        if given.get("fixed_ips"):
            values["fixed_ips"] = given["fixed_ips"]
        try:
            port: JsonObject = neutron.ports.add(network, row["project_id"], values)
        except ApiError as error:
            raise ApiError(400, error.message) from error
        row["own_ports"].append(port["id"])
        return port

    def _attached(self, id_: str, port_id: str, error: str | None) -> None:
        row = self._servers.table.get(id_)
        port = self._neutron.ports.table.get(port_id)
        if row is None or port is None or port_id not in row["port_ids"]:
            return
        if error:
            self._servers.release(row, port)
            self._servers.mark_failed(row, "attach_interface")
        else:
            self.bind(row, port)
        self._servers.touch(row)

    def _detached(self, id_: str, port_id: str) -> None:
        row = self._servers.table.get(id_)
        port = self._neutron.ports.table.get(port_id)
        if row is None:
            return
        if port is not None and port_id in row["port_ids"]:
            self._servers.release(row, port)
            self._servers.touch(row)
        else:
            self._servers.mark_failed(row, "detach_interface")
            self._servers.table.save(row)


def _view(call: Call, port: JsonObject) -> JsonObject:
    view = {
        "port_id": port["id"],
        "net_id": port["network_id"],
        "mac_addr": port["mac_address"],
        "port_state": port["status"],
        "fixed_ips": port["fixed_ips"],
    }
    return {**view, "tag": None} if call.version >= (2, 70) else view
