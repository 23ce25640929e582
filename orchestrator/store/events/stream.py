"""The events of many stacks, in the order that `events.py` defines for a single stack.

A position is a sequence: the transaction and the id of an event. All selected events before it have been
read. When no selected events are left, the position is the oldest open transaction, before which
nothing can be written any more: an idle reader does not scan the events of other projects repeatedly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import text

from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import by_keys
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks.stacks import StackRow

WALK: Final = 2_000  # events scanned per read, of all stacks
STACK: Final = "OS::Heat::Stack"  # the type in a stack's own events


class Position(NamedTuple):
    """The position of a reader: after this event, which need not exist."""

    xid: int
    id: int

    def __str__(self) -> str:
        """Return the sequence for `after`."""
        return f"{self.xid}.{self.id}"


START: Final = Position(0, 0)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, and the next position; `drained` if there were no more at that moment."""

    rows: tuple[EventRow, ...]
    position: Position
    drained: bool


@dataclass(frozen=True, slots=True)
class EventScope:
    """The selected stacks: of a project or a single root stack, down to a number of nested levels.

    `texts` are filters as in `events.FILTERS`; `only_stacks` leaves out the events of resources.
    """

    project_id: str
    levels: int = 0
    texts: Mapping[str, Sequence[str]] | None = None
    only_stacks: bool = False


_COLUMNS: Final = ", ".join(name for name in EventRow._fields if name not in {"properties", "xid"})
_NAMES: Final = {"resource_status": "status", "resource_action": "action"}

# The scan is bounded and covers all stacks; the selection is applied afterwards.
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
    """Return the next events of all stacks of all projects, for a reader that distributes them."""
    return _walk(database, _EVERYBODYS, after, WALK, {})


def of_project(database: Database, within: EventScope, after: Position, limit: int) -> EventPage:
    """Return a project's next events, at most `limit`; a page may be empty although later pages are not."""
    wanted_texts = within.texts or {}
    filters = "".join(f" AND w.{_NAMES.get(name, name)} = ANY(:{name})" for name in wanted_texts)
    values: dict[str, object] = {
        "project_id": within.project_id,
        "levels": within.levels,
        "only_stacks": within.only_stacks,
        "type": STACK,
        **{name: list(texts) for name, texts in wanted_texts.items()},
    }
    return _walk(database, _OF_PROJECT.replace("{filters}", filters), after, limit, values)


def end_position(database: Database) -> Position:
    """Return the position after all events that are committed by now, and before all that are not."""
    with database.engine.connect() as db:
        return Position(db.execute(text(_NOW)).scalar_one(), 0)


def stack_events(database: Database, stack: StackRow) -> int:
    """Return the transaction of the newest event of a stack, 0 if it has none."""
    with database.engine.connect() as db:
        return db.execute(text(_NEWEST), {"stack_id": stack.id}).scalar() or 0


_NOW: Final = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_NEWEST: Final = """
SELECT xid::text::bigint FROM event WHERE stack_id = :stack_id ORDER BY xid DESC, id DESC LIMIT 1
"""


def _walk(
    database: Database, statement: str, after: Position, limit: int, values: Mapping[str, object]
) -> EventPage:
    parameters = {**values, "xid": str(after.xid), "id": after.id, "walk": WALK, "limit": limit}
    with by_keys(database) as db:
        found = db.execute(text(statement), parameters).mappings().all()
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
