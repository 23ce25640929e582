"""Reads a stack's resources for the API: a single row per name, the current incarnation, for stacks of any
size. Readers call `operations/stacks/resources.py`, which adds resources that are not planned yet.

Rows hold the stored values: encrypted values stay encrypted, and the API masks secrets.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow
from sqlalchemy import ColumnElement, Row, Select, Text, and_, false, func, literal, null, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.orm import aliased

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.connections.streaming import FETCH_SIZE, ROWS_WITH_VALUES, streamed
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.graph import Resource, ResourceDefinition
from orchestrator.store.tables.stacks import Revision, Stack

COUNT_UP_TO: Final = """
SELECT count(*) FROM (SELECT 1 FROM resource WHERE stack_id = %(stack_id)s LIMIT %(limit)s) AS found
"""
FILTERS: Final = ("type", "status", "name", "action", "id", "physical_resource_id")
SEARCH: Final = "search"  # a part of the name, in any case; in pages of at most FETCH_SIZE without values


# A single row per name, restricted by the filters.
_PAGE: Final = """
SELECT r.id, r.uuid, r.name, r.type, r.runs_as, r.physical_id, r.action, r.status, r.status_reason,
    c.uuid, c.name, r.created_at, r.updated_at, r.observed, r.observed_at, r.observed_reason,
    r.unreachable_since, r.unreachable_reason
FROM (
    SELECT DISTINCT ON (name) id, uuid, name, type, runs_as, physical_id, action, status, status_reason,
        created_at, updated_at, observed, observed_at, observed_reason, unreachable_since, unreachable_reason
    FROM resource WHERE stack_id = %(stack_id)s{after}
    ORDER BY name, deposed, id DESC{whole}) AS r
LEFT JOIN stack c ON c.parent_resource_id = r.id AND c.deleted_at IS NULL
{filters}ORDER BY r.name{chosen}
"""
_AFTER: Final = " AND name > %(after)s"
_LIMIT: Final = " LIMIT %(limit)s"
FIRST_PAGE: Final = _PAGE.format(after="", whole=_LIMIT, filters="", chosen="")
NEXT_PAGE: Final = _PAGE.format(after=_AFTER, whole=_LIMIT, filters="", chosen="")
_COMPARED: Final = {"id": "uuid::text", "physical_resource_id": "physical_id"}
_FILTERS: Final = (
    "WHERE "
    + " AND ".join(
        f"(%({name})s::text[] IS NULL OR r.{_COMPARED.get(name, name)} = ANY (%({name})s::text[]))"
        for name in FILTERS
    )
    + ("\n    AND (%(search)s::text[] IS NULL OR strpos(lower(r.name), lower((%(search)s::text[])[1])) > 0)")
)
FIRST_FILTERED: Final = _PAGE.format(after="", whole="", filters=f"{_FILTERS}\n", chosen=_LIMIT)
NEXT_FILTERED: Final = _PAGE.format(after=_AFTER, whole="", filters=f"{_FILTERS}\n", chosen=_LIMIT)

# Dependencies, by the definitions of the stack's desired revision.
_REQUIRED: Final = """
SELECT d.name, d.requires FROM resource_definition d, revision v
WHERE v.id = %(revision_id)s AND d.stack_id = %(stack_id)s AND d.valid_from <= v.number
    AND (d.valid_to IS NULL OR d.valid_to > v.number) AND {some}
