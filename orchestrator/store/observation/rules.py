"""Policies, pauses and accepted differences in SQL: rows are inserted and ended, never changed."""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow, class_row

from orchestrator.engine.observation.policies import Mode, Place, Repetition, Rule, RuleKind

Db = Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as its project sees it."""

    id: int
    uuid: uuid_.UUID
    kind: RuleKind
    stack_id: int | None
    stack_uuid: uuid_.UUID | None
    stack_name: str | None
    type: str
    resource: str
    mode: Mode | None
    interval_seconds: float | None
    path: str
    reason: str
    starts_at: dt.datetime
    ends_at: dt.datetime | None
    repeats: Repetition
    created_by: str
    created_at: dt.datetime
    ended_at: dt.datetime | None
    ended_by: str | None
    name: str = ""

    @property
    def rule(self) -> Rule:
        """The rule for decisions."""
        return Rule(
            self.id, self.kind, self.stack_id, self.type, self.resource, self.mode or "report", self.path,
            self.reason, self.starts_at, self.ends_at, self.repeats, self.name,
        )  # fmt: skip


class PropertyOwner(NamedTuple):
    """A resource whose path matches a pattern."""

    path: str
    type: str


COLUMNS: Final = """o.id, o.uuid, o.kind, o.stack_id, s.uuid AS stack_uuid, s.name AS stack_name, o.type,
    o.resource, o.mode, o.interval_seconds, o.path, o.reason, o.starts_at, o.ends_at, o.repeats,
    o.created_by, o.created_at, o.ended_at, o.ended_by, o.name"""
# A pause or an acceptance ends by itself, and a rule with its stack.
OPEN: Final = """o.ended_at IS NULL AND (o.ends_at IS NULL OR o.ends_at > now() OR o.repeats <> '')
    AND (o.stack_id IS NULL OR s.deleted_at IS NULL AND s.id IS NOT NULL)"""
SELECT: Final = f"""
SELECT {COLUMNS} FROM observation_rule o LEFT JOIN stack s ON s.id = o.stack_id
WHERE o.project_id = %(project_id)s"""
IN_FORCE: Final = f"""
{SELECT} AND {OPEN} AND (o.stack_id IS NULL OR o.stack_id = ANY(%(stacks)s)) ORDER BY o.id
"""
AFTER: Final = """ AND o.id > coalesce((SELECT m.id FROM observation_rule m
    WHERE m.uuid::text = %(marker)s AND m.project_id = %(project_id)s), 0)"""
INSERT: Final = f"""
INSERT INTO observation_rule (uuid, project_id, kind, stack_id, type, resource, mode, interval_seconds, path,
    reason, starts_at, ends_at, repeats, created_by, name)
SELECT %(uuid)s, %(project_id)s, %(kind)s, %(stack_id)s, %(type)s, %(resource)s, %(mode)s,
    %(interval_seconds)s::float8, %(path)s, %(reason)s, coalesce(%(starts_at)s, now()), %(ends_at)s,
    %(repeats)s, %(created_by)s, %(name)s
WHERE %(most)s > (
    SELECT count(*) FROM observation_rule o LEFT JOIN stack s ON s.id = o.stack_id
    WHERE o.project_id = %(project_id)s AND {OPEN})
RETURNING id
"""
LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('observation rules of ' || %(project_id)s, 0))"
END_SAME: Final = """
UPDATE observation_rule o SET ended_at = now(), ended_by = %(created_by)s
WHERE o.project_id = %(project_id)s AND o.kind = %(kind)s AND o.stack_id IS NOT DISTINCT FROM %(stack_id)s
    AND o.type = %(type)s AND o.resource = %(resource)s AND o.path = %(path)s AND o.name = %(name)s
    AND o.ended_at IS NULL
"""
END: Final = """
UPDATE observation_rule SET ended_at = now(), ended_by = %(by)s
WHERE project_id = %(project_id)s AND uuid = %(uuid)s AND ended_at IS NULL
"""

IS_NAMED: Final = """
SELECT EXISTS (SELECT 1 FROM observation_rule
    WHERE project_id = %(project_id)s AND name = %(name)s AND kind = 'policy' AND ended_at IS NULL)
