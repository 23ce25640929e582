"""Reads the history of a stack: its revisions in order, the effects of each, and the causes of failures.

The effects of a revision are counted from the stack's events, between its own start and the start of the next
action. An operation that ends after it was superseded counts for the revision in which it ended.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, select, text

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import streamed
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow, by_ids
from orchestrator.store.tables.graph import Failure
from orchestrator.store.tables.stacks import Revision, Stack

LARGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class RevisionHistory:
    """The outcome of a revision; without an outcome it is in progress, if it has a traversal."""

    id: int
    number: int
    action: str
    traversal: int | None
    first_event: int | None
    outcome: str | None
    created_by: str
    created_at: dt.datetime
    ended_at: dt.datetime | None
    copy_of: int | None  # the number of the revision that a rollback copied
    is_desired: bool
    is_last_good: bool


@dataclass(frozen=True, slots=True)
class RevisionEffects:
    """The number of resources per effect while a revision was in force; each resource counts once, with its
    last event.
    """

    created: int
    updated: int
    replaced: int
    deleted: int
    failed: int
    reason: str | None  # of the stack, if it ended by itself


@dataclass(frozen=True, slots=True)
class FailureRow:
    """A cause of a failure."""

    id: int
    resource_name: str
    reason: str
    created_at: dt.datetime
    resource_type: str | None
    physical_id: str | None
    action: str | None
    attempts: int | None
    revision: int | None  # its number, None for an action without a template


def list_revisions(
    database: Database, stack: StackRow, *, before: int | None = None, limit: int | None = None
) -> Iterator[RevisionHistory]:
    """Yield a stack's revisions, the newest first, those with a number below `before`."""
    statement = _select_history(stack).order_by(Revision.number.desc())
    if before is not None:
        statement = statement.where(Revision.number < before)
    for row in streamed(database, statement, limit):
        yield RevisionHistory(**row._mapping)


def revision_history(database: Database, stack: StackRow, number: int) -> RevisionHistory | None:
    """Return the history of the revision with that number."""
    with database.engine.connect() as connection:
        row = connection.execute(_select_history(stack).where(Revision.number == number)).one_or_none()
    return RevisionHistory(**row._mapping) if row is not None else None


def numbered(database: Database, stack: StackRow, number: int) -> RevisionRow | None:
    """Return the revision with that number."""
    columns = [getattr(Revision, name) for name in RevisionRow.__slots__]
    statement = select(*columns).where(Revision.stack_id == stack.id, Revision.number == number)
    with database.engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    return RevisionRow(**row._mapping) if row is not None else None


# The first action that started after an event: the next IN_PROGRESS event of the stack itself.
NEXT_ACTION = """
SELECT id FROM event
WHERE stack_id = :stack_id AND id > :first AND status = 'IN_PROGRESS'
    AND resource_type = 'OS::Heat::Stack' AND physical_id = :stack
ORDER BY id LIMIT 1
"""
# A replacement is created while the replaced object still exists: it has another physical id. Actions without
# a template have no effect here: an observation pass reports absent objects, and a queued action may be
# dropped.
EFFECTS = """
WITH recorded AS MATERIALIZED (
    SELECT id, resource_name AS name, coalesce(physical_id, '') AS thing, action, status, reason,
        resource_type = 'OS::Heat::Stack' AND physical_id = :stack AS by_stack
    FROM event WHERE stack_id = :stack_id AND id >= :first AND id < :next
), each AS (
    SELECT bool_or(status = 'FAILED' AND action NOT IN ('CHECK', 'SUSPEND', 'RESUME', 'SNAPSHOT')) AS failed,
        array_agg(thing) FILTER (WHERE action = 'CREATE' AND status = 'COMPLETE') AS made,
        array_agg(thing) FILTER (WHERE action = 'DELETE' AND status = 'COMPLETE') AS gone,
        min(id) FILTER (WHERE action = 'UPDATE' AND status = 'COMPLETE') AS changed,
        max(id) FILTER (WHERE action = 'CREATE' AND status = 'COMPLETE') AS made_last
    FROM recorded WHERE NOT by_stack GROUP BY name
), netted AS (
    SELECT failed, made IS NOT NULL AND NOT made <@ coalesce(gone, '{}') AS made,
        gone IS NOT NULL AND NOT gone <@ coalesce(made, '{}') AS gone,
        changed IS NOT NULL AS changed, coalesce(changed < made_last, false) AS changed_first
    FROM each
)
SELECT count(*) FILTER (WHERE NOT failed AND made AND NOT gone AND NOT changed_first),
    count(*) FILTER (WHERE NOT failed AND changed AND NOT made AND NOT gone),
    count(*) FILTER (WHERE NOT failed AND made AND (gone OR changed_first)),
    count(*) FILTER (WHERE NOT failed AND gone AND NOT made),
    count(*) FILTER (WHERE failed),
    (SELECT reason FROM recorded WHERE by_stack AND status <> 'IN_PROGRESS' ORDER BY id DESC LIMIT 1),
    EXISTS (SELECT 1 FROM recorded WHERE id = :first)
FROM netted
"""


