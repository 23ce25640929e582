"""The update of a server: the changes that are requested at once, and the further steps.

`update` stores the remaining changes in the data of the resource, under the keys of `state.update_step`. Each
step reads the server first, because it may run twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from orchestrator.clients.openstack.compute import REBUILD as REBUILD_VERSION
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Value
from orchestrator.resources.builtin.server_metadata import PLACE, TRANSPORT
from orchestrator.resources.openstack.creation_marks import tags
from orchestrator.resources.openstack.nova.base import compute
from orchestrator.resources.openstack.nova.server import agent, interfaces, request, state
from orchestrator.resources.openstack.nova.server.declarations import IGNORE, REBUILD, REBUILD_KEEPING_DISK
from orchestrator.resources.openstack.nova.server.port_release import awaiting_ports, is_attached
from orchestrator.resources.openstack.nova.server.user_data import user_data
from orchestrator.resources.openstack.settings import as_json_texts

CONFIRMATION_IN_PROGRESS: Final = frozenset({"BadRequest", "Conflict", "NotFound"})
KEPT: Final = ("agent", "ports", "networks")  # of the data of a resource, when an update begins


def start_update(
    ctx: Context, server_id: str, props: Mapping[str, Value], changed: frozenset[str]
) -> JsonObject:
    """Request the immediate changes; return the data with the remaining changes."""
    nova = compute(ctx)
    if "metadata" in changed:
        nova.set_metadata(server_id, as_json_texts(props.get("metadata")))
    if "tags" in changed:
        nova.set_tags(server_id, tags(ctx.token, props.get("tags")))
    if "name" in changed:
        nova.update_server(server_id, {"name": request.server_name(ctx, props)})
    if changed & {TRANSPORT, PLACE}:
        agent.change_transport(ctx, server_id, props)
    data: JsonObject = {"ports": [], **{key: ctx.data[key] for key in KEPT if key in ctx.data}}
    if "networks" in changed:
        data |= _network_changes(ctx, server_id, props)
    if "flavor" in changed:
        data["resize"] = props["flavor"]
    if "image" in changed and props.get("image"):
        data["image"] = props["image"]
    if "user_data" in changed and props.get("user_data_update_policy") not in (IGNORE, None):
        data["rebuild"] = True
    if "admin_pass" in changed and props.get("admin_pass") and not ("image" in data or "rebuild" in data):
        nova.act(server_id, "changePassword", {"adminPass": props["admin_pass"]})
    return data


def _network_changes(ctx: Context, server_id: str, props: Mapping[str, Value]) -> JsonObject:
    before, after = ctx.data.get("networks") or [], interfaces.entries(props)
    attached = compute(ctx).interfaces(server_id)
    own_ports = ctx.data.get("ports") or []
    pending = ctx.data.get("detach") or ()
    detach, attach, kept = interfaces.changes(before, after, own_ports, attached, pending)
    ids = {port["id"] for port in kept}
    ports = [*(port for port in own_ports if port["id"] not in ids), *kept]
    return {"networks": after, "detach": detach, "attach": attach, "ports": ports}


def advance(ctx: Context, server_id: str, props: Mapping[str, Value], step: str) -> JsonObject:
    """Carry out a step; return the new data."""
    data = dict(ctx.data)
    match step:
        case "recover":
            return recovered_data(ctx, props)
        case "detach_interfaces":
            for port_id in data.get("detach") or ():
                compute(ctx).detach_interface(server_id, port_id)
            return {**data, "detaching": True}
        case "attach_interfaces":
            return _attach(ctx, server_id, props, data)
        case "resize":
            return _resize(ctx, server_id, data)
        case "confirm_resize":
            return _confirm(ctx, server_id, data)
        case "delete_ports":
            interfaces.remove_ports(ctx, interfaces.own_port_ids(ctx))
        case "rebuild":
            return _rebuild(ctx, server_id, props, data)
    return data


def recovered_data(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the data of a server whose create had no answer."""
    wanted = interfaces.entries(props)
    return stored_data(ctx, props, wanted, interfaces.find_own_ports(ctx, wanted))


