"""One visit's dealings with its resource's type: what every step needs, whatever it does."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from orchestrator.clients.keystone.cloud_session import Cloud, Orchestrations
from orchestrator.clients.region_catalog import catalog_of
from orchestrator.config import Settings
from orchestrator.engine.check.visit import Visit
from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import Superseded
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.keystone.stack_users import StackUserProvisioner
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import (
    Begin,
    KeepCopy,
    ResourceState,
    load_state,
    output_digest,
)
from orchestrator.operations.runtime.file_cache import FileCache
from orchestrator.resources.base import EMPTY_CATALOG, Context, Observation, ResourceType, StackContext
from orchestrator.resources.software_api import UNCONNECTED, SoftwareStore
from orchestrator.resources.stack_context import NO_PEERS, StackLocation
from orchestrator.security.encryption import Cipher
from orchestrator.template.parameters import ParameterValues


class ResourceOperation:
    """A visit, the type of its resource, and what is known. `known` keeps step: what exists must reach the
    row.
    """

    def __init__(
        self,
        visit: Visit,
        kind: ResourceType,
        values: ParameterValues,
        cipher: Cipher,
        begin: Begin,
        files: FileCache,
        keep_copy: KeepCopy,
        software: SoftwareStore,
        surroundings: StoredStackContext,
    ) -> None:
        """`begin` opens an operation before a provider is called."""
        assert visit.resource is not None
        self.visit, self.resource, self.kind = visit, visit.resource, kind
        self.values, self.cipher, self.begin, self.files = values, cipher, begin, files
        self.keep_copy, self.software, self.surroundings = keep_copy, software, surroundings
        self.settings: Settings | None = None
        self.around: StackContext | None = None
        self.begun = False
        self.known = load_state(visit, cipher)
        self.physical_name = physical_name(visit.stack.name, self.resource.name, self.resource.uuid)

    def open_operation(self) -> None:
        """Open the operation, durably, before anything is asked for."""
        if not self.begin(self.visit, self.known):
            raise Superseded("the lease was lost before anything was asked for")
        self.begun = True

    def take(self, seen: Observation) -> None:
        """Keep what was seen, and a digest of what it hands on."""
        record_observation(self.known, self.kind, seen)

    def users(self) -> StackUserProvisioner | None:
        """Return the users that the stack has at Keystone, None where it has none."""
        if self.settings is None or not self.kind.needs_lease or self.settings.auth != "keystone":
            return None
        return StackUserProvisioner.of(self.visit, self.surroundings.db, self.cipher, self.settings)

    def context(self, action: str, elapsed: float | None = None) -> Context:
        """Return what a verb may know, `elapsed` seconds into the operation, or as long as it is open."""
        known = context(self.visit, self.known, action, elapsed, self.software, self.surroundings)
        if (users := self.users()) is not None:
            known = replace(known, users=users)
        if not self.kind.calls_out:
            return known
        stack, cloud = self.visit.stack, None
        if self.settings is not None:
            db = self.surroundings.db
            cloud = cloud_of_stack(lambda: nullcontext(db), self.cipher, self.settings, stack.root_id)
        return with_provider_access(
            replace(known, stack_context=self.around), self.settings, stack.project_id, cloud
        )


def with_provider_access(
    ctx: Context, settings: Settings | None, project_id: str, cloud: Cloud | None = None
) -> Context:
    """Return a context with what a type needs that calls others: whose thing it is, where they are, and the
    cloud as it may be called for it.
    """
    further = None if cloud is None else Orchestrations(cloud)
    catalog = EMPTY_CATALOG if settings is None else catalog_of(settings, project_id, further)
    return replace(ctx, project_id=project_id, catalog=catalog, cloud=cloud)


def record_observation(known: ResourceState, kind: ResourceType, seen: Observation) -> None:
    """Bring what a resource hands on to what was seen."""
    declared = kind.attributes
    known.attributes, known.reference_id = seen.attributes, seen.reference_id
    known.value_digest = output_digest(known)
    if any(declared[name].secret for name in seen.attributes if name in declared):
        known.secret = True


def context(
    visit: Visit,
    known: ResourceState,
    action: str,
    elapsed: float | None = None,
    software: SoftwareStore = UNCONNECTED,
    surroundings: StoredStackContext | None = None,
) -> Context:
    """Return what a verb may know, `elapsed` seconds into the operation, or as long as it is open."""
    resource = visit.resource
    assert resource is not None
    return Context(
        name=resource.name,
        physical_name=physical_name(visit.stack.name, resource.name, resource.uuid),
        token=f"{resource.uuid}-{known.attempt}",
        action=action,
        elapsed_seconds=(resource.op_seconds or 0.0) if elapsed is None else elapsed,
        properties=known.properties,
        data=known.data,
        metadata=known.metadata or {},
        stack_timeout_seconds=visit.stack.timeout_seconds or 3600.0,
        secret=known.secret,
        software=software,
        location=StackLocation() if surroundings is None else surroundings.place(visit),
        peers=NO_PEERS if surroundings is None else surroundings.peers(visit, known),
    )