def revision_effects(database: Database, stack: StackRow, of: RevisionHistory) -> RevisionEffects | None:
    """Return the effects of a revision; None if its events are no longer kept."""
    values = {"stack_id": stack.id, "stack": str(stack.uuid), "first": of.first_event}
    if of.first_event is None:
        return None
    with database.engine.connect() as connection:
        after = connection.execute(text(NEXT_ACTION), values).scalar()
        row = connection.execute(text(EFFECTS), {**values, "next": after or LARGEST}).one()
    return RevisionEffects(*row[:6]) if row[6] else None


def list_failures(
    database: Database,
    stack: StackRow,
    traversals: Sequence[int],
    *,
    after: int | None = None,
    limit: int | None = None,
) -> Iterator[FailureRow]:
    """Yield every cause of the failures of these traversals, in the order of the failures, those after the
    cause with the id `after`.
    """
    columns: list[Any] = [getattr(Failure, name) for name in FailureRow.__slots__ if name != "revision"]
    statement = (
        select(*columns, Revision.number.label("revision"))
        .outerjoin(
            Revision, (Revision.stack_id == Failure.stack_id) & (Revision.traversal == Failure.traversal)
        )
        .where(Failure.stack_id == stack.id, Failure.traversal.in_(list(traversals)))
        .order_by(Failure.id)
    )
    if after is not None:
        statement = statement.where(Failure.id > after)
    for row in streamed(database, statement, limit):
        yield FailureRow(**row._mapping)


LAST_FAILED = """
SELECT max(f.traversal) FROM failure f WHERE f.stack_id = :stack_id AND f.traversal < :traversal
    AND NOT EXISTS (
        SELECT 1 FROM failure g WHERE g.stack_id = :stack_id AND g.traversal = :traversal)
"""
FAILED_BETWEEN = """
SELECT max(traversal) FROM failure
WHERE stack_id = :stack_id AND created_at <= :until
    AND (CAST(:since AS timestamptz) IS NULL OR created_at >= :since)
"""


def failures_of(database: Database, stack: StackRow) -> list[int]:
    """Return the traversals that explain a stack's state: for a rollback, the traversal that was rolled back;
    for a deleted stack, the last failed traversal before.
    """
    if stack.action == "ROLLBACK":
        return [stack.traversal, stack.traversal - 1]
    if stack.action != "DELETE":
        return [stack.traversal]
    values = {"stack_id": stack.id, "traversal": stack.traversal}
    with database.engine.connect() as connection:
        before = connection.execute(text(LAST_FAILED), values).scalar()
    return [stack.traversal] if before is None else [before]


def started_at(database: Database, stack: StackRow, traversals: Sequence[int]) -> dt.datetime | None:
    """Return the start of the first of these traversals, None if it was not recorded."""
    statement = select(func.min(Revision.created_at)).where(
        Revision.stack_id == stack.id, Revision.traversal.in_(list(traversals))
    )
    with database.engine.connect() as connection:
        return connection.execute(statement).scalar()


def failed_between(
    database: Database, stack: StackRow, since: dt.datetime | None, until: dt.datetime
) -> int | None:
    """Return the last traversal of a stack that failed in that time."""
    values = {"stack_id": stack.id, "since": since, "until": until}
    with database.engine.connect() as connection:
        return connection.execute(text(FAILED_BETWEEN), values).scalar()


def stacks_for(database: Database, stack: StackRow, names: Collection[str]) -> dict[str, list[StackRow]]:
    """Return the child stacks of resources of these names, deleted stacks too, the newest first."""
    ids = select(Stack.id).where(Stack.owner_id == stack.id, Stack.parent_resource.in_(list(names)))
    with database.engine.connect() as connection:
        stacks_ = by_ids(database, [row.id for row in connection.execute(ids)])
    made: dict[str, list[StackRow]] = {}
    for row in sorted(stacks_.values(), key=lambda row_: row_.id, reverse=True):
        made.setdefault(row.parent_resource or "", []).append(row)
    return made


def count_failures(database: Database, stack: StackRow, traversals: Sequence[int]) -> int:
    """Return the number of causes of the failures of these traversals."""
    statement = select(func.count()).where(
        Failure.stack_id == stack.id, Failure.traversal.in_(list(traversals))
    )
    with database.engine.connect() as connection:
        return connection.execute(statement).scalar_one()


def _select_history(stack: StackRow) -> Select[Any]:
    """Select the history of a stack's revisions; `stack` may be stale, except for its good revision."""
    columns = [getattr(Revision, name) for name in RevisionHistory.__slots__ if not name.startswith("is_")]
    return (
        select(
            *columns,
            (Revision.id == Stack.revision_id).label("is_desired"),
            func.coalesce(Revision.id == Stack.good_revision_id, False).label("is_last_good"),
        )
        .join(Stack, Stack.id == Revision.stack_id)
        .where(Revision.stack_id == stack.id)
    )
