"""The arguments that all operations share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.operations.quotas import limits
from orchestrator.operations.quotas.room import Db, Quota, require_room
from orchestrator.resources.base import ResourceType
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.store.access.idempotency import ClientToken
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body: a small body in memory, a large body in a file."""

    data: bytes | None = None
    path: Path | None = None

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data or b"") if self.path is None else self.path.stat().st_size

    def read(self) -> bytes:
        """Return the bytes, from memory or from the file."""
        if self.path is not None:
            return self.path.read_bytes()
        return self.data or b""


@dataclass(frozen=True, slots=True)
class OperationContext:
    """The caller, and the services that an operation works with."""

    database: Database
    cipher: Cipher
    caller: Caller
    settings: Settings
    types: Mapping[str, ResourceType]
    client_token: ClientToken | None = None  # the idempotency token of the request

    def quota(self, name: str) -> int:
        """Return a limit of the caller's project (`quotas/limits.py`); -1, no limit, for admins."""
        if self.caller.is_admin:
            return limits.UNLIMITED
        with self.database.borrow() as db:
            return limits.limit(db, self.settings, self.caller.project_id, name)

    def require_room(
        self,
        quota: Quota,
        added: int = 1,
        *,
        at: Db | None = None,
        stack_uuid: str = "",
        reserve: bool = True,
    ) -> Limit | None:
        """Check that the caller's project may have `added` more (`quotas/room.py`). Return the limit that the
        transaction which adds them enforces, None if the project is far from it.

        Raises:
            LimitExceeded: the project would exceed a limit that refuses early.
        """
        project_id, maximum = self.caller.project_id, self.quota(quota.name)
        source = self.database if at is None else at
        return require_room(source, quota, project_id, maximum, added, stack_uuid=stack_uuid, reserve=reserve)