"""
REQUIRED: Final = _REQUIRED.format(some="d.requires <> '{}'")
REQUIRED_OF: Final = _REQUIRED.format(some="d.requires && %(names)s::text[]")  # of the dependents of names
REQUIRED_BY: Final = _REQUIRED.format(some="d.name = ANY(%(names)s::text[])")


class ResourceRow(NamedTuple):
    """A resource as it is now."""

    id: int
    uuid: uuid_.UUID
    name: str
    type: str  # as in the template
    runs_as: str | None  # the type that the environment maps it to
    physical_id: str | None
    action: str
    status: str
    status_reason: str
    required_by: tuple[str, ...]  # names of direct dependents, by the definition in force
    description: str
    attributes: JsonMapping | None
    metadata: JsonMapping | None
    sealed: bytes | None  # attributes, metadata and the rest, encrypted, when any of it is secret
    child_uuid: uuid_.UUID | None  # of the nested stack it owns
    child_name: str | None
    created_at: dt.datetime
    updated_at: dt.datetime | None
    observed: str | None  # the last successful observation: ready, not-ready, absent, error or failed
    observed_at: dt.datetime | None
    observed_reason: str | None
    unreachable_since: dt.datetime | None  # the first failed observation after it
    unreachable_reason: str | None

    @property
    def is_unreachable(self) -> bool:
        """Whether the last attempt to observe the resource failed."""
        since, seen = self.unreachable_since, self.observed_at
        return since is not None and (seen is None or since > seen)

    @property
    def effective_type(self) -> str:
        """The name of the type that implements it."""
        return self.runs_as or self.type

    @property
    def state(self) -> str:
        """Action and status: `CREATE_COMPLETE`."""
        return f"{self.action}_{self.status}"


def list_resources(
    database: Database,
    stack: StackRow,
    filters: Mapping[str, Sequence[str]] | None = None,
    *,
    with_values: bool = False,
    after: str | None = None,
    limit: int | None = None,
) -> Iterator[ResourceRow]:
    """Yield the stack's resources ordered by name, in slices; `with_values` reads attributes too.

    `after` is a name, exclusive. With a `limit` the dependents are left out: they take a walk over the whole
    stack.
    """
    if not with_values and (limit is None or limit <= FETCH_SIZE):
        most = FETCH_SIZE + 1 if limit is None else limit
        rows = _page(database, stack, filters or {}, after, most)
        if limit is not None:
            yield from rows
            return
        if len(rows) <= FETCH_SIZE:
            yield from _with_dependents(database, stack, rows, of_all=not filters and after is None)
            return
    current = _current(stack, with_values=with_values)
    if after is not None:
        current = current.where(Resource.name > after)
    if limit is not None and not filters:
        current = current.limit(limit)
    newest = current.subquery("newest")
    dependents = _dependents(stack) if limit is None else _no_rows()
    statement = _joined(newest, stack, dependents, with_values=with_values)
    for name, texts in (filters or {}).items():
        column = {"physical_resource_id": newest.c.physical_id, "id": newest.c.uuid.cast(Text)}.get(name)
        statement = statement.where((newest.c[name] if column is None else column).in_(list(texts)))
    fetch_size = ROWS_WITH_VALUES if with_values else FETCH_SIZE
    for row in streamed(database, statement.order_by(newest.c.name), limit, fetch_size=fetch_size):
        yield _row(row)


def _page(
    database: Database, stack: StackRow, filters: Mapping[str, Sequence[str]], after: str | None, limit: int
) -> list[ResourceRow]:
    """Return the most frequent kind of page by a prepared statement, without values."""
    values: dict[str, object] = {"stack_id": stack.id, "after": after, "limit": limit}
    statement = FIRST_PAGE if after is None else NEXT_PAGE
    if filters:
        values |= {name: list(filters[name]) if name in filters else None for name in (*FILTERS, SEARCH)}
        statement = FIRST_FILTERED if after is None else NEXT_FILTERED
    with database.borrow() as db:
        rows = fetch_prepared(db, statement, values)
    unknown: list[object] = [(), "", None, None, None]
    return [ResourceRow._make((*row[:9], *unknown, *row[9:])) for row in rows]


def _with_dependents(
    database: Database, stack: StackRow, rows: Sequence[ResourceRow], *, of_all: bool
) -> Iterator[ResourceRow]:
    """Yield rows with the names of their dependents; `of_all`: the rows are the whole stack."""
    if not rows or stack.revision_id is None:
        yield from rows
        return
    values = {"stack_id": stack.id, "revision_id": stack.revision_id, "names": [row.name for row in rows]}
    with database.borrow() as db:
        pairs = fetch_prepared(db, REQUIRED if of_all else REQUIRED_OF, values)
    dependents: dict[str, list[str]] = {row.name: [] for row in rows}
    for dependent, required in pairs:
        for name in required:
            if name in dependents:
                dependents[name].append(dependent)
    for row in rows:
        yield row._replace(required_by=tuple(sorted(dependents[row.name])))


def get_resource(database: Database, stack: StackRow, name: str) -> ResourceRow | None:
    """Return the current incarnation of a resource, also if it has left the template but still exists."""
    newest = _current(stack, with_values=True).where(Resource.name == name).subquery("newest")
    statement = _joined(newest, stack, _dependents(stack, name), with_values=True)
    with database.engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    return _row(row) if row is not None else None


def get_incarnations(database: Database, stack: StackRow, ids: Sequence[int]) -> dict[int, ResourceRow]:
    """Return rows of the stack by id, replaced resources too, without their dependents."""
    chosen = select(*_columns(with_values=True)).where(Resource.stack_id == stack.id, Resource.id.in_(ids))
    statement = _joined(chosen.subquery("chosen"), stack, _no_rows(), with_values=True)
    with database.engine.connect() as connection:
        return {row.id: _row(row) for row in connection.execute(statement)}


def _current(stack: StackRow, *, with_values: bool) -> Select[Any]:
    """A single row per name: the youngest that is not replaced."""
    return (
        select(*_columns(with_values=with_values))
        .where(Resource.stack_id == stack.id)
        .ext(distinct_on(Resource.name))
        .order_by(Resource.name, Resource.deposed.asc(), Resource.id.desc())
    )


def _columns(*, with_values: bool) -> list[Any]:
    columns: list[object] = [
        Resource.id,
        Resource.uuid,
        Resource.name,
        Resource.type,
        Resource.runs_as,
        Resource.physical_id,
        Resource.action,
        Resource.status,
        Resource.status_reason,
        Resource.created_at,
        Resource.updated_at,
        Resource.observed,
        Resource.observed_at,
        Resource.observed_reason,
        Resource.unreachable_since,
        Resource.unreachable_reason,
    ]
    if with_values:
        columns += [Resource.attributes, Resource.metadata_.label("metadata"), Resource.sealed]
    return columns


def _in_force(definition: Any, stack: StackRow) -> ColumnElement[bool]:
    """The definitions of the stack's desired revision."""
    number = select(Revision.number).where(Revision.id == stack.revision_id).scalar_subquery()
    return and_(
        definition.stack_id == stack.id,
        definition.valid_from <= number,
        or_(definition.valid_to.is_(None), definition.valid_to > number),
    )


