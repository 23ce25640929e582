"""Configs and deployments in memory, for types that are tested without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import ProviderError
from orchestrator.resources.builtin.software_io import judge
from orchestrator.resources.software_api import (
    Config,
    ConfigDraft,
    Credentials,
    Deployment,
    DeploymentDraft,
    MetadataObject,
    StackLocation,
)

HERE = StackLocation("p1", "s", "0b5b0c5e-1111-4222-8333-444455556666", "a", "http://api:8004")


@dataclass
class SoftwareMemory:
    """A store as a visit sees it; `operation` stands for the traversal."""

    place: StackLocation = HERE
    operation: int = 1
    configs: dict[str, Config] = field(default_factory=dict)
    deployments: dict[str, Deployment] = field(default_factory=dict)
    servers: set[str] = field(default_factory=set)
    noted: dict[str, bool] = field(default_factory=dict)
    done: set[tuple[str, int, str]] = field(default_factory=set)
    secrets: list[str] = field(default_factory=list)  # configs that are masked
    agents: dict[str, Credentials] = field(default_factory=dict)
    metadata_objects: dict[str, MetadataObject | None] = field(default_factory=dict)

    def add_config(self, config_id: str, draft: ConfigDraft, *, secret: bool) -> None:
        self.configs.setdefault(config_id, Config(config_id, draft))
        if secret:
            self.secrets.append(config_id)

    def config(self, config_id: str) -> Config | None:
        return self.configs.get(config_id)

    def remove_config(self, config_id: str) -> None:
        if any(item.config_id == config_id for item in self.deployments.values()):
            raise ProviderError(f"{config_id} is referenced", kind="InvalidRestrictedAction")
        self.configs.pop(config_id, None)

    def metadata_object(self, server_id: str) -> MetadataObject | None:
        return self.metadata_objects.get(server_id)

    def set_metadata_object(self, server_id: str, place: MetadataObject | None) -> None:
        self.metadata_objects[server_id] = place

    def publication(self, action: str) -> str:
        return f"{self.operation} {action}"

    def deployment(self, deployment_id: str) -> Deployment | None:
        return self.deployments.get(deployment_id)

    def deploy(self, deployment_id: str, draft: DeploymentDraft, *, secret: bool) -> None:
        step = (deployment_id, self.operation, draft.action)
        if step in self.done:
            return
        self.done.add(step)
        before = self.deployments.get(deployment_id)
        config_id = f"derived {len(self.done)}"
        self.add_config(config_id, draft.config, secret=secret)
        status, reason = ("IN_PROGRESS", "Deploy data available") if draft.waits else ("COMPLETE", "")
        outputs = {} if before is None else before.output_values
        self.deployments[deployment_id] = Deployment(
            deployment_id, draft.server_id, config_id, draft.action, status, reason, outputs
        )
        self.noted[deployment_id] = draft.server_id in self.servers
        if before is not None:
            self.remove_config(before.config_id)

    def signal(self, deployment_id: str, details: Mapping[str, Any]) -> str:
        now = self.deployments[deployment_id]
        outputs = self.configs[now.config_id].draft.outputs
        reported = judge(outputs, details, now.output_values)
        status = "FAILED" if reported.failed else "COMPLETE"
        self.deployments[deployment_id] = replace(
            now, status=status, status_reason=reported.reason, output_values=reported.outputs
        )
        return f"deployment {deployment_id} {reported.summary}"

    def cancel(self, deployment_id: str) -> None:
        now = self.deployments[deployment_id]
        self.deployments[deployment_id] = replace(now, status="FAILED", status_reason="Deployment cancelled.")

    def remove_deployment(self, deployment_id: str) -> None:
        gone = self.deployments.pop(deployment_id, None)
        if gone is not None:
            self.remove_config(gone.config_id)

    def server_lost(self, deployment_id: str) -> bool:
        now = self.deployments.get(deployment_id)
        return now is not None and self.noted[deployment_id] and now.server_id not in self.servers

    def published(self, server_id: str) -> Sequence[Mapping[str, Any]]:
        ids = [item.config_id for item in self.deployments.values() if item.server_id == server_id]
        return [{"id": id_, "name": self.configs[id_].draft.name} for id_ in ids]

    def add_server(self, server_id: str) -> None:
        self.servers.add(server_id)

    def has_server(self, server_id: str) -> bool:
        return server_id in self.servers

    def remove_server(self, server_id: str) -> None:
        self.servers.discard(server_id)

    def credentials(self, thing_id: str) -> Credentials:
        return self.agents.setdefault(thing_id, Credentials(f"key of {thing_id}", "secret", "token"))

    def forget(self, thing_id: str) -> None:
        self.agents.pop(thing_id, None)
