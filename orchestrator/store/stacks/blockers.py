"""Reads the blockers of a stack: its unfinished nodes, page by page, and the reason each of them waits.

No statement walks a stack. A page is read through an index, nodes that block others first: active and paused
nodes, then queued and blocked nodes, of which a page scans at most WALK nodes and returns where it stopped.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from sqlalchemy import Connection, text

from orchestrator.engine.states import RESOURCE_KINDS, STATES_AT_WORK
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import by_keys
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.base import check_in

SCAN_LIMIT: Final = 20_000  # nodes scanned per page, and the longest way from a node to its blockers
NAMES: Final = 10  # blockers, or blocked resources, named per node
REQUIRED: Final = 200  # requirements looked up per node
MAX_COUNT: Final = 1_000  # maximum of the counts

Group = Literal["active", "update", "cleanup"]
GROUPS: Final[tuple[Group, ...]] = ("active", "update", "cleanup")


class Marker(NamedTuple):
    """The end of a page: group, resource and node."""

    group: Group
    resource_id: int
    node_id: int


@dataclass(frozen=True, slots=True)
class Blocker:
    """A node that blocks another, or is blocked by it."""

    name: str
    state: str  # of the node
    early: bool = False  # it blocks only until its object exists


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An unfinished node, with the resource that it visits."""

    id: int
    traversal: int
    kind: str
    name: str
    state: str
    blocked_by: int
    retry_count: int
    lost_leases: int
    hangs: int  # processes that have hung while they visited it
    unreachable_tries: int
    refusal: str | None  # the kind of the last attempt's refusal
    refused_since: dt.datetime | None  # the first refusal of this kind
    due_at: dt.datetime | None
    until_told: bool  # it waits for an event, not for a time
    enqueued_at: dt.datetime | None
    waiting_since: dt.datetime | None
    leased_until: dt.datetime | None  # of the visit of this node
    last_error: str | None
    hook: str | None  # where it is paused
    definition_id: int | None
    type: str | None
    action: str | None
    status: str | None
    status_reason: str | None
    physical_id: str | None
    op: str | None
    op_started_at: dt.datetime | None
    held_until: dt.datetime | None  # by the holder of the resource's lease
    other_traversal: int | None  # of another visit of the same resource
    child_uuid: str | None  # of the child stack that it waits for
    child_name: str | None
    child_state: str | None
    waits_for: tuple[Blocker, ...] = ()  # at most NAMES
    waits_for_count: int = 0  # lower bound
    holds_up: tuple[str, ...] = ()  # at most NAMES
    holds_up_count: int = 0  # at most COUNTED


@dataclass(frozen=True, slots=True)
class Page:
    """Unfinished nodes, and the marker of the next page; None at the end."""

    nodes: tuple[Unfinished, ...]
    marker: Marker | None