"""

# The stacks around some stacks, with the names of the resources that hold them.
AROUND: Final = """
WITH RECURSIVE a AS (
    SELECT s.id AS stack_id, s.id, s.owner_id, s.parent_resource_id, 0 AS level
    FROM stack s WHERE s.id = ANY(%(stacks)s)
    UNION ALL
    SELECT a.stack_id, o.id, o.owner_id, o.parent_resource_id, a.level + 1
    FROM a JOIN stack o ON o.id = a.owner_id
)
SELECT a.stack_id, a.id, r.name, coalesce(r.runs_as, r.type), v.environment ->> 'observation_policy'
FROM a LEFT JOIN resource r ON r.id = a.parent_resource_id
JOIN stack o ON o.id = a.id LEFT JOIN revision v ON v.id = o.revision_id
ORDER BY a.stack_id, a.level
"""

# The resources of a stack and its nested stacks, by their paths.
TREE: Final = """
WITH RECURSIVE t AS (
    SELECT s.id, ''::text AS prefix FROM stack s WHERE s.id = %(stack_id)s
    UNION ALL
    SELECT c.id, t.prefix || r.name || '.'
    FROM t JOIN resource r ON r.stack_id = t.id AND NOT r.deposed JOIN stack c ON c.parent_resource_id = r.id
    WHERE c.deleted_at IS NULL
), p AS (
    SELECT t.prefix || r.name AS path, coalesce(r.runs_as, r.type) AS type
    FROM t JOIN resource r ON r.stack_id = t.id AND NOT r.deposed
)"""
AT_PATH: Final = f"{TREE} SELECT path, type FROM p WHERE path = %(path)s LIMIT 1"
MATCHING: Final = f"""{TREE}
SELECT DISTINCT ON (type) path, type FROM p WHERE path ~ %(regex)s ORDER BY type LIMIT 1000
"""


# Resources of several stacks share the rounds of a group: the shortest interval of any of them counts.
INTERVALS: Final = """
SELECT min(interval_seconds) FILTER (WHERE stack_id IS NULL AND type = '' AND name = ''),
    min(interval_seconds) FILTER (WHERE stack_id IS NOT NULL OR type <> '' OR name <> '')
FROM observation_rule
WHERE project_id = %(project_id)s AND kind = 'policy' AND ended_at IS NULL AND interval_seconds IS NOT NULL
    AND (type = '' OR type = ANY(%(types)s))
"""


def interval(db: Db, project_id: str, types: Collection[str], default: float) -> float:
    """Return the longest interval between two observations of a project's resources of these types."""
    row = db.execute(INTERVALS, {"project_id": project_id, "types": list(types)}).fetchone()
    of_project, of_parts = row or (None, None)
    longest = default if of_project is None else of_project
    return longest if of_parts is None else min(longest, of_parts)


def add(db: Db, values: Mapping[str, Any]) -> bool:
    """Insert a rule, in a transaction, in place of one of the same kind for the same object. Return False if
    the project has reached its limit; the transaction is to be rolled back then.
    """
    values = {"name": "", **values}
    values = {"interval_seconds": None, **values}
    db.execute(LOCK, values)
    if values["kind"] != "pause":
        db.execute(END_SAME, values)
    return db.execute(INSERT, values).fetchone() is not None


def end(db: Db, project_id: str, uuid: uuid_.UUID, by: str) -> bool:
    """End a rule; return whether it was there."""
    return db.execute(END, {"project_id": project_id, "uuid": uuid, "by": by}).rowcount == 1


def get(db: Db, project_id: str, uuid: uuid_.UUID) -> RuleRow | None:
    """Return a rule of a project, also an ended one."""
    with db.cursor(row_factory=class_row(RuleRow)) as cursor:
        query = f"{SELECT} AND o.uuid = %(uuid)s".encode()
        return cursor.execute(query, {"project_id": project_id, "uuid": uuid}).fetchone()


