"""Encrypt all secrets again with the newest key, in slices, while servers and workers run.

Values encrypted with the newest key are skipped, so an interrupted run is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import key_rotation

SLICE = 500  # rows read, and locked by a statement, at a time


def rotate_keys(database: Database, cipher: Cipher) -> Iterator[tuple[str, int, int]]:
    """Encrypt every sealed column again; yield its name, the number of changed and of unchanged values.

    Raises:
        Misconfigured: no configured key opens a value; the columns before it are complete.
    """
    with database.connect(name="orchestrator rotate-keys") as connection:
        for table, column in key_rotation.SEALED_COLUMNS:
            changed = examined = last_id = 0
            while rows := key_rotation.read_slice(connection, table, column, last_id, SLICE):
                examined += len(rows)
                last_id = rows[-1][0]
                old = [row for row in rows if not cipher.is_newest(row[1])]
                changed += len(old)
                while old:  # repeated for rows that another process wrote since
                    rotated = [(id_, was, cipher.rotate(was)) for id_, was in old]
                    key_rotation.replace_unchanged(connection, table, column, rotated)
                    now = key_rotation.read_again(connection, table, column, [id_ for id_, _ in old])
                    old = [row for row in now if not cipher.is_newest(row[1])]
            yield f"{table}.{column}", changed, examined - changed