@dataclass(frozen=True, slots=True)
class OfResource:
    """The current resource, and the nodes that visit any of its incarnations."""

    action: str
    status: str
    status_reason: str
    nodes: tuple[Unfinished, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """A failure."""

    name: str
    reason: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class StackState:
    """The state of a stack, in addition to its row."""

    rests_since: dt.datetime | None  # the stack's last own event
    running: int  # operations that are open or being checked, at most COUNTED
    planning_since: dt.datetime | None
    causes: tuple[Cause, ...]  # at most NAMES
    cause_count: int  # at most COUNTED
    desired_number: int | None = None  # of the desired revision
    good_number: int | None = None  # of the last revision that was complete


DETAIL: Final = f"""
SELECT n.id, n.traversal, n.kind, n.label AS name, n.state, n.blocked_by, n.retry_count, n.lost_leases,
    coalesce((SELECT q.hangs FROM quarantine q WHERE q.kind = 'node' AND q.object_id = n.id), 0) AS hangs,
    n.unreachable_tries, n.refusal, nullif(n.due_at, 'infinity') AS due_at,
    to_timestamp(CAST(n.refused_since ->> n.refusal AS float8)) AS refused_since,
    coalesce(n.due_at = 'infinity', false) AS until_told, n.enqueued_at, n.waiting_since, n.leased_until,
    n.last_error, n.hooks[1] AS hook, n.definition_id, r.type, r.action, r.status, r.status_reason,
    r.physical_id, r.op, r.op_started_at, o.traversal AS other_traversal,
    CASE WHEN r.leased_until > now() THEN r.leased_until END AS held_until,
    c.uuid::text AS child_uuid, c.name AS child_name, c.action || '_' || c.status AS child_state
FROM unnest(CAST(:ids AS bigint[])) WITH ORDINALITY AS x(id, nth)
CROSS JOIN LATERAL (SELECT k.* FROM graph_node k WHERE k.id = x.id OFFSET 0) n
LEFT JOIN LATERAL (SELECT k.* FROM resource k WHERE k.id = n.resource_id OFFSET 0) r ON true
LEFT JOIN LATERAL (
    SELECT m.traversal FROM graph_node m
    WHERE m.stack_id = n.stack_id AND m.resource_id = n.resource_id AND m.id <> n.id
        AND {check_in("m.state", STATES_AT_WORK)}
    ORDER BY m.id LIMIT 1) o ON n.state = 'waiting'
LEFT JOIN LATERAL (
    SELECT k.uuid, k.name, k.action, k.status FROM stack k
    WHERE k.parent_resource_id = n.resource_id AND k.deleted_at IS NULL AND k.status = 'IN_PROGRESS'
    OFFSET 0) c ON n.state = 'waiting' AND n.due_at = 'infinity'
WHERE n.stack_id = :stack_id
ORDER BY x.nth
"""

# The first and the last node of the traversal, while they are active or pending. Without `+ 0` a planner with
# the statistics of a small table would walk the whole table in the order of its key.
HEAD: Final = """
SELECT n.id, n.resource_id FROM graph_node n
WHERE n.stack_id = :stack_id AND n.traversal = :traversal AND n.kind IN ('plan', 'finish')
    AND n.state IN ('queued', 'checking', 'waiting')
ORDER BY n.id + 0
"""
# Older traversals are included: the stack waits for their operations.
ACTIVE: Final = f"""
SELECT n.id, n.resource_id FROM graph_node n
WHERE n.stack_id = :stack_id AND {check_in("n.state", STATES_AT_WORK)}
    AND (n.resource_id, n.id) > (:resource_id, :node_id)
ORDER BY n.resource_id, n.id LIMIT :limit
"""
# Leaves were written last and run first; deletes run in the opposite order.
REST: Final = """
WITH walked AS MATERIALIZED (
    SELECT n.id, n.state, n.resource_id FROM graph_node n
    WHERE n.stack_id = :stack_id AND n.traversal = :traversal AND n.kind = '{kind}'
        AND n.resource_id {beyond} :resource_id
    ORDER BY n.resource_id {order} LIMIT :walk)
SELECT (SELECT count(*) FROM walked), (SELECT {last}(resource_id) FROM walked),
    ARRAY(SELECT ARRAY[id, resource_id] FROM walked WHERE state IN ('queued', 'blocked')
        ORDER BY resource_id {order} LIMIT :limit)
"""
WALKS: Final[Mapping[str, str]] = {
    "update": REST.format(kind="update", beyond="<", order="DESC", last="min"),
    "cleanup": REST.format(kind="cleanup", beyond=">", order="ASC", last="max"),
}
FIRST: Final[Mapping[str, int]] = {"active": 0, "update": (1 << 63) - 1, "cleanup": 0}

RESOURCE: Final = """
SELECT r.action, r.status, r.status_reason FROM resource r
WHERE r.stack_id = :stack_id AND r.name = :name ORDER BY r.deposed, r.id DESC LIMIT 1
"""
OF_RESOURCE: Final = f"""
SELECT n.id FROM resource r CROSS JOIN LATERAL (
    SELECT m.id FROM graph_node m
    WHERE m.stack_id = r.stack_id AND m.traversal = :traversal AND {check_in("m.kind", RESOURCE_KINDS)}
        AND m.resource_id = r.id AND m.state <> 'dropped'
    UNION SELECT m.id FROM graph_node m
    WHERE m.stack_id = r.stack_id AND m.resource_id = r.id AND {check_in("m.state", STATES_AT_WORK)}
) n
WHERE r.stack_id = :stack_id AND r.name = :name
ORDER BY n.id LIMIT 100
"""

# The requirements in the definition of a blocked node that are not ready yet: direct, or behind a join.
REQUIREMENTS: Final = """
SELECT x.id, f.label, f.state, coalesce(x.id = ANY(f.early_needed_by), false)
FROM unnest(CAST(:ids AS bigint[]), CAST(:definitions AS bigint[])) AS x(id, definition_id)
CROSS JOIN LATERAL (SELECT q.name FROM resource_definition d CROSS JOIN LATERAL unnest(d.requires) AS q(name)
    WHERE d.id = x.definition_id LIMIT :required) q
CROSS JOIN LATERAL (
    SELECT r.id FROM resource r WHERE r.stack_id = :stack_id AND r.name = q.name AND NOT r.deposed LIMIT 1) r
CROSS JOIN LATERAL (
    SELECT n.label, n.state, n.needed_by, n.early_needed_by FROM graph_node n
    WHERE n.stack_id = :stack_id AND n.traversal = :traversal AND n.kind = 'update' AND n.resource_id = r.id
        AND n.state <> 'ready' OFFSET 0) f
WHERE x.id = ANY(f.needed_by) OR EXISTS (
    SELECT 1 FROM unnest(f.needed_by) AS j(id)
    CROSS JOIN LATERAL (SELECT k.kind FROM graph_node k WHERE k.id = j.id OFFSET 0) g WHERE g.kind = 'join')
ORDER BY x.id, f.label
"""
# The blockers of these nodes, among the nodes written soon after them: a plan is written from its end.
FEEDERS: Final = """
SELECT y.id, f.id AS feeder_id, f.kind, f.label, f.state
FROM graph_node f CROSS JOIN LATERAL unnest(f.needed_by) AS y(id)
WHERE f.id > :first AND f.id <= :last AND f.stack_id = :stack_id AND f.traversal = :traversal
    AND f.state <> 'ready' AND f.needed_by && CAST(:ids AS bigint[]) AND y.id = ANY(CAST(:ids AS bigint[]))
ORDER BY y.id, f.label LIMIT :most
"""

HELD_UP: Final = f"""
SELECT n.id, (array_agg(d.label ORDER BY d.id DESC))[1:10], count(*)
FROM unnest(CAST(:ids AS bigint[])) AS x(id)
CROSS JOIN LATERAL (SELECT k.id, k.needed_by FROM graph_node k WHERE k.id = x.id OFFSET 0) n
CROSS JOIN LATERAL (
    SELECT e.label, e.id FROM (
        SELECT g.* FROM unnest(n.needed_by) AS a(id) CROSS JOIN LATERAL (
            SELECT k.id, k.label, k.kind, k.state FROM graph_node k WHERE k.id = a.id OFFSET 0) g
        UNION
        SELECT h.* FROM unnest(n.needed_by) AS a(id)
            CROSS JOIN LATERAL (
                SELECT k.needed_by FROM graph_node k WHERE k.id = a.id AND k.kind = 'join' OFFSET 0) g
            CROSS JOIN LATERAL unnest(g.needed_by) AS b(id) CROSS JOIN LATERAL (
                SELECT k.id, k.label, k.kind, k.state FROM graph_node k WHERE k.id = b.id OFFSET 0) h
    ) e WHERE {check_in("e.kind", RESOURCE_KINDS)} AND e.state = 'blocked' LIMIT :most) d
GROUP BY n.id
"""

STANDING: Final = f"""
SELECT
    (SELECT e.created_at FROM event e
        WHERE e.stack_id = :stack_id AND e.resource_type = 'OS::Heat::Stack' AND e.resource_name = :name
            AND e.physical_id IS NOT NULL  -- not of a queued action
        ORDER BY e.xid DESC, e.id DESC LIMIT 1) AS rests_since,
    (SELECT count(*) FROM (SELECT 1 FROM resource r WHERE r.stack_id = :stack_id AND r.op IS NOT NULL
        LIMIT :most) a)
    + (SELECT count(*) FROM (
        SELECT 1 FROM (
            SELECT n.resource_id, n.state FROM graph_node n
            WHERE n.stack_id = :stack_id AND {check_in("n.state", STATES_AT_WORK)}
                AND n.resource_id > 0 LIMIT :most) m
        CROSS JOIN LATERAL (SELECT k.op FROM resource k WHERE k.id = m.resource_id OFFSET 0) r
        WHERE m.state = 'checking' AND r.op IS NULL) b) AS running,
    (SELECT s.action_started_at FROM stack s WHERE s.id = :stack_id AND EXISTS (
        SELECT 1 FROM graph_node n WHERE n.stack_id = s.id AND n.traversal = s.traversal AND n.kind = 'plan'
            AND n.label = 'plan' AND n.state IN ('queued', 'checking', 'waiting'))) AS planning_since,
    (SELECT count(*) FROM (SELECT 1 FROM failure f WHERE f.stack_id = :stack_id AND f.traversal = :traversal
        LIMIT :most) c) AS cause_count,
    (SELECT v.number FROM revision v WHERE v.id = :revision_id) AS desired_number,
    (SELECT v.number FROM revision v WHERE v.id = :good_revision_id) AS good_number
"""
CAUSES: Final = """
SELECT resource_name AS name, reason, created_at AS at FROM failure
WHERE stack_id = :stack_id AND traversal = :traversal ORDER BY id LIMIT :most
"""


def standing(database: Database, stack: StackRow) -> StackState:
    """Return the state of a stack."""
    where: dict[str, object] = {"stack_id": stack.id, "traversal": stack.traversal, "name": stack.name}
    with by_keys(database) as db:
        revisions = {"revision_id": stack.revision_id, "good_revision_id": stack.good_revision_id}
        state_ = db.execute(text(STANDING), {**where, **revisions, "most": MAX_COUNT}).one()
        causes = db.execute(text(CAUSES), {**where, "most": NAMES}).all()
    return StackState(
        state_.rests_since,
        min(state_.running, MAX_COUNT),
        state_.planning_since,
        tuple(Cause(row.name, row.reason, row.at) for row in causes),
        state_.cause_count,
        state_.desired_number,
        state_.good_number,
    )


def unfinished(database: Database, stack: StackRow, marker: Marker | None, limit: int) -> Page:
    """Return a page of unfinished nodes, blocking nodes first; for a failed stack, the nodes that are still
    running.
    """
    with by_keys(database) as db:
        ids, after = _chosen(db, stack, marker, limit)
        return Page(_detailed(db, stack, ids), after)


def of_resource(database: Database, stack: StackRow, name: str) -> OfResource | None:
    """Return a resource with the nodes of the current traversal that visit it, finished or not, and the
    active nodes of older traversals; None if the stack has no resource of that name.
    """
    values = {"stack_id": stack.id, "traversal": stack.traversal, "name": name}
    with by_keys(database) as db:
        row = db.execute(text(RESOURCE), values).one_or_none()
        if row is None:
            return None
        ids = [node.id for node in db.execute(text(OF_RESOURCE), values)]
        return OfResource(row.action, row.status, row.status_reason, _detailed(db, stack, ids))


def _chosen(
    db: Connection, stack: StackRow, marker: Marker | None, limit: int
) -> tuple[list[int], Marker | None]:
    """Return the nodes of a page, and the start of the next."""
    where: dict[str, object] = {"stack_id": stack.id, "traversal": stack.traversal}
    going_on = stack.in_progress and not stack.winding_down
    chosen = [] if marker or not going_on else [row.id for row in db.execute(text(HEAD), where)]
    groups = GROUPS if going_on else GROUPS[:1]  # a node that did not start is not waited for any more
    for group in groups[groups.index(marker.group) if marker and marker.group in groups else 0 :]:
        here = marker if marker and marker.group == group else Marker(group, FIRST[group], 0)
        room = limit - len(chosen)
        if room <= 0:
            return chosen, here
        place = {**where, "resource_id": here.resource_id, "limit": room}
        if group == "active":
            rows = db.execute(text(ACTIVE), {**place, "node_id": here.node_id}).all()
            chosen += [row.id for row in rows]
            if len(rows) == room:
                return chosen, Marker(group, rows[-1].resource_id, rows[-1].id)
            continue
        walked, last, nodes = db.execute(text(WALKS[group]), {**place, "walk": SCAN_LIMIT}).one()
        chosen += [id_ for id_, _ in nodes]
        if len(nodes) == room:
            return chosen, Marker(group, nodes[-1][1], nodes[-1][0])
        if walked == SCAN_LIMIT:
            return chosen, Marker(group, last, 0)
    return chosen, None


def _detailed(db: Connection, stack: StackRow, ids: Sequence[int]) -> tuple[Unfinished, ...]:
    if not ids:
        return ()
    rows = db.execute(text(DETAIL), {"ids": list(ids), "stack_id": stack.id}).all()
    blocked = [row for row in rows if row.state == "blocked"]
    holders = _holders(db, stack, [(row.id, row.definition_id) for row in blocked]) if blocked else {}
    moving = [row.id for row in rows if row.state not in {"blocked", "ready"}]
    blocked_rows = db.execute(text(HELD_UP), {"ids": moving, "most": MAX_COUNT}).all() if moving else []
    held_up = {id_: (tuple(names), count) for id_, names, count in blocked_rows}
    made = []
    for row in rows:
        waits_for = holders.get(row.id, [])
        names, count = held_up.get(row.id, ((), 0))
        made.append(
            Unfinished(
                **row._mapping,
                waits_for=tuple(waits_for[:NAMES]),
                waits_for_count=max(len(waits_for), row.blocked_by),
                holds_up=names,
                holds_up_count=count,
            )
        )
    return tuple(made)


def _holders(
    db: Connection, stack: StackRow, blocked: Sequence[tuple[int, int | None]]
) -> dict[int, list[Blocker]]:
    """Return the blockers of each of these nodes: by the requirements in their definitions, or else by the
    nodes that release them, through joins.
    """
    where = {"stack_id": stack.id, "traversal": stack.traversal}
    result: dict[int, list[Blocker]] = {}
    defined = [(id_, definition) for id_, definition in blocked if definition is not None]
    if defined:
        ids, definitions = (list(column) for column in zip(*defined, strict=True))
        required = REQUIRED if len(blocked) > 1 else MAX_COUNT
        values = {**where, "ids": ids, "definitions": definitions, "required": required}
        for id_, label, state, early in db.execute(text(REQUIREMENTS), values):
            result.setdefault(id_, []).append(Blocker(label, state, early))
    blocked_for: dict[int, set[int]] = {
        id_: {id_} for id_, _ in blocked if id_ not in result
    }  # -> blocked nodes
    for _ in range(4):  # joins above joins: up to the fourth power of a thousand
        if not blocked_for:
            break
        joins: dict[int, set[int]] = {}
        ids = sorted(blocked_for)
        values = {**where, "ids": ids, "first": ids[0], "last": ids[-1] + SCAN_LIMIT, "most": 5 * MAX_COUNT}
        for target, feeder, node_kind, label, state in db.execute(text(FEEDERS), values):
            if node_kind == "join":
                joins.setdefault(feeder, set()).update(blocked_for[target])
            elif node_kind != "plan":
                for id_ in blocked_for[target]:
                    result.setdefault(id_, []).append(Blocker(label, state))
        blocked_for = joins
    return result
