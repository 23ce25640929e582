"""Reads of verdicts for the API: of a project, a stack, a resource.

A deviation is a row of `resource_verdict`. Its verdict expires when an operation ends or
the physical id changes.
The cost depends on the number of deviations, not on the number of stacks and resources.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, Text, and_, case, desc, func, literal, or_, select, true
from sqlalchemy.dialects.postgresql import ARRAY

from orchestrator.engine.observation.drift import OF_PROJECT
from orchestrator.json_types import JsonObject
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import streamed
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.graph import Resource
from orchestrator.store.tables.observation import (
    ObservationFault,
    ObservationGroup,
    ResourceVerdict,
    VerdictHistory,
)
from orchestrator.store.tables.stacks import Stack

FILTERS: Final = ("verdict", "type", "service", "resource")
MAX_PAGE: Final = 1_000
MAX_DEVIATING: Final = 100_000  # verdicts read for a list of resources

V, H = ResourceVerdict, VerdictHistory
SHOWN: Final = case((V.unknown_since.is_not(None), literal("UNKNOWN")), else_=V.verdict)
IS_CURRENT: Final = and_(
    V.physical_id == Resource.physical_id,
    or_(Resource.observed_at.is_(None), V.observed_at >= Resource.observed_at),
)
IS_SHOWN: Final = or_(V.unknown_since.is_not(None), V.confirmed)


class Deviation(NamedTuple):
    """A resource that is not in sync, or could not be observed."""

    fault_id: int
    resource_id: int
    project_id: str
    stack_name: str
    stack_uuid: uuid_.UUID
    name: str
    type: str
    service: str
    physical_id: str
    verdict: str
    reason: str
    differences: Sequence[JsonObject]
    since: dt.datetime
    observed_at: dt.datetime | None


class ShortVerdict(NamedTuple):
    """A verdict in a list of resources."""

    verdict: str
    reason: str
    since: dt.datetime
    observed_at: dt.datetime | None


class PastVerdict(NamedTuple):
    """A verdict that has ended."""

    id: int
    fault_id: int
    project_id: str
    stack_name: str
    stack_uuid: uuid_.UUID
    name: str
    type: str
    service: str
    physical_id: str
    verdict: str
    reason: str
    differences: Sequence[JsonObject]
    first_seen_at: dt.datetime
    last_seen_at: dt.datetime
    ended_at: dt.datetime


class ServiceState(NamedTuple):
    """The observation of a service for a project."""

    service: str
    kind: str
    region: str
    types: Sequence[str]
    observed_at: dt.datetime | None
    due_at: dt.datetime
    interval_seconds: float
    objects: int
    failing_since: dt.datetime | None
    failing_reason: str | None
    loss_since: dt.datetime | None
    lost: int | None
    lost_of: int | None


class Refusal(NamedTuple):
    """The refused credential of a stack tree."""

    since: dt.datetime
    reason: str


def deviations(
    database: Database,
    project_id: str,
    filters: Mapping[str, Sequence[str]],
    *,
    stack: StackRow | None = None,
    after: int | None = None,
    limit: int = MAX_PAGE,
) -> Iterator[Deviation]:
    """Yield the deviations of a project by resource id; with `stack`, those of the stack and the stacks below
    it. `after` is a resource id.
    """
    statement = _deviations().where(V.project_id == project_id)
    if stack is not None:
        statement = statement.where(V.root_id == stack.root_id)
        if stack.root_id != stack.id:
            statement = statement.where(V.stack_id.in_(_tree(stack)))
    if after is not None:
        statement = statement.where(V.resource_id > after)
    for name, column in (("type", V.type), ("service", V.service), ("resource", V.name), ("verdict", SHOWN)):
        if name in filters:
            statement = statement.where(column.in_(list(filters[name])))
    for row in streamed(database, statement.order_by(V.resource_id).limit(limit), limit):
        yield Deviation._make(row)


def deviation_of(database: Database, resource_id: int) -> Deviation | None:
    """Return the deviation of a resource, None if it has none."""
    with database.engine.connect() as connection:
        row = connection.execute(_deviations().where(V.resource_id == resource_id)).one_or_none()
    return None if row is None else Deviation._make(row)


def deviating(
    database: Database, stack: StackRow, *, tree: bool, limit: int = MAX_DEVIATING
) -> dict[int, ShortVerdict]:
    """Return the verdicts on the resources of a stack, or of its whole `tree`, that are not in sync, by
    resource; at most `limit`.
    """
    seen_at = func.greatest(V.observed_at, ObservationGroup.observed_at)
    since = func.coalesce(V.unknown_since, V.since)
    reason = func.coalesce(V.unknown_reason, V.reason)
    statement = (
        select(V.resource_id, SHOWN, reason, since, seen_at)
        .join(Resource, Resource.id == V.resource_id)
        .outerjoin(ObservationGroup, ObservationGroup.id == V.group_id)
        .where(V.root_id == stack.root_id if tree else V.stack_id == stack.id, IS_CURRENT, IS_SHOWN)
        .limit(limit)
    )
    with database.engine.connect() as connection:
        return {row[0]: ShortVerdict._make(row[1:]) for row in connection.execute(statement)}


def _tree(stack: StackRow) -> Select[tuple[int]]:
    """The ids of a stack and of the stacks below it."""
    below = select(Stack.id).where(Stack.id == stack.id).cte(recursive=True)
    below = below.union_all(select(Stack.id).join(below, Stack.owner_id == below.c.id))
    return select(below.c.id)


def _deviations() -> Select[Any]:
    seen_at = func.greatest(V.observed_at, ObservationGroup.observed_at)
    return (
        select(
            V.id,
            V.resource_id,
            V.project_id,
            Stack.name,
            Stack.uuid,
            V.name,
            V.type,
            V.service,
            V.physical_id,
            SHOWN,
            func.coalesce(V.unknown_reason, V.reason),
            V.differences,
            func.coalesce(V.unknown_since, V.since),
            seen_at,
        )
        .join(Resource, Resource.id == V.resource_id)
        .join(Stack, Stack.id == V.stack_id)
        .outerjoin(ObservationGroup, ObservationGroup.id == V.group_id)
        .where(Stack.deleted_at.is_(None), IS_CURRENT, IS_SHOWN)
    )


def history(
    database: Database,
    project_id: str,
    filters: Mapping[str, Sequence[str]],
    *,
    stack: StackRow | None = None,
    before: int | None = None,
    limit: int = MAX_PAGE,
) -> list[PastVerdict]:
    """Return ended verdicts of a project, or of a stack and the stacks below it, the latest first; `before`
    is an id. The cost depends on the page; for a nested stack also on the number of the stacks below it.
    """
    newest = _ended(project_id, filters, before)
    if stack is not None and stack.root_id == stack.id:
        newest = newest.where(H.root_id == stack.id)
    elif stack is not None:
        branch = _tree(stack).cte()
        of_each = newest.where(H.stack_id == branch.c.id).order_by(H.id.desc()).limit(limit).lateral()
        newest = select(of_each).select_from(branch.join(of_each, true()))
    rows = newest.order_by(desc("id")).limit(limit).subquery()
    statement = (
        select(
            rows.c.id,
            rows.c.fault_id,
            rows.c.project_id,
            Stack.name,
            Stack.uuid,
            rows.c.name,
            rows.c.type,
            rows.c.service,
            rows.c.physical_id,
            rows.c.verdict,
            rows.c.reason,
            rows.c.differences,
            rows.c.first_seen_at,
            rows.c.last_seen_at,
            rows.c.ended_at,
        )
        .join(Stack, Stack.id == rows.c.stack_id)
        .order_by(rows.c.id.desc())
    )
    with database.engine.connect() as connection:
        return [PastVerdict._make(row) for row in connection.execute(statement)]


def _ended(project_id: str, filters: Mapping[str, Sequence[str]], before: int | None) -> Select[Any]:
    """The ended verdicts of a project that pass the filters."""
    statement = select(H).where(H.project_id == project_id)
    if before is not None:
        statement = statement.where(H.id < before)
    for name, column in (
        ("type", H.type),
        ("service", H.service),
        ("resource", H.name),
        ("verdict", H.verdict),
    ):
        if name in filters:
            statement = statement.where(column.in_(list(filters[name])))
    return statement


def services(database: Database, project_id: str, type_name: str | None = None) -> list[ServiceState]:
    """Return the observed services of a project, or those that observe a type."""
    G = ObservationGroup  # noqa: N806 - as V
    statement = select(
        G.service,
        G.kind,
        G.region,
        G.types,
        G.observed_at,
        G.due_at,
        G.interval_seconds,
        G.objects,
        G.failing_since,
        G.failing_reason,
        G.loss_since,
        G.lost,
        G.lost_of,
    ).where(G.project_id == project_id, G.kind.not_in(OF_PROJECT))
    if type_name is not None:
        statement = statement.where(G.types.op("@>")(literal([type_name], ARRAY(Text()))))
    with database.engine.connect() as connection:
        rows = connection.execute(statement.order_by(G.service, G.kind))
        return [ServiceState._make(row) for row in rows]


def refusal_of(database: Database, root_id: int) -> Refusal | None:
    """Return the refusal of the credential of a stack tree."""
    statement = select(ObservationFault.since, ObservationFault.reason).where(
        ObservationFault.root_id == root_id
    )
    with database.engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    return None if row is None else Refusal._make(row)


def in_sync_since(database: Database, stack: StackRow, resource_id: int) -> dt.datetime | None:
    """Return the end of the last verdict on a resource."""
    statement = select(func.max(H.ended_at)).where(H.stack_id == stack.id, H.resource_id == resource_id)
    with database.engine.connect() as connection:
        return connection.execute(statement).scalar_one()
