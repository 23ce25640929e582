"""The context of an observation beside operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.physical_names import physical_name
from orchestrator.operations.children.loader import LazyStackContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import operation
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import ResourceState, load_state
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, ResourceType, Value
from orchestrator.resources.stack_context import StackLocation
from orchestrator.store.observations import Db


def full_context(engine: WorkerContext, db: Db, visit: ResourceVisit) -> Context:
    """Return the context of any type, with access to the stack and its software."""
    stored_context = StoredStackContext(db, engine.cipher, None, engine.settings.endpoint)
    software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
    state = load_state(visit, engine.cipher)
    ctx = operation.context(visit, state, "CHECK", 0.0, software, stored_context)
    ctx = replace(ctx, stack_context=LazyStackContext(engine.stacks, visit))
    cloud = cloud_of_stack(engine.database.borrow, engine.cipher, engine.settings, visit.stack.root_id)
    return operation.with_provider_access(ctx, engine.settings, visit.stack.project_id, cloud)


def context_in_list(
    type_: ResourceType,
    visit: ResourceVisit,
    state: ResourceState,
    cloud: Cloud | None,
    listed: Mapping[str, Value],
) -> Context:
    """Return the context of a type with lists, whose observations need the object only."""
    resource, stack = visit.resource, visit.stack
    return Context(
        name=resource.name,
        physical_name=physical_name(stack.name, resource.name, resource.uuid, type_.physical_name_limit),
        token=f"{resource.uuid}-{resource.attempt}",
        action="CHECK",
        properties=state.properties,
        data=state.data,
        metadata=state.metadata or {},
        secret=state.secret,
        project_id=stack.project_id,
        cloud=cloud,
        location=StackLocation(stack.project_id, stack.name, stack.uuid, resource.name),
        listed=listed,
    )
