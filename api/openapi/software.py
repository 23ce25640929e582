"""Software configs and deployments."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.operation import Operation, Operations, no_content, ok
from orchestrator.bodies.model import UUID, Id, Shape, Time, described, optional
from orchestrator.json_types import JsonObject

TAG: Final = "software"
GONE: Final = frozenset({409})


class ConfigListed(Shape):
    """A software config in a list."""

    id: Id
    name: str | None = described("Name.", "install")
    group: str | None = described("The agent hook that runs it.", "script")
    creation_time: Time
    project: str | None = optional("Project.")


class Config(ConfigListed):
    """A software config."""

    config: Any = described("Content.", "#!/bin/sh\necho hello")
    inputs: list[Any] = described("Inputs.", [])
    outputs: list[Any] = described("Description.", [])
    options: Any = described("Options of the agent hook.", {})


class ConfigList(Shape):
    """A page of configs."""

    software_configs: list[ConfigListed] = described("Newest first.")


class ConfigShow(Shape):
    """A config."""

    software_config: Config = described("Software config.")


class ConfigCreate(Shape):
    """A new config."""

    name: str | None = optional("Name.", "install")
    group: str | None = optional("The agent hook that runs it.", "script")
    config: Any = optional("Content.", "#!/bin/sh\necho hello")
    inputs: list[JsonObject] | None = optional("Inputs.", [{"name": "who", "type": "String"}])
    outputs: list[JsonObject] | None = optional("Description.", [{"name": "result"}])
    options: Any = optional("Options of the agent hook.", {})


class ConfigQuery(Shape):
    """Filter of configs."""

    limit: int | None = optional("Maximum number of results.", 100, ge=0)
    marker: str | None = optional("Return results after the object with this id.", UUID)
    global_tenant: bool | None = optional("Include all projects; requires a policy that allows it.", False)


class Deployment(Shape):
    """A deployment of a config to a server."""

    id: Id
    server_id: str = described("Server id.", UUID)
    config_id: Any = described("Software config.", UUID)
    input_values: Any = described("Input values of the config.", {"who": "world"})
    output_values: Any = described("Output values of the config.", {})
    action: str | None = described("Action that triggers the deployment.", "CREATE")
    status: str | None = described("Status.", "IN_PROGRESS")
    status_reason: str | None = described("Reason.", None)
    creation_time: Time
    updated_time: Time | None = optional("Time of the last update.")


class DeploymentList(Shape):
    """Deployments."""

    software_deployments: list[Deployment] = described("Oldest first.")


class DeploymentShow(Shape):
    """A deployment."""

    software_deployment: Deployment = described("The deployment.")


class DeploymentUpdate(Shape):
    """Changes of a deployment; null values are ignored."""

    config_id: str | None = optional("New config.", UUID)
    input_values: JsonObject | None = optional("Input values of the config.", {"who": "world"})
    output_values: JsonObject | None = optional("Output values of the config.", {})
    action: str | None = optional("Action that triggers the deployment.", "CREATE")
    status: str | None = optional("Status.", "COMPLETE")
    status_reason: str | None = optional("Reason.", "Outputs received")


class DeploymentCreate(DeploymentUpdate):
    """A deployment of a config to a server."""

    config_id: str = described("Software config.", UUID)
    server_id: str = described("Server id.", UUID)
    stack_user_project_id: str | None = optional("Project of the stack users.", "demo", max_length=64)


class DeploymentQuery(Shape):
    """Filter of deployments."""

    server_id: str | None = optional("Only deployments of this server.", UUID)


class ServerConfigs(Shape):
    """Configs for a server's agent."""

    metadata: list[Any] = described("Configs, sorted by name.", [])


OPERATIONS: Final[Operations] = {
    "software_configs.index": Operation(TAG, ok("The configs.", ConfigList), ConfigQuery),
    "software_configs.create": Operation(TAG, ok("Software config.", ConfigShow), body=ConfigCreate),
    "software_configs.show": Operation(TAG, ok("Software config.", ConfigShow)),
    "software_configs.delete": Operation(TAG, no_content(204, "Deleted."), refuses=GONE),
    "software_deployments.index": Operation(TAG, ok("The deployments.", DeploymentList), DeploymentQuery),
    "software_deployments.metadata": Operation(
        TAG,
        ok("The configs.", ServerConfigs),
        text="Secrets are masked, except for the credentials of the server.",
    ),
    "software_deployments.create": Operation(
        TAG, ok("The deployment.", DeploymentShow), body=DeploymentCreate
    ),
    "software_deployments.show": Operation(TAG, ok("The deployment.", DeploymentShow)),
    "software_deployments.update": Operation(
        TAG, ok("The deployment.", DeploymentShow), body=DeploymentUpdate
    ),
    "software_deployments.delete": Operation(TAG, no_content(204, "Deleted.")),
}
