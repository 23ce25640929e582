"""The stack of a visited resource, for its type: implements `resources/stack_context.py` over the store.

Only for a resource whose lease is held. Each statement is its own transaction: none is open while the type
runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.errors import Superseded
from orchestrator.json_types import JsonObject
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.resources.stack_context import (
    NO_REQUIRED_RESOURCES,
    Grant,
    RequiredResource,
    RequiredResources,
    StackLocation,
)
from orchestrator.security.encryption import Cipher
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import grants
from orchestrator.store.signals import watchers


@dataclass(frozen=True, slots=True)
class StoredStackContext:
    """The stack context of the visits of a claim; without a lease, only the location."""

    db: watchers.Db
    cipher: Cipher
    lease: int | None
    endpoint: str

    def place(self, visit: ResourceVisit) -> StackLocation:
        """Return the location of a resource."""
        stack = visit.stack
        name, tree = visit.resource.name, str(stack.root_id)
        return StackLocation(stack.project_id, stack.name, stack.uuid, name, self.endpoint, tree)

    def required_resources(self, visit: ResourceVisit, state: ResourceState) -> RequiredResources:
        """Return the requirements of the resource."""
        return NO_REQUIRED_RESOURCES if self.lease is None else StoredRequiredResources(self, visit, state)

    def grant_access(self, resource_id: int, grant: Grant) -> None:
        """Accept requests with a key or token of the resource from now on.

        Raises:
            Superseded: the lease is lost.
        """
        assert self.lease is not None, "a type that grants access needs a lease"
        granted = grants.put(
            self.db,
            resource_id,
            self.lease,
            key=grant.key,
            secret=None if grant.secret is None else self.cipher.seal(grant.secret),
            token_hash=None if grant.token is None else token_hash(grant.token),
            user=grant.user,
            policies=grant.policies,
            keystone_user=grant.keystone_user,
        )
        if not granted:
            raise Superseded("the lease was lost before access was granted")

    def revoke_access(self, resource_id: int) -> None:
        """Reject all credentials of the resource."""
        if self.lease is not None:
            grants.drop(self.db, resource_id, self.lease)


class StoredRequiredResources:
    """The requirements of a visited resource, read on demand."""

    def __init__(self, context: StoredStackContext, visit: ResourceVisit, state: ResourceState) -> None:
        self.context, self.state, self.id = context, state, visit.resource.id

    def find(self, reference_id: str, *, watch: bool = False) -> RequiredResource | None:
        """Return the requirement with this reference id; `watch` wakes this resource at its signals."""
        db = self.context.db
        for row in watchers.required(db, self.state.requires, self.id):
            opened = self._opened(row)
            if reference_id != (opened.get("reference_id", row.reference_id) or row.physical_id):
                continue
            watched = watchers.register_watcher(db, row.id, self.id) if watch and not row.watched else row
            if watched is not None:
                return self._peer(watched)
        return None

    def forget(self) -> None:
        """Clear the metadata that signals have set in watched requirements."""
        watchers.clear_watched_metadata(self.context.db, self.id, self.context.cipher.seal(None))

    def _peer(self, row: watchers.RequiredRow) -> RequiredResource:
        opened = self._opened(row)
        properties = opened.get("properties", row.properties) or {}
        return RequiredResource(row.name, row.kind, properties, opened.get("metadata", row.metadata) or {})

    def _opened(self, row: watchers.RequiredRow) -> JsonObject:
        return self.context.cipher.open(row.sealed.encode()) if row.sealed else {}