def stored_data(
    ctx: Context, props: Mapping[str, Value], wanted: list[JsonObject], own_ports: list[JsonObject]
) -> JsonObject:
    """Return the data to store with a new server; `wanted` are the entries of `networks`."""
    return {**agent.agent_data(ctx, props), "ports": own_ports, "networks": wanted}


def _attach(ctx: Context, server_id: str, props: Mapping[str, Value], data: JsonObject) -> JsonObject:
    """Delete the own ports that are detached, and attach what is missing. An answered attachment is complete;
    one without an answer is requested again, or awaited while its port is listed and not active.
    """
    nova, detached = compute(ctx), set(data.pop("detach", ()))
    data.pop("detaching", None)
    own_ports = [port for port in data.get("ports") or () if port["id"] not in detached]
    interfaces.remove_ports(ctx, [port["id"] for port in data.get("ports") or () if port["id"] in detached])
    missing, awaited = data.pop("attach", []), list[Mapping[str, Any]]()
    attached = {interface["port_id"]: interface for interface in nova.interfaces(server_id)}
    known = [port["id"] for port in own_ports]
    for entry in missing:
        made = interfaces.create_own_ports(_repeated(ctx), props, [entry]) if entry else []
        own_ports += [port for port in made if port["id"] not in known]
        [port] = interfaces.matched_ports([entry], made, list(attached.values())) if entry else [None]
        if port is None:
            with awaiting_ports(ctx, [entry.get("port")]):
                nova.attach_interface(server_id, interfaces.attachment(entry, made))
        elif not is_attached(ctx, attached[port]):
            awaited.append(entry)
    return {**data, "ports": own_ports, **({"attach": awaited} if awaited else {})}


def _repeated(ctx: Context) -> Context:
    """Return a context in which own ports of an earlier attempt are searched."""
    return replace(ctx, elapsed_seconds=max(ctx.elapsed_seconds, 1.0))


def _resize(ctx: Context, server_id: str, data: JsonObject) -> JsonObject:
    server = compute(ctx).current_server(server_id) or {}
    if not state.task_of(server) and state.flavor_of(server) != data["resize"]:
        compute(ctx).act(server_id, "resize", {"flavorRef": data["resize"]})
    return {**data, "resizing": data["resize"]}


def _confirm(ctx: Context, server_id: str, data: JsonObject) -> JsonObject:
    server = compute(ctx).current_server(server_id) or {}
    if state.status_of(server) == "VERIFY_RESIZE" and not state.task_of(server):
        try:
            compute(ctx).act(server_id, "confirmResize")
        except ProviderError as error:
            # Nova shows no task while it confirms, and refuses a second confirmation.
            if error.kind not in CONFIRMATION_IN_PROGRESS:
                raise
    return {**data, "confirming": True}


def _rebuild(ctx: Context, server_id: str, props: Mapping[str, Value], data: JsonObject) -> JsonObject:
    server = compute(ctx).current_server(server_id) or {}
    if state.task_of(server):
        return data
    image = data.get("image") or state.image_of(server) or props.get("image")
    arguments: dict[str, Any] = {"imageRef": image, "name": request.server_name(ctx, props)}
    if props.get("admin_pass"):
        arguments["adminPass"] = props["admin_pass"]
    if props.get("image_update_policy") == REBUILD_KEEPING_DISK:
        arguments["preserve_ephemeral"] = True
    if props.get("user_data_update_policy") == REBUILD:
        arguments["user_data"] = user_data(ctx, props, agent.initial_metadata(ctx, props)) or None
    compute(ctx).act(server_id, "rebuild", arguments, microversion=REBUILD_VERSION)
    return {key: value for key, value in data.items() if key != "rebuild"}
