"""OS::Heat::DeployedServer: an existing server as a target of deployments (docs/internals/resource-types.md
§A9).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Grant,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.resources.builtin import server_metadata
from orchestrator.resources.builtin.agent_transport import access, polling
from orchestrator.resources.builtin.server_metadata import AGENT, DEPLOYMENTS, TEMP_URL
from orchestrator.resources.software_api import id_of
from orchestrator.schema.constraints import AllowedValues, Length

COLLECTORS: Final = {"POLL_SERVER_CFN": "cfn", "POLL_SERVER_HEAT": "heat", TEMP_URL: "request"}
MAX_NAME_LENGTH: Final = 53


class DeployedServer(ResourceType):
    """Represents an existing server; its metadata hold the agent's configuration and polling address."""

    name = "OS::Heat::DeployedServer"
    can_check = False  # the state of the server is unknown to us
    support_version = "8.0.0"
    physical_name_limit = MAX_NAME_LENGTH
    flight_seconds = 0.0  # it is noted in our own database
    can_snapshot = True  # a snapshot has no data
    publishes = True
    properties = {
        "name": Property("string", "The name of the server.", update_allowed=True),
        "metadata": Property(
            "map", "Nothing.", update_allowed=True, deprecated="This property will be ignored"
        ),
        "software_config_transport": Property(
            "string",
            "Transport by which the agent on the server receives its deployments.",
            default="POLL_SERVER_CFN",
            update_allowed=True,
            constraints=(
                AllowedValues(("POLL_SERVER_CFN", "POLL_SERVER_HEAT", "POLL_TEMP_URL", "ZAQAR_MESSAGE")),
            ),
        ),
        "deployment_swift_data": Property(
            "map",
            "Object that POLL_TEMP_URL uses for the agent's metadata.",
            default={},
            update_allowed=True,
            schema={
                "container": Property("string", "The container.", constraints=(Length(min=1),)),
                "object": Property("string", "The object.", constraints=(Length(min=1),)),
            },
        ),
    }
    attributes = {
        "name": Attribute("The name of the server.", type="string"),
        "os_collect_config": Attribute("The settings of the agent on the server.", type="map", secret=True),
    }

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """Refuse the transport by a message queue."""
        return server_metadata.transport_faults(properties)

    inquire = server_metadata.require_object_store

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Register the server."""
        server_id = id_of(ctx.token)
        ctx.software.add_server(server_id)
        return self.update(ctx, server_id, props, frozenset(props))

    def grants(self, ctx: Context, physical_id: str) -> Grant | None:
        """Grant the agent's credentials access to the metadata."""
        through_api = ctx.properties.get("software_config_transport") == "POLL_SERVER_HEAT"
        user = ctx.users.make() if through_api and ctx.users is not None else None
        return access(ctx.software.credentials(physical_id), user)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return the id under which a try with this token noted it."""
        server_id = id_of(token)
        return server_id if ctx.software.has_server(server_id) else None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Return the agent's configuration as attributes."""
        if ctx.action == "DELETE":
            return Observation(exists=ctx.software.has_server(physical_id))
        name = ctx.properties.get("name") or ctx.physical_name
        return Observation(
            exists=True, attributes={"name": name, "os_collect_config": _agent(ctx, physical_id)}
        )

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Write the configuration of the agent, which follows from the properties, if it reads an object."""
        if changed & {server_metadata.TRANSPORT, server_metadata.PLACE}:
            server_metadata.prepare(ctx, props, physical_id)
            server_metadata.write(ctx, physical_id, {**ctx.metadata, **self.published(ctx, physical_id)})
        return Created(physical_id)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Unregister the server."""
        server_metadata.remove(ctx, physical_id)
        ctx.software.remove_server(physical_id)
        ctx.software.forget(physical_id)

    def published(self, ctx: Context, physical_id: str) -> Mapping[str, Value]:
        """Return the agent's configuration; the template's own metadata have precedence."""
        recorded = ctx.metadata.get(AGENT)
        settings = {**(recorded if isinstance(recorded, Mapping) else {}), **_agent(ctx, physical_id)}
        deployments = ctx.software.published(physical_id) or ctx.metadata.get(DEPLOYMENTS) or []
        return {AGENT: settings, DEPLOYMENTS: deployments}


def _agent(ctx: Context, server_id: str) -> JsonObject:
    """Return the agent's settings: transport and address."""
    transport = ctx.properties.get("software_config_transport", "POLL_SERVER_CFN")
    collector = COLLECTORS.get(transport)
    if collector is None:
        return {"collectors": ["local"]}
    if transport == TEMP_URL:
        return {"collectors": [collector, "local"], collector: server_metadata.collector(ctx, server_id)}
    return {"collectors": [collector, "local"], collector: polling(ctx, transport, server_id)}
