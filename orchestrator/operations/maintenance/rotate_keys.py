"""Seal everything again with the newest key, in slices, beside a working server.

What the newest key sealed is passed over, so a run that was interrupted is simply run again.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import key_rotation

SLICE = 500  # rows read at a time, and locked together for as long as one statement takes


def rotate_keys(database: Database, cipher: Cipher) -> Iterator[tuple[str, int, int]]:
    """Seal every sealed column again; yield its name, how many values changed, how many needed nothing.

    Raises:
        Misconfigured: a value opens with no configured key; those before it are done.
    """
    with database.connect(name="orchestrator rotate-keys") as connection:
        for table, column in key_rotation.SEALED_COLUMNS:
            changed = seen = last_id = 0
            while rows := key_rotation.read_slice(connection, table, column, last_id, SLICE):
                seen += len(rows)
                last_id = rows[-1][0]
                old = [row for row in rows if not cipher.is_newest(row[1])]
                changed += len(old)
                while old:  # again for those that somebody else wrote meanwhile
                    rotated = [(id_, was, cipher.rotate(was)) for id_, was in old]
                    key_rotation.replace_unchanged(connection, table, column, rotated)
                    now = key_rotation.read_again(connection, table, column, [id_ for id_, _ in old])
                    old = [row for row in now if not cipher.is_newest(row[1])]
            yield f"{table}.{column}", changed, seen - changed
