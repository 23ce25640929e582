"""A resource operation: the view that a visit has of the resource, its type and its environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from orchestrator.clients.keystone.cloud_session import Cloud, Orchestrations
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.clients.region_catalog import Catalog, catalog_of
from orchestrator.config import Settings
from orchestrator.engine.check.change import NO_NAMES
from orchestrator.engine.check.outcome import Postponed, Replaced
from orchestrator.engine.check.visit import ResourceView, ResourceVisit, demands_copy
from orchestrator.engine.output_digests import SEPARATOR, has_early_parts, is_current_input
from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import Superseded
from orchestrator.json_types import JsonMapping
from orchestrator.lookups.finder import CloudFinder
from orchestrator.operations.keystone.access import KeystoneAccess
from orchestrator.operations.keystone.stack_users import StackUserProvisioner
from orchestrator.operations.resource_context.large_values import reserve
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import (
    USED_LIVE,
    DesiredResource,
    RecordSnapshot,
    RecordStart,
    ResourceState,
    early_digest,
    output_digest,
    without,
)
from orchestrator.operations.runtime.caches import FileCache
from orchestrator.operations.runtime.visit_calls import VisitCalls
from orchestrator.resources.base import EMPTY_CATALOG, Context, Observation, ResourceType, StackContext
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.stack_context import NO_REQUIRED_RESOURCES, StackLocation, StackUsers
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.schema.translation import Finder, Resolve
from orchestrator.security.encryption import Cipher
from orchestrator.store.nodes.large_values import Part
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.secret_values import SecretValues


class Incarnations(Protocol):
    """The other incarnations of a visited resource."""

    def release(self, operation: ResourceOperation) -> Postponed | None:
        """Let them release what the resource needs; return the wait for it, if any."""

    def reclaim(self, operation: ResourceOperation, properties: JsonMapping) -> Postponed | Replaced | None:
        """Let the resource take back what it has released; return the wait for it, or its replacement."""

    def share(self, operation: ResourceOperation) -> bool:
        """Whether the object of a deposed resource belongs to the current one."""


class OperationServices(NamedTuple):
    """Services shared by all operations of a batch of visits."""

    cipher: Cipher
    settings: Settings
    files: FileCache
    stored_context: StoredStackContext
    record_start: RecordStart
    record_step: RecordStart
    record_snapshot: RecordSnapshot
    incarnations: Incarnations
    keystone: KeystoneAccess


class ProviderAccess(NamedTuple):
    """The fields of a context by which an external type reaches its provider."""

    project_id: str = ""
    catalog: Catalog = EMPTY_CATALOG
    cloud: Cloud | None = None


NO_ACCESS: Final = ProviderAccess()
NO_LOCATION: Final = StackLocation()
RECOVERY: Final = "recover"  # the step of an update


class ResourceOperation(NamedTuple):
    """A visit to a resource: input of every step. Only `state` changes during the visit."""

    visit: ResourceVisit
    resource: ResourceView
    resource_type: ResourceType
    state: ResourceState
    parameters: ParameterValues
    software: SoftwareStore
    stack_context: StackContext
    services: OperationServices
    calls: VisitCalls
    desired: DesiredResource | None = None  # if the definition was evaluated before

    @property
    def physical_name(self) -> str:
        """The name of the provider object."""
        limit = self.resource_type.physical_name_limit
        return physical_name(self.visit.stack.name, self.resource.name, self.resource.uuid, limit)

    @property
    def is_recovering(self) -> bool:
        """Whether the open operation is a recovery."""
        return self.state.op == "UPDATE" and self.state.step == RECOVERY

    def record_start(self) -> None:
        """Record the start of the operation durably, before a request is sent.

        Raises:
            Superseded: the lease is lost.
        """
        self.state.step = None
        if not self.services.record_start(self.visit, self.state):
            raise Superseded("the lease was lost before a request was sent")
        self.state.opened = True

    def record_step(self, step: str) -> bool:
        """Record the next step of the operation durably, before it is carried out; False: the lease is lost.

        The visit then ends as usual: what it has created is recorded as an orphan.
        """
        self.state.step = step
        return not self.resource_type.calls_out or self.services.record_step(self.visit, self.state)

    def record(self, observation: Observation) -> None:
        """Update the outputs to an observation.

        Raises:
            LimitExceeded: stack or project have no space for the attributes.
        """
        recorded = recorded_attributes(self.state, self.resource_type, observation)
        self.reserve("attributes", recorded, self.state.attributes)
        record_observation(self.state, self.resource_type, observation)

    def reserve(self, part: Part, value: JsonMapping, before: JsonMapping) -> None:
        """Reserve space in stack and project for a value to be stored.

        Raises:
            LimitExceeded: there is no space.
        """
        services = self.services
        reserve(services.stored_context.db, services.settings, self.visit, part, value, before)

    def users(self) -> StackUserProvisioner | None:
        """Return the stack's Keystone users, None where it has none."""
        services = self.services
        if not self.resource_type.needs_lease:
            return None
        return services.keystone.users(self.visit, services.stored_context.db)

    def context(self, action: str, elapsed: float | None = None, attempt: int | None = None) -> Context:
        """Return the context of a verb, `elapsed` seconds into the operation; None: as long as it is open.
        The token belongs to the present attempt, or to `attempt`.
        """
        services, type_ = self.services, self.resource_type
        access, stack_context = NO_ACCESS, None
        if type_.calls_out:
            access = provider_access(services.settings, self.visit.stack.project_id, self._cloud())
            stack_context = self.stack_context
        return context(
            self.visit,
            self.state,
            action,
            elapsed,
            self.software,
            services.stored_context,
            attempt=attempt,
            name_limit=type_.physical_name_limit,
            users=self.users(),
            stack_context=stack_context,
            access=access,
            calls=self.calls.provider,
        )

    def observe(self, context: Context, physical_id: str | None = None) -> Observation:
        """Observe the object of the resource, or another one."""
        id_ = self.state.physical_id if physical_id is None else physical_id
        return self.calls.run(self.resource_type.observe, context, id_ or "")

    def finder(self) -> Finder | None:
        """Return the look-up for the type's `Resolve` rules, None without a cloud or such rules."""
        if not any(isinstance(rule, Resolve) for rule in self.resource_type.translation):
            return None
        cloud = self._cloud()
        stack = self.visit.stack
        if cloud is None:
            return None
        owner, calls = str(stack.root_id), self.calls
        finder = CloudFinder(cloud, stack.project_id, owner=owner, calls=calls.provider)
        return lambda *names: calls.record(finder, *names)

    def _cloud(self) -> Cloud | None:
        """Return the cloud as the stack's user."""
        return self.services.keystone.cloud(self.visit.stack.root_id, self.visit.credential_id)


