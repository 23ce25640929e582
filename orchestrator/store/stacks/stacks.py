"""Reads stacks for the API: a single stack by name or id, or many by filters, page by page.

Every function takes the caller's project and reads no other, or None for an admin, who reads every project. A
`StackRow` is therefore also the permission to read the parts of that stack: `resources.py`, `events.py` and
`revisions.py` require it.
"""

from __future__ import annotations

import datetime as dt
import uuid as uuid_
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Row,
    Select,
    and_,
    any_,
    func,
    literal,
    not_,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import aliased
from sqlalchemy.types import DateTime, Text

from orchestrator.engine.states import is_reached
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.connections.streaming import streamed
from orchestrator.store.tables.stacks import Stack

Direction = Literal["asc", "desc"]

_Owner = aliased(Stack, name="owner")


@dataclass(frozen=True, slots=True)
class StackRow:
    """A stack as it is now, read under its project."""

    id: int
    uuid: uuid_.UUID
    project_id: str
    name: str
    owner_id: int | None
    parent_uuid: uuid_.UUID | None  # of the owner
    parent_resource: str | None
    root_id: int
    depth: int
    action: str
    status: str
    status_reason: str
    traversal: int
    halted_traversal: int | None
    revision_id: int | None
    good_revision_id: int | None
    disable_rollback: bool
    keep_going: bool
    timeout_mins: int | None
    tags: tuple[str, ...]
    username: str
    user_project_id: str | None
    created_at: dt.datetime
    updated_at: dt.datetime | None
    action_started_at: dt.datetime
    deleted_at: dt.datetime | None
    queued_action: str | None
    queued_at: dt.datetime | None
    resume: bool | None
    resume_at: dt.datetime | None

    @property
    def state(self) -> str:
        """Action and status: `CREATE_COMPLETE`."""
        return f"{self.action}_{self.status}"

    @property
    def in_progress(self) -> bool:
        """Whether an action is in progress."""
        return self.status == "IN_PROGRESS"

    @property
    def reached(self) -> bool:
        """Whether the stack has reached its desired revision."""
        return is_reached(self.action, self.revision_id, self.good_revision_id)

    @property
    def winding_down(self) -> bool:
        """Whether the stack is failing: no step starts any more, and running operations end."""
        return self.in_progress and self.halted_traversal == self.traversal


_COLUMNS: Final = ", ".join("o.uuid" if name == "parent_uuid" else f"s.{name}" for name in StackRow.__slots__)
_SELECT_ONE: Final = f"SELECT {_COLUMNS} FROM stack s LEFT JOIN stack o ON o.id = s.owner_id WHERE "
_VISIBLE_TO_PROJECT: Final = (
    "(%(project_id)s::text IS NULL OR %(project_id)s::text IN (s.project_id, s.user_project_id))"
)
WITH_ID: Final = f"{_SELECT_ONE} s.uuid = %(uuid)s AND {_VISIBLE_TO_PROJECT}"
WITH_BOTH: Final = f"{WITH_ID} AND s.name = %(name)s"
ROOT: Final = f"""{_SELECT_ONE} s.project_id = %(project_id)s AND s.name = %(name)s
    AND s.deleted_at IS NULL AND s.owner_id IS NULL"""
# Fallback: a nested stack of the project, or the project's stack-user project.
BY_NAME_NESTED: Final = f"""{_SELECT_ONE} s.id = (
    SELECT x.id FROM (
        SELECT n.id, n.depth, n.created_at FROM stack n
        WHERE n.project_id = %(project_id)s AND n.name = %(name)s
            AND n.deleted_at IS NULL AND n.owner_id IS NOT NULL
        UNION ALL
        SELECT u.id, u.depth, u.created_at FROM stack u
        WHERE u.user_project_id = %(project_id)s AND u.name = %(name)s AND u.deleted_at IS NULL) AS x
    ORDER BY x.depth, x.created_at, x.id LIMIT 1)"""

PLACE = """
SELECT s.id, s.uuid::text, s.name, s.project_id, s.deleted_at FROM stack s
WHERE s.uuid = %(uuid)s AND s.name = %(name)s
    AND (s.project_id = %(project_id)s::text OR %(project_id)s::text IS NULL)
"""


@dataclass(frozen=True, slots=True)
class StackIdentity:
    """The identity of a stack, for frequent requests that need no other columns."""

    id: int
    uuid: str
    name: str
    project_id: str = ""
    deleted_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class StackQuery:
    """The parameters of a listing (docs/internals/rest-api.md §5.4)."""

    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)  # column -> any of these texts
    states: Sequence[tuple[str | None, str]] = ()  # any of these statuses, with their action if given
    tags: Sequence[str] = ()  # has all
    tags_any: Sequence[str] = ()  # has any
    not_tags: Sequence[str] = ()  # lacks at least one
    not_tags_any: Sequence[str] = ()  # lacks all
    hidden_tags: Sequence[str] = ()  # stacks with any of these are left out
    show_deleted: bool = False
    show_nested: bool = False
    sort_keys: Sequence[str] = ()
    sort_dir: Direction | None = None
    marker: str | None = None  # a stack's id, exclusive; unknown means from the start
    limit: int | None = None
    search: str | None = None  # part of the name, in any case


