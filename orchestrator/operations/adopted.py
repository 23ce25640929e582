"""What an adopted stack takes over, told to the rows that are to be it while they are planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.nesting import ADOPTED
from orchestrator.security.encryption import Cipher
from orchestrator.store import planning


class AdoptedThings:
    """The things of one adopted stack: name to id, data and metadata, and whether those are secret."""

    def __init__(self, cipher: Cipher, sealed: bytes | None) -> None:
        """Take them as the revision has them."""
        self.cipher = cipher
        self.things: Mapping[str, Any] = cipher.open(sealed) if sealed else {}

    def write(self, db: Connection[TupleRow], places: Mapping[str, tuple[int, int]]) -> None:
        """Write them for some new resources: name to the ids of its row and its definition."""
        rows = []
        for name, (row, definition) in places.items():
            if thing := self.things.get(name):
                kept = {key: thing[key] for key in ("data", "metadata", "secret")}
                if "nested" in thing:
                    kept["data"] = {**kept["data"], ADOPTED: thing["nested"]}
                rows.append((row, thing["resource_id"], self.cipher.seal(kept), definition))
        planning.take_over(db, rows)