def is_current(operation: ResourceOperation) -> bool:
    """Whether the open operation was started for the current definition and the current inputs."""
    resource, visit = operation.resource, operation.visit
    if visit.definition is None or resource.definition_id != visit.definition.id:
        return False
    started_with = dict(zip(resource.requires, resource.input_digests, strict=True))
    return all(is_current_input(started_with.get(data.id), data.value_digest or "") for data in visit.inputs)


def with_provider_access(
    ctx: Context, settings: Settings | None, project_id: str, cloud: Cloud | None = None
) -> Context:
    """Return a context with the project, the region catalog and the cloud session of an external type."""
    access = provider_access(settings, project_id, cloud)
    return replace(ctx, project_id=access.project_id, catalog=access.catalog, cloud=access.cloud)


def provider_access(settings: Settings | None, project_id: str, cloud: Cloud | None) -> ProviderAccess:
    """Return these fields of a context."""
    further = None if cloud is None else Orchestrations(cloud)
    catalog = EMPTY_CATALOG if settings is None else catalog_of(settings, project_id, further)
    return ProviderAccess(project_id, catalog, cloud)


def record_observation(state: ResourceState, resource_type: ResourceType, observation: Observation) -> None:
    """Update the outputs of a resource to an observation; recorded live attributes stay."""
    attributes = recorded_attributes(state, resource_type, observation)
    state.attributes, state.reference_id = attributes, observation.reference_id
    digest = output_digest(state, resource_type.live_attributes)
    if has_early_parts(state.value_digest):
        digest += SEPARATOR + early_digest(state, resource_type.early_attributes)
    state.value_digest = digest
    state.forget_replaced_secrets()
    hide_secret_attributes(state, resource_type, attributes)


