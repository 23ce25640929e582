"""The agent for software deployments on a server, with the format SOFTWARE_CONFIG.

Its credentials are created before the server, because they are part of the user data. They are stored under
an id that follows from the request token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Context, Grant, Value
from orchestrator.resources.builtin import server_metadata
from orchestrator.resources.builtin.agent_transport import access, polling
from orchestrator.resources.builtin.deployed_server import COLLECTORS
from orchestrator.resources.builtin.server_metadata import AGENT, DEPLOYMENTS, TEMP_URL
from orchestrator.resources.openstack.nova.server.declarations import SOFTWARE_CONFIG
from orchestrator.resources.software_api import id_of

AGENT_ID: Final = "agent"  # key of the stored data


def has_agent(props: Mapping[str, Value]) -> bool:
    """Return whether an agent runs on the server."""
    return props.get("user_data_format") == SOFTWARE_CONFIG


def grant(ctx: Context, server_id: str) -> Grant | None:
    """Register the server as a target of deployments, and return the access of its agent."""
    if not has_agent(ctx.properties):
        return None
    ctx.software.add_server(server_id)
    if (place := ctx.software.metadata_object(_agent_id(ctx))) is not None:
        ctx.software.set_metadata_object(server_id, place)
    through_api = ctx.properties.get("software_config_transport") == "POLL_SERVER_HEAT"
    user = ctx.users.make() if through_api and ctx.users is not None else None
    return access(ctx.software.credentials(_agent_id(ctx)), user)


def revoke(ctx: Context, server_id: str) -> None:
    """Unregister the server: its deployments are no longer waited for."""
    if has_agent(ctx.properties):
        server_metadata.remove(ctx, server_id)
        ctx.software.set_metadata_object(_agent_id(ctx), None)
        ctx.software.remove_server(server_id)
        ctx.software.forget(_agent_id(ctx))


def settings(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the settings of the agent: transport and address."""
    transport = props.get("software_config_transport") or "POLL_SERVER_CFN"
    collector = COLLECTORS.get(transport)
    if collector is None:
        return {"collectors": ["local"]}
    if transport == TEMP_URL:
        return {"collectors": [collector, "local"], collector: server_metadata.collector(ctx, _agent_id(ctx))}
    return {"collectors": [collector, "local"], collector: polling(ctx, transport, _agent_id(ctx))}


def initial_metadata(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the metadata with which the tools on the guest start."""
    if not has_agent(props):
        return dict(ctx.metadata)
    if props.get("software_config_transport") == "POLL_SERVER_HEAT" and ctx.users is not None:
        ctx.users.make()
    server_metadata.prepare(ctx, props, _agent_id(ctx))
    metadata = {**ctx.metadata, AGENT: settings(ctx, props), DEPLOYMENTS: []}
    if ctx.action == "CREATE":  # the object of a server that is rebuilt has its deployments
        server_metadata.write(ctx, _agent_id(ctx), metadata)
    return metadata


def change_transport(ctx: Context, server_id: str, props: Mapping[str, Value]) -> None:
    """Choose the object of the new transport. An agent that reads an object finds the new one there."""
    if has_agent(props):
        server_metadata.prepare(ctx, props, _agent_id(ctx))
        if (place := ctx.software.metadata_object(_agent_id(ctx))) is not None:
            ctx.software.set_metadata_object(server_id, place)
            server_metadata.write(ctx, server_id, {**ctx.metadata, **published(ctx, server_id)})


def published(ctx: Context, server_id: str) -> JsonObject:
    """Return the agent's settings and the deployments of the server."""
    if not has_agent(ctx.properties):
        return {}
    recorded = ctx.metadata.get(AGENT)
    merged = {**(recorded if isinstance(recorded, Mapping) else {}), **settings(ctx, ctx.properties)}
    deployments = ctx.software.published(server_id) or ctx.metadata.get(DEPLOYMENTS) or []
    return {AGENT: merged, DEPLOYMENTS: deployments}


def _agent_id(ctx: Context) -> str:
    """Return the id of the agent's credentials; the stored id outlives the request token of the create."""
    return str(ctx.data.get(AGENT_ID) or id_of(ctx.token))


def agent_data(ctx: Context, props: Mapping[str, Value]) -> JsonObject:
    """Return the data to store with the server."""
    return {AGENT_ID: _agent_id(ctx)} if has_agent(props) else {}
