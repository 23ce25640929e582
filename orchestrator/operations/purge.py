"""Forget, in slices, what is kept no longer (PROTOCOL.md 19): deleted stacks with their history, and content
nobody names.
"""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import TupleRow

SLICE = 5_000

OLD = """
SELECT id FROM stack WHERE deleted_at < now() - make_interval(secs => %s) ORDER BY deleted_at LIMIT 10
"""
PARTS = ("graph_node", "event", "failure", "signal", "progress", "resource_definition", "resource")
SLICE_OF = "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {0} WHERE stack_id = %s LIMIT %s))"
UNNAMED = """
DELETE FROM content WHERE hash IN (
    SELECT c.hash FROM content c
    WHERE c.created_at < now() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM revision r WHERE r.template_hash = c.hash)
        AND NOT EXISTS (SELECT 1 FROM revision r,
            jsonb_each_text(r.files) f WHERE f.value = encode(c.hash, 'hex'))
    LIMIT 100)
"""


def purge_deleted(db: Connection[TupleRow], after_seconds: float) -> int:
    """Remove stacks deleted longer ago than that, a few at a time; return how many."""
    stacks = [row[0] for row in db.execute(OLD, (float(after_seconds),)).fetchall()]
    for stack_id in stacks:
        for table in PARTS:
            while db.execute(SLICE_OF.format(table).encode(), (stack_id, SLICE)).rowcount:
                pass
        db.execute("DELETE FROM stack WHERE id = %s", (stack_id,))
    if stacks:
        db.execute(UNNAMED)
    return len(stacks)
