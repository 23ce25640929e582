"""The revision of a child that needs no new one: the child has reached it, and it has the desired content.

Such a child is repaired, if it has to be visited at all: only its damaged resources and everything downstream
of them are planned (operations/adr/0019).
"""

from __future__ import annotations

import hashlib

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.security.encryption import Cipher
from orchestrator.store.traversals import child_reads
from orchestrator.store.traversals.children import DesiredChild

Db = Connection[TupleRow]


def reached_revision(db: Db, cipher: Cipher, child_id: int, desired: DesiredChild) -> int | None:
    """Return a child's revision if the child has reached it and it is as desired, None otherwise."""
    found = child_reads.reached(db, child_id, hashlib.sha256(desired.template).digest())
    if found is None:
        return None
    same = (
        found.parameters == desired.parameters
        and found.environment == desired.environment
        and found.files == desired.files
        and _opened(cipher, found.sealed) == _opened(cipher, desired.sealed)
    )
    return found.id if same else None


def _opened(cipher: Cipher, sealed: bytes | None) -> object:
    return None if sealed is None else cipher.open(bytes(sealed))