def recorded_attributes(
    state: ResourceState, resource_type: ResourceType, observation: Observation
) -> JsonMapping:
    """Return the attributes to record after an observation: those observed, and the live attributes that were
    read before.
    """
    live = resource_type.live_attributes
    if not live:
        return observation.attributes
    kept = {name: value for name, value in state.attributes.items() if name in live}
    return {**without(observation.attributes, live), **kept}


def hide_secret_attributes(
    state: ResourceState, resource_type: ResourceType, attributes: JsonMapping
) -> None:
    """Add the values of attributes that the type declares as secret to the secrets of a resource."""
    declared = resource_type.attributes
    hidden = [value for name, value in attributes.items() if name in declared and declared[name].secret]
    if hidden:
        state.hide(SecretValues.within(*hidden))


def has_secret(resource_type: ResourceType, attributes: Iterable[str]) -> bool:
    """Whether the type declares one of the attributes as secret."""
    declared = resource_type.attributes
    return any(declared[name].secret for name in attributes if name in declared)


def used_live_attributes(visit: ResourceVisit) -> frozenset[str]:
    """Return the live attributes of the resource that its template uses."""
    definition = visit.definition
    return NO_NAMES if definition is None else frozenset(definition.body.get(USED_LIVE, NO_NAMES))


def request_token(uuid: str, attempt: int) -> str:
    """Return the token under which the create of an attempt is sent."""
    return f"{uuid}-{attempt}"


def context(
    visit: ResourceVisit,
    state: ResourceState,
    action: str,
    elapsed: float | None = None,
    software: SoftwareStore = UNCONNECTED,
    stored_context: StoredStackContext | None = None,
    *,
    attempt: int | None = None,
    name_limit: int | None = None,
    users: StackUsers | None = None,
    stack_context: StackContext | None = None,
    access: ProviderAccess = NO_ACCESS,
    calls: ProviderCalls | None = None,
) -> Context:
    """Return the context of a verb, `elapsed` seconds into the operation; None: as long as it is open. The
    token belongs to the present attempt, or to `attempt`; `name_limit` to the type.
    """
    resource, stack = visit.resource, visit.stack
    return operation_context(
        name=resource.name,
        physical_name=physical_name(stack.name, resource.name, resource.uuid, name_limit),
        token=request_token(resource.uuid, state.attempt if attempt is None else attempt),
        action=action,
        elapsed_seconds=(resource.op_seconds or 0.0) if elapsed is None else elapsed,
        properties=state.properties,
        data=state.data,
        metadata=state.metadata or {},
        stack_timeout_seconds=stack.timeout_seconds or 3600.0,
        secret=state.secret,
        software=software,
        project_id=access.project_id,
        catalog=access.catalog,
        cloud=access.cloud,
        stack_context=stack_context,
        location=NO_LOCATION if stored_context is None else stored_context.place(visit),
        required_resources=NO_REQUIRED_RESOURCES
        if stored_context is None
        else stored_context.required_resources(visit, state),
        users=users,
        step=state.step or "",
        used_attributes=used_live_attributes(visit),
        early_pending=bool(visit.early_pending),
        copy_first=action == "DELETE" and demands_copy(visit),
        calls=calls or ProviderCalls(),
    )
