"""Nova's API: servers, key pairs, flavors, groups of servers and hosts, quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections, inner
from orchestrator.json_types import JsonMapping, JsonObject

# The last microversion in which a server names its flavor by id; later versions embed the flavor.
READ: Final = "2.46"
CREATE: Final = "2.52"  # accepts tags, and still accepts `personality`
CREATE_WITH_VOLUME_TYPE: Final = "2.67"
REBUILD: Final = "2.57"  # accepts user data and a key
ATTACH: Final = "2.49"  # accepts a tag
QUOTAS: Final = "2.35"  # later ones reject quotas of networks
CONSOLES: Final = "2.8"
KEY_TYPES: Final = "2.10"  # types, and keys of other users; later microversions create no keys
GROUP_POLICIES: Final = "2.15"  # of server groups: soft policies
GROUP_RULES: Final = "2.64"  # of server groups

KEY_PAIRS: Final = Collection(
    "/os-keypairs", "keypair", "keypairs", id_key="name", microversion=KEY_TYPES, unnamed=True
)
FLAVORS: Final = Collection(
    "/flavors", "flavor", "flavors", listing="/flavors/detail", only_ids=False, by_name=False
)
SERVER_GROUPS: Final = Collection(
    "/os-server-groups", "server_group", "server_groups", page=None, microversion=GROUP_POLICIES
)
AGGREGATES: Final = Collection("/os-aggregates", "aggregate", "aggregates", page=None)
QUOTA_SETS: Final = Collection("/os-quota-sets", "quota_set", "", microversion=QUOTAS)


class Compute(Collections):
    """Nova, called as a credential."""

    service: ClassVar[str] = "nova"
    service_type: ClassVar[str] = "compute"
    complete_lists: ClassVar[str | None] = "2.69"
    microversion: ClassVar[str | None] = READ

    # Servers

    def create_server(self, server: JsonMapping, hints: JsonMapping | None = None) -> JsonObject:
        """Request a server; return its id, and the password that nova generated."""
        body: JsonObject = {"server": server}
        if hints:
            body["os:scheduler_hints"] = hints
        devices: Sequence[Mapping[str, Any]] = server.get("block_device_mapping_v2") or ()
        typed = any("volume_type" in device for device in devices)
        return inner(self.post("/servers", body, microversion=CREATE_WITH_VOLUME_TYPE if typed else CREATE))

    def server(self, server_id: str, *, young: bool = False) -> JsonObject | None:
        """Return a server for an observation, None if it does not exist.

        Raises:
            NotListedYet: a young server is not in a recent list.
        """
        return self.observed("/servers", "server", server_id, listing="/servers/detail", young=young)

    def current_server(self, server_id: str) -> JsonObject | None:
        """Return a server as it is now, None if it does not exist."""
        answer = self.find_one(f"/servers/{server_id}")
        return None if answer is None else inner(answer)

    def servers_with_tag(self, tag: str) -> list[JsonObject]:
        """Return the servers with a tag, including those in construction."""
        return list(self.listed("/servers/detail", "servers", {"tags": tag}))

    def update_server(self, server_id: str, values: JsonMapping) -> None:
        """Change the name or the access addresses of a server."""
        self.put(f"/servers/{server_id}", {"server": values})

    def delete_server(self, server_id: str) -> bool:
        """Request the deletion of a server. Return whether it existed."""
        return self.delete(f"/servers/{server_id}")

    def set_metadata(self, server_id: str, metadata: JsonMapping) -> None:
        """Replace the metadata of a server."""
        self.put(f"/servers/{server_id}/metadata", {"metadata": metadata})

    def set_tags(self, server_id: str, tags: Sequence[str]) -> None:
        """Replace the tags of a server."""
        self.put(f"/servers/{server_id}/tags", {"tags": list(tags)})

    def act(
        self, server_id: str, action: str, arguments: Any = None, *, microversion: str | None = None
    ) -> JsonObject:
        """Request an action of a server: `suspend`, `resize`, `confirmResize` …"""
        return self.post(f"/servers/{server_id}/action", {action: arguments}, microversion=microversion)

    def create_image(self, server_id: str, name: str, metadata: JsonMapping) -> str:
        """Request an image of a server; return the id of the image."""
        arguments = {"name": name, "metadata": metadata}
        return str(self.act(server_id, "createImage", arguments)["image_id"])

    def console(self, server_id: str, protocol: str, console_type: str) -> JsonObject:
        """Open a console; return its URL."""
        body = {"remote_console": {"protocol": protocol, "type": console_type}}
        return inner(self.post(f"/servers/{server_id}/remote-consoles", body, microversion=CONSOLES))

    def last_action(self, server_id: str, action: str = "") -> JsonObject | None:
        """Return the latest request for an action, by default for any, with its `request_id`; None if there
        is none. Its `message` is "Error" if a compute service reported a failure.
        """
        answer = self.find_one(f"/servers/{server_id}/os-instance-actions") or {}
        actions = answer.get("instanceActions") or ()
        found = [one for one in actions if not action or one.get("action") == action]
        return max(found, key=lambda one: str(one.get("start_time")), default=None)

    # Interfaces and volumes of a server

    def interfaces(self, server_id: str) -> list[JsonObject]:
        """Return the network interfaces of a server, [] if it does not exist."""
        answer = self.find_one(f"/servers/{server_id}/os-interface")
        return list((answer or {}).get("interfaceAttachments") or ())

    def attach_interface(self, server_id: str, interface: JsonMapping) -> JsonObject:
        """Attach a port or a network."""
        body = {"interfaceAttachment": interface}
        return inner(self.post(f"/servers/{server_id}/os-interface", body, microversion=ATTACH))

    def detach_interface(self, server_id: str, port_id: str) -> bool:
        """Request the detachment of a port. Return whether it was attached."""
        return self.delete(f"/servers/{server_id}/os-interface/{port_id}")

    def volume_attachments(self, server_id: str) -> list[JsonObject]:
        """Return the volumes of a server, [] if it does not exist."""
        answer = self.find_one(f"/servers/{server_id}/os-volume_attachments")
        return list((answer or {}).get("volumeAttachments") or ())

    def attach_volume(self, server_id: str, attachment: JsonMapping) -> JsonObject:
        """Request the attachment of a volume."""
        body = {"volumeAttachment": attachment}
        return inner(self.post(f"/servers/{server_id}/os-volume_attachments", body))

    def detach_volume(self, server_id: str, volume_id: str) -> bool:
        """Request the detachment of a volume. Return whether it was attached."""
        return self.delete(f"/servers/{server_id}/os-volume_attachments/{volume_id}")
