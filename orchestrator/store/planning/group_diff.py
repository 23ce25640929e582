"""The changed members of a group, found by the database: adding a member to a group of a million costs as
much as planning that member.

CHANGED_MEMBERS is a second copy of the rule in `engine/plan_changes.py`, for members without requirements; a
test compares the two. A row is compared with the definition it was built from; revisions are not compared
with each other (docs/internals/protocol.md rule 7).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row
from orchestrator.store.tables.base import IS_SUSPECT

Db = Connection[TupleRow]

# Members with the same definition: its digest, its type, the first index, and the index after the last.
Span = tuple[str, str, int, int]

# The digest equals `template.group_template.MemberDefinition`'s for a member without requirements.
CHANGED_MEMBERS: Final = f"""
WITH span AS (
    SELECT * FROM unnest(%(digests)s::text[], %(types)s::text[], %(first)s::bigint[], %(beyond)s::bigint[])
        AS span(digest, type, first, beyond)
), desired AS MATERIALIZED (
    SELECT n::text AS name, span.type, sha256(convert_to(span.digest || '/' || n || '/', 'UTF8')) AS digest
    FROM span CROSS JOIN LATERAL generate_series(span.first, span.beyond - 1) AS n
), recorded AS (
    SELECT name, built_digest, coalesce(runs_as, type) AS type,
        status <> 'COMPLETE' OR op IS NOT NULL OR action IN ('INIT', 'DELETE') OR suspended
            OR requires <> '{{}}' OR {IS_SUSPECT} OR released IS NOT NULL AS unsettled
    FROM resource WHERE stack_id = %(stack_id)s AND NOT deposed
), in_force AS (
    SELECT name, digest FROM resource_definition WHERE stack_id = %(stack_id)s AND valid_to IS NULL
)
SELECT name FROM (
    SELECT coalesce(w.name, r.name) AS name FROM desired w FULL JOIN recorded r ON r.name = w.name
    WHERE w.name IS NULL OR r.name IS NULL OR r.unsettled OR r.type <> w.type
        OR r.built_digest IS DISTINCT FROM w.digest
    UNION
    SELECT coalesce(w.name, d.name) FROM desired w FULL JOIN in_force d ON d.name = w.name
    WHERE w.name IS NULL OR d.name IS NULL OR d.digest IS DISTINCT FROM w.digest
    UNION
    SELECT name FROM resource WHERE stack_id = %(stack_id)s AND deposed
) AS changed
LIMIT %(limit)s
"""
ROWS: Final = f"""
SELECT id, name, coalesce(runs_as, type), action, status, op, attempt, built_digest, requires, input_digests,
    value_digest, deposed, suspended, {IS_SUSPECT} OR released IS NOT NULL
FROM resource WHERE stack_id = %(stack_id)s AND name = ANY(%(names)s) ORDER BY id + 0
"""
DEFINITIONS: Final = """
SELECT name, id, digest, valid_from FROM resource_definition
WHERE stack_id = %(stack_id)s AND valid_to IS NULL AND name = ANY(%(names)s)
"""
# Connections of checks disable these plans, for checks reach rows by their keys. This statement scans.
SCAN_SETTINGS: Final = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin")


def changed_members(db: Db, stack_id: int, spans: Sequence[Span], limit: int) -> list[str]:
    """Return the names of at most `limit` members to create, update, repair, redefine or delete."""
    columns = [list(column) for column in zip(*spans, strict=True)] if spans else [[], [], [], []]
    with db.transaction():
        for setting in SCAN_SETTINGS:
            db.execute(f"SET LOCAL {setting} = on")
        db.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        values = {
            "stack_id": stack_id,
            "digests": columns[0],
            "types": columns[1],
            "first": columns[2],
            "beyond": columns[3],
            "limit": limit,
        }
        return [row[0] for row in db.execute(CHANGED_MEMBERS, values).fetchall()]


def rows(db: Db, stack_id: int, names: Collection[str]) -> list[Row]:
    """Return the rows of these members, oldest first."""
    result = []
    for id_, name, type_name, action, status, op, attempt, built, needs, digests, *rest in db.execute(
        ROWS, {"stack_id": stack_id, "names": list(names)}
    ).fetchall():
        state = type_name, action, status, op, attempt, built
        result.append(Row(id_, name, *state, tuple(needs), tuple(digests), *rest))
    return result


def definitions(db: Db, stack_id: int, names: Collection[str]) -> dict[str, tuple[int, bytes, int]]:
    """Return the definitions in force of these members, like `bulk_writer.definitions` for a whole stack."""
    rows = db.execute(DEFINITIONS, {"stack_id": stack_id, "names": list(names)})
    return {row[0]: (row[1], row[2], row[3]) for row in rows}
