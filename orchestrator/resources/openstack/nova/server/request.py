"""The request for a new server."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.openstack.creation_marks import tags
from orchestrator.resources.openstack.nova.base import compute
from orchestrator.resources.openstack.nova.server import agent, devices, interfaces
from orchestrator.resources.openstack.nova.server.port_release import awaiting_ports
from orchestrator.resources.openstack.nova.server.user_data import user_data
from orchestrator.resources.openstack.settings import as_json_texts

NO_NETWORK: Final = "Unable to automatically allocate a network"
_PLAIN: Final = {
    "key_name": "key_name",
    "availability_zone": "availability_zone",
    "config_drive": "config_drive",
    "diskConfig": "OS-DCF:diskConfig",
    "admin_pass": "adminPass",
    "reservation_id": "reservation_id",
}


def server_name(ctx: Context, props: Mapping[str, Value]) -> str:
    """Return the name of the server."""
    return str(props.get("name") or ctx.physical_name)


def _body(
    ctx: Context,
    props: Mapping[str, Value],
    wanted: Sequence[Mapping[str, Any]],
    own_ports: Sequence[Mapping[str, Any]],
) -> JsonObject:
    """Return the body of the request; `wanted` are the entries of `networks`."""
    request: JsonObject = {
        "name": server_name(ctx, props),
        "flavorRef": props["flavor"],
        "networks": interfaces.requested_networks(wanted, own_ports),
        "tags": tags(ctx.token, props.get("tags")),
    }
    for name, key in _PLAIN.items():
        if props.get(name) is not None and props[name] != "":
            request[key] = props[name]
    if props.get("image"):
        request["imageRef"] = props["image"]
    if props.get("metadata"):
        request["metadata"] = as_json_texts(props["metadata"])
    encoded = user_data(ctx, props, agent.initial_metadata(ctx, props))
    if encoded:
        request["user_data"] = encoded
    return {**request, **_devices(props), **_security_groups(props, wanted), **_files(props)}


def request_server(
    ctx: Context,
    props: Mapping[str, Value],
    wanted: Sequence[Mapping[str, Any]],
    own_ports: Sequence[Mapping[str, Any]],
) -> str:
    """Request the server and return its id. A port that a deleted server still holds is waited for."""
    body, hints = _body(ctx, props, wanted, own_ports), props.get("scheduler_hints")
    try:
        with awaiting_ports(ctx, [entry.get("port") for entry in wanted]):
            return str(compute(ctx).create_server(body, hints)["id"])
    except ProviderError as error:
        if body["networks"] != "auto" or props.get("networks") or NO_NETWORK not in str(error):
            raise
    # As before the microversion 2.37: a project without networks gets a server without an interface.
    return str(compute(ctx).create_server({**body, "networks": "none"}, hints)["id"])


def _devices(props: Mapping[str, Value]) -> JsonObject:
    if props.get("block_device_mapping"):
        return {"block_device_mapping": devices.legacy_mapping(props["block_device_mapping"])}
    if props.get("block_device_mapping_v2"):
        return {
            "block_device_mapping_v2": devices.mapping(props["block_device_mapping_v2"], props.get("image"))
        }
    return {}


def _security_groups(props: Mapping[str, Value], wanted: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the groups of ports that nova creates; existing ports have their own groups."""
    groups = props.get("security_groups")
    only_ports = bool(wanted) and all(
        entry.get("port") or interfaces.needs_own_port(entry) for entry in wanted
    )
    return {"security_groups": [{"name": group} for group in groups]} if groups and not only_ports else {}


def _files(props: Mapping[str, Value]) -> JsonObject:
    files = props.get("personality") or {}
    if not files:
        return {}
    encoded = {path: base64.b64encode(str(text).encode()).decode("ascii") for path, text in files.items()}
    return {"personality": [{"path": path, "contents": text} for path, text in encoded.items()]}
