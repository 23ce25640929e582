"""Resources of COMPLETE stacks that were built with other outputs of a requirement than the present ones. The
stacks have reached their desired revision: an action such as RESUME may complete after a failed update.

There are none after a create, an update or a rollback (docs/internals/protocol.md rule 7). A signal or a
CHECK may change the outputs of a resource in between; the next update visits its dependents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.store.tables.base import IS_CHANGED_INPUT

Db = Connection[TupleRow]

SLICE: Final = 20_000  # rows of resources read by a statement

_LAST_OF_SLICE: Final = """
SELECT max(id) FROM (SELECT id FROM resource WHERE id > %(after)s ORDER BY id LIMIT %(limit)s) AS part
"""
_STALE: Final = f"""
SELECT s.project_id, s.name, s.uuid::text, s.action, r.name, coalesce(q.name, '')
FROM resource r JOIN stack s ON s.id = r.stack_id
CROSS JOIN LATERAL unnest(r.requires, r.input_digests) AS x(id, digest) LEFT JOIN resource q ON q.id = x.id
WHERE r.id > %(after)s AND r.id <= %(last)s AND NOT r.deposed AND r.status = 'COMPLETE' AND r.op IS NULL
    AND s.status = 'COMPLETE' AND s.deleted_at IS NULL
    AND s.revision_id IS NOT DISTINCT FROM s.good_revision_id AND {IS_CHANGED_INPUT}
ORDER BY r.id
"""


class StaleInput(NamedTuple):
    """A resource, and the requirement whose outputs have changed since."""

    project_id: str
    stack_name: str
    stack_uuid: str
    action: str  # the last action of the stack
    resource: str
    requirement: str  # "": its row is gone


def stale_inputs(db: Db) -> Iterator[StaleInput]:
    """Yield the stale inputs of an installation, in slices."""
    after = 0
    while True:
        [(last,)] = db.execute(_LAST_OF_SLICE, {"after": after, "limit": SLICE}).fetchall()
        if last is None:
            return
        for row in db.execute(_STALE, {"after": after, "last": last}).fetchall():
            yield StaleInput(*row)
        after = last
