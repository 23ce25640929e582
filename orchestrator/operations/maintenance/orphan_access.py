"""Access to the objects of orphans, whose resources and stacks may be gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.config import Settings
from orchestrator.operations.resource_context.operation import with_provider_access
from orchestrator.resources.base import Context, ResourceType
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.verbs.contexts import operation_context


@dataclass(frozen=True, slots=True)
class OrphanAccess:
    """The resource types, and what their verbs need to reach the objects of any stack.

    `settings` have the addresses of other services, `software` is the store of a project's software objects,
    and `cloud` returns the provider access of a tree by its root stack.
    """

    types: Mapping[str, ResourceType]
    settings: Settings | None = None
    software: Callable[[str], SoftwareStore] = lambda _: UNCONNECTED
    cloud: Callable[[int], Cloud | None] = lambda _: None

    def context(self, name: str, token: str, project_id: str, root_id: int | None) -> Context:
        """Return the context of verbs on the objects of a token; `root_id` is None if the stack is gone."""
        ctx = operation_context(
            name=name, physical_name=name, token=token, action="DELETE", software=self.software(project_id)
        )
        cloud = None if root_id is None else self.cloud(root_id)
        return with_provider_access(ctx, self.settings, project_id, cloud)
