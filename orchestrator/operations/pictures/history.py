"""Build the states of a field at a past time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from orchestrator.engine.pictures.field import DRIFT, STATES
from orchestrator.operations.pictures.field import FieldBuilder
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import history as stored
from orchestrator.store.pictures.field import snapshot

PLANNED, COMPLETE = STATES.index("planned"), STATES.index("complete")
GONE = frozenset({STATES.index("deleting"), STATES.index("deleted")})


@dataclass(frozen=True, slots=True)
class PastStates:
    """The states of a field at a time. Resources that were deleted since then are counted only."""

    at: dt.datetime
    since: dt.datetime  # the oldest event
    states: bytearray
    omitted: int


def oldest_event(database: Database, stack_id: int) -> dt.datetime | None:
    """Return the time from which on the events of a stack are known, None without events."""
    with database.borrow(hot=False) as db:
        return stored.first_event(db, stack_id)


def past_states(database: Database, builder: FieldBuilder, at: dt.datetime, since: dt.datetime) -> PastStates:
    """Return the states at a time, in the order of the field that was built last. `since` is the time of the
    oldest event; a resource that is older and has no event is complete.
    """
    stacks, order = builder.stacks, builder.order
    with snapshot(database) as db:
        events = {key: (state, live) for key, state, live in stored.events_at(db, stacks, at)}
        drifted = stored.drift_at(db, stacks, at)
        rows = [
            state_at(events.pop(key, None), existed=existed, is_older=is_older)
            | (DRIFT if key in drifted else 0)
            for key, existed, is_older in stored.rows_at(db, stacks, at, since)
        ]
    omitted = sum(state not in GONE for state, _ in events.values())
    known = len(rows)
    return PastStates(
        at, since, bytearray([rows[place] if place < known else PLANNED for place in order]), omitted
    )


def state_at(event: tuple[int, int | None] | None, *, existed: bool, is_older: bool) -> int:
    """Return the state of a resource after its last event, given with the last event that is not of a
    delete. The delete of a replaced object is not that of the resource, which existed.
    """
    if event is None:
        return COMPLETE if is_older else PLANNED
    state, live = event
    return live if state in GONE and existed and live is not None else state