def _dependents(stack: StackRow, name: str | None = None) -> Any:
    """name -> names of the dependents in the definitions."""
    definition = aliased(ResourceDefinition, name="dependent")
    pairs = select(func.unnest(definition.requires).label("name"), definition.name.label("dependent"))
    pairs = pairs.where(_in_force(definition, stack))
    if name is not None:
        pairs = pairs.where(definition.requires.contains(literal([name], ARRAY(Text()))))
    each = pairs.subquery("pairs")
    statement = select(each.c.name, func.array_agg(each.c.dependent).label("names")).group_by(each.c.name)
    return statement.subquery("dependents")


def _no_rows() -> Any:
    """As `_dependents`, where they were not requested."""
    empty = select(null().cast(Text).label("name"), null().cast(ARRAY(Text)).label("names"))
    return empty.where(false()).subquery("dependents")


def _joined(newest: Any, stack: StackRow, dependents: Any, *, with_values: bool) -> Select[Any]:
    child = aliased(Stack, name="child")
    statement = (
        select(
            newest,
            dependents.c.names.label("required_by"),
            child.uuid.label("child_uuid"),
            child.name.label("child_name"),
        )
        .outerjoin(dependents, dependents.c.name == newest.c.name)
        .outerjoin(
            child,
            and_(
                child.parent_resource_id == newest.c.id,
                child.owner_id == stack.id,  # otherwise a scan of all stacks is possible
                child.deleted_at.is_(None),
            ),
        )
    )
    if with_values:
        definition = aliased(ResourceDefinition, name="definition")
        statement = statement.add_columns(
            definition.body["description"].astext.label("description")
        ).outerjoin(definition, and_(_in_force(definition, stack), definition.name == newest.c.name))
    return statement


def _row(row: Row[Any]) -> ResourceRow:
    values = dict(row._mapping)
    values["required_by"] = tuple(sorted(values["required_by"] or ()))
    values["description"] = values.get("description") or ""
    return ResourceRow(**{"attributes": None, "metadata": None, "sealed": None, **values})


def count_up_to(db: Connection[TupleRow], stack_id: int, limit: int) -> int:
    """Return the number of a stack's resources, at most `limit`."""
    row = db.execute(COUNT_UP_TO, {"stack_id": stack_id, "limit": limit}).fetchone()
    return 0 if row is None else int(row[0])
