"""Build the states of a field at a past time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count, repeat
from operator import or_
from typing import Final

import orjson

from orchestrator.engine.pictures.field import DRIFT, STATES, Field
from orchestrator.operations.pictures.field import Arrangement
from orchestrator.store.connections.database import Database
from orchestrator.store.pictures import history as stored
from orchestrator.store.pictures.field import snapshot

PLANNED, COMPLETE = STATES.index("planned"), STATES.index("complete")
GONE = frozenset({STATES.index("deleting"), STATES.index("deleted")})
NO_EVENT = 255


@dataclass(frozen=True, slots=True)
class PastField:
    """A field at a time. Resources that were deleted since then are counted only."""

    at: dt.datetime
    since: dt.datetime  # the oldest event
    field: Field
    omitted: int = 0


def oldest_event(database: Database, stack_id: int) -> dt.datetime | None:
    """Return the time from which on the events of a stack are known, None without events."""
    with database.borrow(hot=False) as db:
        return stored.first_event(db, stack_id)


def past_field(
    database: Database, arrangement: Arrangement, present: Field, at: dt.datetime, since: dt.datetime
) -> PastField:
    """Return a field at a time, in the arrangement of the present. `since` is the time of the oldest event; a
    resource that is older and has no event is complete.
    """
    rows, omitted = arrangement.rows, 0
    with snapshot(database) as db:
        events = stored.events_at(db, rows.stacks, at)
        drifted = stored.drift_at(db, rows.stacks, at)
        codes, flags = bytearray(), bytearray(len(rows.ids))
        for (stack_id, _), names in zip(rows.sizes, rows.names, strict=True):
            its_names = orjson.loads(names)
            its_events = _by_name(*events.pop(stack_id, ("[]", b"")))
            found = bytes(map(its_events.get, its_names, repeat(NO_EVENT)))
            omitted += _omitted(its_events, its_names, found)
            if drifted:
                for place, name in enumerate(its_names, len(codes)):
                    flags[place] = DRIFT if (stack_id, name) in drifted else 0
            codes += found
        omitted += sum(_omitted(_by_name(*left), (), b"") for left in events.values())
        is_older = stored.older(db, rows.stacks, since) if NO_EVENT in codes else frozenset()
        gone = [rows.ids[place] for place in compress(count(), codes.translate(_IS_GONE))]
        existed = stored.existed(db, gone, at)
    states = codes.translate(_STATE)
    for place in compress(count(), codes.translate(_IS_SPECIAL)) if is_older or existed else ():
        id_ = rows.ids[place]
        states[place] = state_at(codes[place], existed=id_ in existed, is_older=id_ in is_older)
    if drifted:
        states = bytearray(map(or_, states, flags))
    ordered = bytearray(map(states.__getitem__, arrangement.order))
    return PastField(at, since, present.with_states(ordered), omitted)


def _by_name(names: str, codes: bytes) -> dict[str, int]:
    return dict(zip(orjson.loads(names), codes, strict=True))


def _omitted(events: dict[str, int], names: Sequence[str], found: bytes) -> int:
    """Return the number of resources that have events, are not shown, and were not deleted at the time."""
    if len(events) == len(found) - found.count(NO_EVENT):
        return 0
    return sum(events[name] >> 3 not in GONE for name in events.keys() - set(names))


def state_at(code: int, *, existed: bool, is_older: bool) -> int:
    """Return the state of a resource after its last event, given with the last event that is not of a
    delete (store/pictures/history.py). The delete of a replaced object does not delete the resource, which
    existed.
    """
    if code == NO_EVENT:
        return COMPLETE if is_older else PLANNED
    state, live = code >> 3, code & 7
    return live if state in GONE and existed and live != stored.NO_STATE else state


_STATE: Final = bytes(state_at(code, existed=False, is_older=False) for code in range(256))
_IS_GONE: Final = bytes(code != NO_EVENT and code >> 3 in GONE for code in range(256))
_IS_SPECIAL: Final = bytes(code == NO_EVENT or code >> 3 in GONE for code in range(256))
