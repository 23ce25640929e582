"""Following the events of many stacks at once, in the order in which `events.py` tells those of one.

A position is a sequence: the transaction and the id of an event. Everything before it that is wanted was
read. Where nothing wanted is left the position is that of the oldest transaction still open, before which
nobody can write any more: so a quiet reader does not look through other people's events again and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import text

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import by_keys
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks.stacks import StackRow

WALK: Final = 2_000  # events one reading looks at, whosever they are
STACK: Final = "OS::Heat::Stack"  # as the type of what a stack tells of itself


class Position(NamedTuple):
    """Where a reader is: after this event, which need not be one."""

    xid: int
    id: int

    def __str__(self) -> str:
        """Return the sequence that `after` takes."""
        return f"{self.xid}.{self.id}"


START: Final = Position(0, 0)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, and where to go on; `drained` when there were no more just then."""

    rows: tuple[EventRow, ...]
    position: Position
    drained: bool


@dataclass(frozen=True, slots=True)
class EventScope:
    """Whose events: a project's stacks and so many levels of those nested in them, or one stack's and such.

    `texts` are filters as of `events.FILTERS`; `only_stacks` leaves out what is about resources.
    """

    project_id: str
    levels: int = 0
    texts: Mapping[str, Sequence[str]] | None = None
    only_stacks: bool = False


_COLUMNS: Final = ", ".join(name for name in EventRow._fields if name not in {"properties", "xid"})
_NAMES: Final = {"resource_status": "status", "resource_action": "action"}

# What is walked over, of all stacks, is bounded; what is wanted of it is chosen afterwards.
_WALKED: Final = f"""
WITH seen AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xmin),
walked AS MATERIALIZED (
    SELECT xid, {_COLUMNS} FROM event
    WHERE xid >= CAST(:xid AS xid8) AND (xid, id) > (CAST(:xid AS xid8), :id)
        AND xid < (SELECT xmin FROM seen)
    ORDER BY xid, id LIMIT :walk
), last AS (
    SELECT (SELECT count(*) FROM walked) AS count, xid, id FROM walked ORDER BY xid DESC, id DESC LIMIT 1
)
SELECT seen.xmin::text::bigint AS xmin, last.count AS walked, last.xid::text::bigint AS last_xid,
    last.id AS last_id, chosen.*
FROM seen LEFT JOIN last ON true LEFT JOIN LATERAL (
    SELECT w.xid::text::bigint AS xid, {", ".join(f"w.{name}" for name in _COLUMNS.split(", "))}
    FROM walked w {{joined}} ORDER BY w.xid, w.id LIMIT :limit) AS chosen ON true
ORDER BY chosen.xid, chosen.id
"""
_EVERYBODYS: Final = _WALKED.format(joined="")
_OF_PROJECT: Final = _WALKED.format(
    joined="""JOIN stack s ON s.id = w.stack_id
    WHERE s.project_id = :project_id AND s.depth <= :levels
        AND (NOT :only_stacks OR w.resource_type = :type AND w.physical_id = s.uuid::text)
        {filters}"""
)


def all_projects(database: Database, after: Position) -> EventPage:
    """Return the next events of all stacks of all projects: for who hands each on to its own."""
    return _walk(database, _EVERYBODYS, after, WALK, {})


def of_project(database: Database, within: EventScope, after: Position, limit: int) -> EventPage:
    """Return a project's next events, at most `limit`; there may be none among those looked at, and more
    behind them.
    """
    given = within.texts or {}
    filters = "".join(f" AND w.{_NAMES.get(name, name)} = ANY(:{name})" for name in given)
    values: dict[str, Any] = {
        "project_id": within.project_id,
        "levels": within.levels,
        "only_stacks": within.only_stacks,
        "type": STACK,
        **{name: list(texts) for name, texts in given.items()},
    }
    return _walk(database, _OF_PROJECT.replace("{filters}", filters), after, limit, values)


def end_position(database: Database) -> Position:
    """Return the position behind everything that is written by now, and before what is not."""
    with database.engine.connect() as db:
        return Position(db.execute(text(_NOW)).scalar_one(), 0)


def stack_events(database: Database, stack: StackRow) -> int:
    """Return the transaction of the newest event of a stack, 0 when it has none."""
    with database.engine.connect() as db:
        return db.execute(text(_NEWEST), {"stack_id": stack.id}).scalar() or 0


_NOW: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_NEWEST: Final = """
SELECT xid::text::bigint FROM event WHERE stack_id = :stack_id ORDER BY xid DESC, id DESC LIMIT 1
"""


def _walk(
    database: Database, statement: str, after: Position, limit: int, values: Mapping[str, Any]
) -> EventPage:
    asked = {**values, "xid": str(after.xid), "id": after.id, "walk": WALK, "limit": limit}
    with by_keys(database) as db:
        found = db.execute(text(statement), asked).mappings().all()
    head = found[0]
    rows = tuple(
        EventRow(**{name: row[name] for name in EventRow._fields if name != "properties"}, properties=None)
        for row in found
        if row["id"] is not None
    )
    if len(rows) == limit:
        return EventPage(rows, Position(rows[-1].xid, rows[-1].id), False)
    if head["walked"] == WALK:
        return EventPage(rows, Position(head["last_xid"], head["last_id"]), False)
    return EventPage(rows, max(after, Position(head["xmin"], 0)), True)
