"""Reads of a stack's events for the API, in an order that a follower can rely on.

Ids are assigned before commit, so an event with a smaller id may become visible after a larger id was read.
Events are therefore ordered by the transaction that wrote them, then by id. While the stack is in progress,
an ascending listing stops below the oldest open transaction: a marker never skips a late committer
(docs/internals/protocol.md rule 17). A listing after a sequence number always stops there, so that it can be
continued indefinitely.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid as uuid_
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Select, any_, cast, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.connections.streaming import FETCH_SIZE, streamed
from orchestrator.store.stacks.stacks import Direction, StackRow
from orchestrator.store.tables.base import Xid8
from orchestrator.store.tables.events import Event

_LOW: Final = (1 << 64) - 1

FILTERS: Final[Mapping[str, Any]] = {
    "resource_status": Event.status,
    "resource_action": Event.action,
    "resource_name": Event.resource_name,
    "resource_type": Event.resource_type,
}


class EventRow(NamedTuple):
    """An event."""

    id: int
    stack_id: int
    xid: int  # of the writing transaction
    resource_name: str
    resource_type: str
    physical_id: str | None
    action: str
    status: str
    reason: str
    properties: JsonMapping | None
    created_at: dt.datetime
    automatic: bool = False  # of an automatic repair

    @property
    def sequence(self) -> str:
        """The position among the events of all stacks: the value of `after`."""
        return f"{self.xid}.{self.id}"


NEWEST: Final = f"""
SELECT {", ".join("xid::text::bigint" if name == "xid" else name for name in EventRow._fields)}
FROM event WHERE stack_id = %(stack_id)s ORDER BY event.xid DESC, id DESC LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class EventQuery:
    """The parameters of a listing (docs/internals/rest-api.md §8)."""

    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)  # keys of FILTERS: any of these texts
    sort_keys: Sequence[str] = ()  # resource_type; all other keys mean the order of writing
    sort_dir: Direction = "desc"
    marker: str | None = None  # an event's uuid, exclusive; unknown means from the start
    after: tuple[int, int] | None = None  # an event's sequence, exclusive; implies the order of writing
    limit: int | None = None


def event_uuid(stack_uuid: uuid_.UUID, event_id: int) -> str:
    """Return the public id of an event: the upper half is from the stack's id, the lower half is the id of
    the row.
    """
    low = f"{event_id:016x}"
    return f"{_upper(stack_uuid)}{low[:4]}-{low[4:]}"


def event_id(stack_uuid: uuid_.UUID, public: str) -> int | None:
    """Return the id of the row from a public id, None if it is not an event of that stack."""
    try:
        value = uuid_.UUID(public).int
    except ValueError:
        return None
    low = value & _LOW
    return low if value >> 64 == stack_uuid.int >> 64 and low < 1 << 63 else None


@lru_cache(maxsize=64)  # a listing needs the same value on every line
def _upper(stack_uuid: uuid_.UUID) -> str:
    return str(stack_uuid)[:19]


def read_sequence(text_: str) -> tuple[int, int] | None:
    """Return the two numbers of a sequence, None for an invalid text."""
    match = re.fullmatch(r"(\d{1,19})\.(\d{1,18})", text_)
    return (int(match[1]), int(match[2])) if match else None


def list_events(
    database: Database, stack: StackRow, query: EventQuery, below: Sequence[StackRow] = ()
) -> Iterator[EventRow]:
    """Yield the events of a query, fetched in slices: those of the stack, and those of the stacks `below`
    it.
    """
    if not below and _is_plain(query):
        with database.borrow() as db:
            rows = fetch_prepared(db, NEWEST, {"stack_id": stack.id, "limit": query.limit})
        yield from map(_row, rows)
        return
    every = [stack, *below]
    down = query.sort_dir == "desc"
    order: list[Any] = [Event.xid, Event.id]
    if "resource_type" in query.sort_keys:
        order.insert(0, Event.resource_type)
    statement = select(*_COLUMNS).where(_of(every))
    for name, texts in query.filters.items():
        statement = statement.where(FILTERS[name].in_(list(texts)))
    if query.after is not None:
        xid, id_ = query.after
        here = tuple_(Event.xid, Event.id)
        statement = statement.where(here > tuple_(cast(literal(str(xid)), Xid8), literal(id_)), _SETTLED)
    elif not down and any(stack_.status == "IN_PROGRESS" for stack_ in every):
        # The stacks were read before: if a stack had ended by then, its events were committed with that or
        # earlier.
        statement = statement.where(_SETTLED)
    marker = None
    if query.marker:
        meant = (event_id(stack_.uuid, query.marker) for stack_ in every)
        marker = next((number for number in meant if number is not None), None)
    if marker is not None:
        at = select(*order).where(_of(every), Event.id == marker)
        if _exists(database, at):
            here, marker_position = tuple_(*order), at.scalar_subquery()
            statement = statement.where(here < marker_position if down else here > marker_position)
        elif len(order) == 2:  # purged by now; the events after it are still found by its numbers
            statement = statement.where(Event.id < marker if down else Event.id > marker)
    statement = statement.order_by(*(column.desc() if down else column.asc() for column in order))
    for row in streamed(database, statement, query.limit):
        yield _row(row)


def get_event(database: Database, stack: StackRow, resource_name: str, public: str) -> EventRow | None:
    """Return an event of a resource by its public id."""
    number = event_id(stack.uuid, public)
    if number is None:
        return None
    statement = select(*_COLUMNS).where(
        Event.stack_id == stack.id, Event.id == number, Event.resource_name == resource_name
    )
    with database.engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    return _row(row) if row is not None else None


# No transaction can commit an event before any of these any more.
_SETTLED: Final = Event.xid < func.pg_snapshot_xmin(func.pg_current_snapshot())

_COLUMNS: Final = tuple(getattr(Event, name) for name in EventRow._fields)


def _of(stacks: Sequence[StackRow]) -> ColumnElement[bool]:
    if len(stacks) == 1:
        return Event.stack_id == stacks[0].id
    return Event.stack_id == any_(literal([stack_.id for stack_ in stacks], ARRAY(BigInteger)))


def _exists(database: Database, statement: Select[Any]) -> bool:
    with database.engine.connect() as connection:
        return connection.execute(select(statement.exists())).scalar_one()


def _is_plain(query: EventQuery) -> bool:
    """Whether a query is the most frequent kind: the newest events, in a small number."""
    narrowed = query.filters or query.sort_keys or query.marker or query.after
    return not narrowed and query.sort_dir == "desc" and query.limit is not None and query.limit <= FETCH_SIZE


def _row(row: Sequence[object]) -> EventRow:
    return EventRow._make(row)
