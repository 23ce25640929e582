"""What every operation is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.config import Settings
from orchestrator.resources.base import ResourceType
from orchestrator.security.caller import Caller
from orchestrator.security.encryption import Cipher
from orchestrator.store.access.idempotency import ClientToken
from orchestrator.store.connections.database import Database


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body as it came: in memory when small, in a file of its own when large."""

    data: bytes | None = None
    path: Path | None = None

    def read(self) -> bytes:
        """Return the bytes, wherever they are."""
        if self.path is not None:
            return self.path.read_bytes()
        return self.data or b""


@dataclass(frozen=True, slots=True)
class OperationContext:
    """Who asks, and with what the operation works."""

    database: Database
    cipher: Cipher
    caller: Caller
    settings: Settings
    types: Mapping[str, ResourceType]
    asked: ClientToken | None = (
        None  # under which token, of a request that may come again and is to count once
    )

    def quota(self, setting: str) -> int:
        """Return a limit of how many things a project may have; -1, which is any number, for admins."""
        limit: int = getattr(self.settings, setting)
        return -1 if self.caller.is_admin else limit