def _like_bool(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _like_int(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _like_uuid(text: str) -> uuid_.UUID | None:
    try:
        return uuid_.UUID(text)
    except ValueError:
        return None


# Filter -> its column and the parser of its text; an invalid text matches nothing.
FILTERS: Final[Mapping[str, tuple[Any, Callable[[str], Any]]]] = {
    "id": (Stack.uuid, _like_uuid),
    "name": (Stack.name, str),
    "action": (Stack.action, str),
    "tenant": (Stack.project_id, str),
    "username": (Stack.username, str),
    "owner_id": (_Owner.uuid, _like_uuid),
    "stack_status_reason": (Stack.status_reason, str),
    "disable_rollback": (Stack.disable_rollback, _like_bool),
    "timeout_mins": (Stack.timeout_mins, _like_int),
    "stack_user_project_id": (Stack.user_project_id, str),
}

_TAGS: Final = StackRow.__slots__.index("tags")
_NEVER = literal(dt.datetime.fromtimestamp(0, dt.UTC), DateTime(timezone=True))  # earlier than every stack
SORT_KEYS: Final[Mapping[str, Any]] = {
    "stack_name": Stack.name,
    "stack_status": Stack.status,
    "creation_time": Stack.created_at,
    "updated_time": func.coalesce(Stack.updated_at, _NEVER),
}


def find(
    database: Database, project_id: str, name_or_id: str, *, everywhere: bool = False
) -> StackRow | None:
    """Return a stack by id, deleted stacks too, or else by the name of a live root stack of the project.

    `everywhere` is for admins: by id they find the stacks of all projects, by name only in their own project.
    """
    uuid = _like_uuid(name_or_id)
    with database.borrow() as db:
        rows = []
        if uuid is not None:
            rows = fetch_prepared(
                db, WITH_ID, {"uuid": uuid, "project_id": None if everywhere else project_id}
            )
        # Nearly always it is a root of the project itself: a dedicated index has only those.
        named = {"project_id": project_id, "name": name_or_id}
        rows = rows or fetch_prepared(db, ROOT, named) or fetch_prepared(db, BY_NAME_NESTED, named)
    return _row(rows[0]) if rows else None


def locate(database: Database, project_id: str | None, name: str, stack_id: str) -> StackIdentity | None:
    """Return the identity of a project's stack with that name and id; cheaper than `get`."""
    uuid = _like_uuid(stack_id)
    if uuid is None:
        return None
    with database.borrow() as db:
        rows = fetch_prepared(db, PLACE, {"uuid": uuid, "name": name, "project_id": project_id})
    return StackIdentity(*rows[0]) if rows else None


def get(database: Database, project_id: str | None, name: str, stack_id: str) -> StackRow | None:
    """Return the stack with that name and id, deleted stacks too; both must match."""
    uuid = _like_uuid(stack_id)
    if uuid is None:
        return None
    with database.borrow() as db:
        rows = fetch_prepared(db, WITH_BOTH, {"uuid": uuid, "name": name, "project_id": project_id})
    return _row(rows[0]) if rows else None


def children(database: Database, stack: StackRow) -> dict[int, StackRow]:
    """Return the live child stacks of a stack, by the row of the resource."""
    statement = (
        _rows()
        .add_columns(Stack.parent_resource_id)
        .where(Stack.owner_id == stack.id, Stack.deleted_at.is_(None))
    )
    with database.engine.connect() as connection:
        rows = connection.execute(statement.order_by(Stack.id)).all()
    return {resource_id: _row(row) for *row, resource_id in rows if resource_id is not None}


def descendants(
    database: Database, stack: StackRow, levels: int, *, deleted: bool = False
) -> Iterator[StackRow]:
    """Yield the stacks below a stack, down to a number of levels, parents first."""
    if not levels:
        return
    statement = _rows().where(
        Stack.root_id == stack.root_id,
        Stack.depth > stack.depth,
        Stack.depth <= stack.depth + levels,
    )
    if not deleted:
        statement = statement.where(Stack.deleted_at.is_(None))
    below: dict[int | None, list[StackRow]] = {}
    with database.engine.connect() as connection:
        for row in connection.execute(statement.order_by(Stack.parent_resource.desc(), Stack.id.desc())):
            descendant = _row(row)
            below.setdefault(descendant.owner_id, []).append(descendant)
    todo = below.get(stack.id, [])
    while todo:
        descendant = todo.pop()
        yield descendant
        todo += below.get(descendant.id, ())


def child(database: Database, stack: StackRow, id_: int) -> StackRow | None:
    """Return a live child stack of a stack, by its row."""
    statement = _rows().where(Stack.id == id_, Stack.owner_id == stack.id, Stack.deleted_at.is_(None))
    with database.engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    return _row(row) if row is not None else None


def by_ids(database: Database, ids: Collection[int]) -> dict[int, StackRow]:
    """Return stacks of any project by their rows, for a caller that checks access itself."""
    statement = _rows().where(Stack.id == any_(literal(list(ids), ARRAY(BigInteger))))
    with database.engine.connect() as connection:
        return {row.id: _row(row) for row in connection.execute(statement)}


def list_stacks(database: Database, project_id: str | None, query: StackQuery) -> Iterator[StackRow]:
    """Yield the stacks of a query, fetched in slices; close the iterator to release the connection."""
    marker = _marker(database, project_id, query)
    statement = _page(_filtered(_rows(), project_id, query), query, marker)
    for row in streamed(database, statement, query.limit):
        yield _row(row)


def count_stacks(database: Database, project_id: str | None, query: StackQuery) -> int:
    """Return the number of stacks on all pages of the query."""
    counted = select(func.count()).select_from(Stack).outerjoin(_Owner, Stack.owner_id == _Owner.id)
    with database.engine.connect() as connection:
        return connection.execute(_filtered(counted, project_id, query)).scalar_one()  # type: ignore[no-any-return]


def _visible(project_id: str | None) -> ColumnElement[bool]:
    """A stack is accessible from its own project and from its users' project; listings show only the
    former.
    """
    if project_id is None:
        return true()
    return or_(Stack.project_id == project_id, Stack.user_project_id == project_id)


def _rows() -> Select[Any]:
    columns = [
        _Owner.uuid.label(name) if name == "parent_uuid" else getattr(Stack, name)
        for name in StackRow.__slots__
    ]
    return select(*columns).select_from(Stack).outerjoin(_Owner, Stack.owner_id == _Owner.id)


def _filtered(statement: Select[Any], project_id: str | None, query: StackQuery) -> Select[Any]:
    """Add all conditions except for the page's."""
    if project_id is not None:
        statement = statement.where(Stack.project_id == project_id)
    for name, texts in query.filters.items():
        column, read = FILTERS[name]
        statement = statement.where(column.in_([value for value in map(read, texts) if value is not None]))
    if query.states:
        statement = statement.where(
            or_(
                *(
                    and_(Stack.status == status, Stack.action == action if action else true())
                    for action, status in query.states
                )
            )
        )
    if query.search:
        statement = statement.where(Stack.name.icontains(query.search, autoescape=True))
    if not query.show_deleted:
        statement = statement.where(Stack.deleted_at.is_(None))
    if not query.show_nested:
        statement = statement.where(Stack.owner_id.is_(None))
    if query.tags:
        statement = statement.where(Stack.tags.contains(_texts(query.tags)))
    if query.tags_any:
        statement = statement.where(Stack.tags.overlap(_texts(query.tags_any)))
    if query.not_tags:
        statement = statement.where(not_(Stack.tags.contains(_texts(query.not_tags))))
    lacking = [*query.not_tags_any, *query.hidden_tags]
    if lacking:
        statement = statement.where(not_(Stack.tags.overlap(_texts(lacking))))
    return statement


def _texts(texts: Sequence[str]) -> ColumnElement[Any]:
    return literal(list(texts), ARRAY(Text()))


def _order(query: StackQuery) -> tuple[list[Any], bool]:
    """Return the columns that order the listing, the id last, and whether it is descending."""
    columns = [SORT_KEYS[key] for key in dict.fromkeys(query.sort_keys) if key in SORT_KEYS]
    down = query.sort_dir == "desc" if columns or query.sort_dir else True
    return [*(columns or [Stack.created_at]), Stack.id], down


def _marker(database: Database, project_id: str | None, query: StackQuery) -> Row[Any] | None:
    uuid = _like_uuid(query.marker) if query.marker else None
    if uuid is None:
        return None
    columns, _ = _order(query)
    statement = select(*columns).where(_visible(project_id), Stack.uuid == uuid)
    with database.engine.connect() as connection:
        return connection.execute(statement).one_or_none()


def _page(statement: Select[Any], query: StackQuery, marker: Row[Any] | None) -> Select[Any]:
    """Order the listing and start it after the marker."""
    columns, down = _order(query)
    if marker is not None:
        here, marker_values = (
            tuple_(*columns),
            tuple_(*(literal(v, c.type) for v, c in zip(marker, columns, strict=True))),
        )
        statement = statement.where(and_(here < marker_values if down else here > marker_values))
    return statement.order_by(*(column.desc() if down else column.asc() for column in columns))


def _row(row: Sequence[Any]) -> StackRow:
    values = list(row)
    values[_TAGS] = tuple(values[_TAGS])
    return StackRow(*values)


def uuid(database: Database, stack_id: int) -> str:
    """Return the public id of a stack."""
    with database.engine.connect() as connection:
        return str(connection.execute(select(Stack.uuid).where(Stack.id == stack_id)).scalar_one())
