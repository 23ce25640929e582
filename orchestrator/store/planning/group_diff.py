"""Which members of a group a plan has to look at: found by the database, so that growing a group of a million
by one costs a plan what one costs.

As everywhere, a row is judged by what it was built from, never a revision by another
(docs/internals/protocol.md rule 7).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.plan_changes import Row

Db = Connection[TupleRow]

# A span of members of one definition: its digest, its type, the first number and the one beyond the last.
Span = tuple[str, str, int, int]

# The digest is that of `template.members.MemberDefinition` for a member that waits for nobody.
DIFFERING: Final = """
WITH span AS (
    SELECT * FROM unnest(%(digests)s::text[], %(types)s::text[], %(first)s::bigint[], %(beyond)s::bigint[])
        AS span(digest, type, first, beyond)
), wanted AS MATERIALIZED (
    SELECT n::text AS name, span.type, sha256(convert_to(span.digest || '/' || n || '/', 'UTF8')) AS digest
    FROM span CROSS JOIN LATERAL generate_series(span.first, span.beyond - 1) AS n
), there AS (
    SELECT name, built_digest, coalesce(runs_as, type) AS type,
        status <> 'COMPLETE' OR op IS NOT NULL OR action = 'INIT' OR suspended OR requires <> '{}'
            AS unsettled
    FROM resource WHERE stack_id = %(stack_id)s AND NOT leftover
), said AS (
    SELECT name, digest FROM resource_definition WHERE stack_id = %(stack_id)s AND valid_to IS NULL
)
SELECT name FROM (
    SELECT coalesce(w.name, r.name) AS name FROM wanted w FULL JOIN there r ON r.name = w.name
    WHERE w.name IS NULL OR r.name IS NULL OR r.unsettled OR r.type <> w.type
        OR r.built_digest IS DISTINCT FROM w.digest
    UNION
    SELECT coalesce(w.name, d.name) FROM wanted w FULL JOIN said d ON d.name = w.name
    WHERE w.name IS NULL OR d.name IS NULL OR d.digest IS DISTINCT FROM w.digest
    UNION
    SELECT name FROM resource WHERE stack_id = %(stack_id)s AND leftover
) AS differing
LIMIT %(limit)s
"""
ROWS: Final = """
SELECT id, name, coalesce(runs_as, type), action, status, op, attempt, built_digest, requires, input_digests,
    value_digest, leftover, suspended
FROM resource WHERE stack_id = %s AND name = ANY(%s) ORDER BY id + 0
"""
DEFINITIONS: Final = """
SELECT name, id, digest, valid_from FROM resource_definition
WHERE stack_id = %s AND valid_to IS NULL AND name = ANY(%s)
"""
# What reaches rows by their keys is told to keep off scans; this one is a scan.
AS_A_SCAN: Final = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin")


def changed_members(db: Db, stack_id: int, spans: Sequence[Span], limit: int) -> list[str]:
    """Return the members, `limit` at most, that are not as the spans want them: to be made, changed, mended,
    redefined or removed.
    """
    columns = [list(column) for column in zip(*spans, strict=True)] if spans else [[], [], [], []]
    with db.transaction():
        for setting in AS_A_SCAN:
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
        return [row[0] for row in db.execute(DIFFERING, values).fetchall()]


def rows(db: Db, stack_id: int, names: Collection[str]) -> list[Row]:
    """Return the rows of these members, oldest first."""
    found = []
    for id_, name, kind, action, status, op, attempt, built, needs, digests, *rest in db.execute(
        ROWS, (stack_id, list(names))
    ).fetchall():
        words = name, kind, action, status, op, attempt, built
        found.append(Row(id_, *words, tuple(needs), tuple(digests), *rest))
    return found


def definitions(db: Db, stack_id: int, names: Collection[str]) -> dict[str, tuple[int, bytes, int]]:
    """Return the definitions in force of these members, as `planning.definitions` does of all."""
    return {row[0]: (row[1], row[2], row[3]) for row in db.execute(DEFINITIONS, (stack_id, list(names)))}
