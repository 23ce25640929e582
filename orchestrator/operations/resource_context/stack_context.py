"""What is around a visited resource, for its type: `resources/stack_context.py` over the store.

Only for a resource whose lease is ours. Each statement is a transaction of its own: none is open while the
type goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.engine.check.visit import Visit
from orchestrator.errors import Superseded
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.resources.stack_context import (
    NO_PEERS,
    Grant,
    RequiredResource,
    RequiredResources,
    StackLocation,
)
from orchestrator.security.encryption import Cipher
from orchestrator.security.tokens import token_hash
from orchestrator.store.access import grants
from orchestrator.store.signals import watchers as peers


@dataclass(frozen=True, slots=True)
class StoredStackContext:
    """What one claim's visits have around them; without a lease, only the place."""

    db: peers.Db
    cipher: Cipher
    lease: int | None
    endpoint: str

    def place(self, visit: Visit) -> StackLocation:
        """Return where a resource is."""
        assert visit.resource is not None
        stack = visit.stack
        return StackLocation(stack.project_id, stack.name, stack.uuid, visit.resource.name, self.endpoint)

    def peers(self, visit: Visit, known: ResourceState) -> RequiredResources:
        """Return the resources that this one requires."""
        return NO_PEERS if self.lease is None else RequiredPeers(self, visit, known)

    def grant_access(self, resource_id: int, grant: Grant) -> None:
        """Let whoever has a key or token of the resource in, from now on.

        Raises:
            Superseded: the lease is lost.
        """
        assert self.lease is not None, "a type that gives access is claimed first"
        given = grants.put(
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
        if not given:
            raise Superseded("the lease was lost before access was given")

    def revoke_access(self, resource_id: int) -> None:
        """Let nobody in any more."""
        if self.lease is not None:
            grants.drop(self.db, resource_id, self.lease)


class RequiredPeers:
    """The resources that a visited one requires, read when asked for."""

    def __init__(self, surroundings: StoredStackContext, visit: Visit, known: ResourceState) -> None:
        assert visit.resource is not None
        self.surroundings, self.known, self.id = surroundings, known, visit.resource.id

    def find(self, reference_id: str, *, watch: bool = False) -> RequiredResource | None:
        """Return the one with this reference id, and have this resource told of its signals if wanted."""
        db = self.surroundings.db
        for row in peers.required(db, self.known.requires, self.id):
            opened = self._opened(row)
            if reference_id != (opened.get("reference_id", row.reference_id) or row.physical_id):
                continue
            now = peers.register_watcher(db, row.id, self.id) if watch and not row.watched else row
            if now is not None:
                return self._peer(now)
        return None

    def forget(self) -> None:
        """Have those that are watched forget what signals told them."""
        peers.clear_watched_metadata(self.surroundings.db, self.id, self.surroundings.cipher.seal(None))

    def _peer(self, row: peers.PeerRow) -> RequiredResource:
        opened = self._opened(row)
        properties = opened.get("properties", row.properties) or {}
        return RequiredResource(row.name, row.kind, properties, opened.get("metadata", row.metadata) or {})

    def _opened(self, row: peers.PeerRow) -> dict[str, Any]:
        return self.surroundings.cipher.open(row.sealed.encode()) if row.sealed else {}