def listed(
    db: Db,
    project_id: str,
    *,
    kind: str | None = None,
    stack_id: int | None = None,
    history: bool = False,
    marker: str | None = None,
    limit: int | None = None,
) -> list[RuleRow]:
    """Return the rules of a project, the oldest first; with `history` also those that have ended."""
    query = SELECT
    query += "" if history else f" AND {OPEN}"
    query += " AND o.kind = %(kind)s" if kind is not None else ""
    query += " AND o.stack_id = %(stack_id)s" if stack_id is not None else ""
    query += AFTER if marker is not None else ""
    values = {"project_id": project_id, "kind": kind, "stack_id": stack_id, "marker": marker, "limit": limit}
    with db.cursor(row_factory=class_row(RuleRow)) as cursor:
        return cursor.execute(f"{query} ORDER BY o.id LIMIT %(limit)s".encode(), values).fetchall()


def in_force(db: Db, project_id: str, stacks: Collection[int]) -> list[RuleRow]:
    """Return the rules of a project, and of these stacks, that have not ended."""
    with db.cursor(row_factory=class_row(RuleRow)) as cursor:
        values = {"project_id": project_id, "stacks": list(stacks)}
        return cursor.execute(IN_FORCE.encode(), values).fetchall()


class Surroundings(NamedTuple):
    """The stacks around the resources of a stack, itself first, each with the resource that holds it, and the
    policies that their environments name.
    """

    stacks: Sequence[tuple[int, str | None]] = ()
    named: Sequence[tuple[int, str]] = ()

    def place(self, name: str, type_: str) -> Place:
        """Return where a resource of the stack is."""
        return Place(type_, tuple(_paths(self.stacks, name)), tuple(self.named))


def surroundings(db: Db, stacks: Collection[int]) -> dict[int, Surroundings]:
    """Return the surroundings of the resources of stacks, by stack."""
    around: dict[int, list[tuple[int, str | None]]] = {stack_id: [] for stack_id in stacks}
    named: dict[int, list[tuple[int, str]]] = {stack_id: [] for stack_id in stacks}
    for stack_id, id_, holder, _, policy in db.execute(AROUND, {"stacks": sorted(stacks)}).fetchall():
        around[stack_id].append((id_, holder))
        if policy:
            named[stack_id].append((id_, policy))
    return {stack_id: Surroundings(around[stack_id], named[stack_id]) for stack_id in stacks}


def places(db: Db, resources: Iterable[tuple[int, str, str]]) -> list[Place]:
    """Return where resources are, given as stack, name and type."""
    wanted = list(resources)
    around = surroundings(db, {stack_id for stack_id, _, _ in wanted})
    return [around[stack_id].place(name, type_) for stack_id, name, type_ in wanted]


def is_named(db: Db, project_id: str, name: str) -> bool:
    """Return whether the project has a policy of that name."""
    row = db.execute(IS_NAMED, {"project_id": project_id, "name": name}).fetchone()
    return row is not None and bool(row[0])


def _paths(around: Iterable[tuple[int, str | None]], name: str) -> Iterable[tuple[int, str]]:
    path = name
    for stack_id, holder in around:
        yield stack_id, path
        path = f"{holder}.{path}"


def holders(db: Db, stacks: Collection[int]) -> dict[int, list[str]]:
    """Return the types of the resources that hold stacks, the innermost first."""
    found: dict[int, list[str]] = {}
    for stack_id, _, holder, type_, _ in db.execute(AROUND, {"stacks": sorted(stacks)}).fetchall():
        if holder is not None:
            found.setdefault(stack_id, []).append(type_)
    return found


def at_path(db: Db, stack_id: int, path: str) -> PropertyOwner | None:
    """Return the resource at a path in a stack."""
    row = db.execute(AT_PATH, {"stack_id": stack_id, "path": path}).fetchone()
    return PropertyOwner(*row) if row is not None else None


def matching(db: Db, stack_id: int, regex: str) -> list[PropertyOwner]:
    """Return a resource of each type among those whose path matches, in a stack and its nested stacks."""
    values = {"stack_id": stack_id, "regex": regex}
    return [PropertyOwner(*row) for row in db.execute(MATCHING, values).fetchall()]
