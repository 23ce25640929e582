"""The arguments that all operations share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.operations import quotas
from orchestrator.resources.base import ResourceType
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.store.access.idempotency import ClientToken
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
        """Return a limit of the caller's project (`quotas.QUOTAS`); -1, no limit, for admins."""
        if self.caller.is_admin:
            return quotas.UNLIMITED
        with self.database.borrow() as db:
            return quotas.limit(db, self.settings, self.caller.project_id, name)
