"""Incoming signals: the resources they are for, and how they are stored, several at a time.

Each function serves several callers at once and returns their results in the same order
(`store/connections/batching.py`). The input is sent as a single text: building arrays costs psycopg more than
all other work of the statement.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.prepared import fetch_prepared

Db = Connection[TupleRow]

# A resource with any of these actions accepts no signals, unless its type says otherwise.
REFUSING: Final = ("SUSPEND", "DELETE")
_REFUSING: Final = f"{{{','.join(REFUSING)}}}"

# Signals of a resource that wait to be processed; further signals are refused until then.
MAX_PENDING: Final = 1_000
MAX_PENDING_BYTES: Final = 16 * 1024 * 1024  # encrypted

_HAS_ROOM: Final = f"""(
    SELECT count(*) < {MAX_PENDING} AND coalesce(sum(octet_length(p.details)), 0) < {MAX_PENDING_BYTES}
    FROM (SELECT g.details FROM signal g WHERE g.resource_id = {{resource_id}} LIMIT {MAX_PENDING}) AS p)"""
HAS_ROOM = f"SELECT {_HAS_ROOM.format(resource_id='%(resource_id)s')}"

# For any number of resources; the signals of the same resource are either all accepted or all refused.
# Without a physical id a resource is not created yet, unless a worker creates it at this moment: an agent may
# read its deployment and answer before the row is written. The processing waits for the end of the lease.
ACCEPT = f"""
INSERT INTO signal (stack_id, resource_id, details, due_at)
SELECT r.stack_id, r.id, convert_to(x.details, 'UTF8'), now() + make_interval(secs => x.ring_seconds)
FROM json_to_recordset(%(rows)s::json) AS x(
    nth integer, stack_id bigint, resource_id bigint, details text, always boolean, ring_seconds float8,
    internal boolean)
JOIN resource r ON r.id = ANY (ARRAY[x.resource_id])
WHERE x.resource_id > 0 AND x.nth >= 0 AND r.stack_id = x.stack_id
    AND (r.physical_id IS NOT NULL OR r.leased_until >= clock_timestamp())
    AND (x.always OR r.action <> ALL(%(refusing)s::text[]))
    AND (x.internal OR {_HAS_ROOM.format(resource_id="r.id")})
ORDER BY x.nth
RETURNING stack_id, resource_id, id
"""

# Run after the insert: while an older signal exists, its processing includes the new signals.
OLDEST = """
SELECT x.resource_id FROM unnest(%(resources)s::bigint[], %(ids)s::bigint[]) AS x(resource_id, id)
WHERE NOT EXISTS (SELECT 1 FROM signal g WHERE g.resource_id = x.resource_id AND g.id < x.id)
"""

_RECEIVER = """SELECT r.id, r.name, r.type, r.runs_as, r.action, r.physical_id FROM resource r
    WHERE r.stack_id = {stack_id} AND r.name = {name} ORDER BY r.deposed, r.id DESC LIMIT 1"""
RECEIVER = _RECEIVER.format(stack_id="%(stack_id)s", name="%(name)s")

REACH = f"""
SELECT x.nth, s.id, s.uuid::text, s.name, s.project_id, s.deleted_at, o.*
FROM json_to_recordset(%(rows)s::json) AS x(nth integer, uuid uuid, stack text, project_id text, name text)
JOIN stack s ON s.uuid = x.uuid AND s.name = x.stack AND s.project_id = x.project_id
CROSS JOIN LATERAL ({_RECEIVER.format(stack_id="s.id", name="x.name")}) AS o
WHERE x.nth >= 0
"""
VALUES = """
SELECT r.id, r.properties, r.data, r.metadata, convert_from(r.sealed, 'UTF8') FROM resource r
WHERE r.id = ANY(%(ids)s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class Receiver:
    """A resource that a signal is sent to: the current incarnation."""

    id: int
    name: str
    type: str  # as in the template
    runs_as: str | None
    action: str
    physical_id: str | None

    @property
    def effective_type(self) -> str:
        """Return the name of the type that implements it."""
        return self.runs_as or self.type


class NewSignal(NamedTuple):
    """A signal to be stored."""

    stack_id: int
    resource_id: int
    details: bytes  # encrypted, ASCII
    always: bool  # regardless of the resource's action
    ring_seconds: float  # delay after which the sweep sends a message again
    internal: bool = False  # sent by the engine: regardless of the number of pending signals


def accept(db: Db, several: Sequence[NewSignal]) -> list[bool | None]:
    """Store signals durably; return for each whether to send a message, None if its resource accepts no
    signals now or has too many pending signals.
    """
    rows = [
        {
            "nth": nth,
            "stack_id": signal.stack_id,
            "resource_id": signal.resource_id,
            "details": signal.details.decode(),
            "always": signal.always,
            "ring_seconds": signal.ring_seconds,
            "internal": signal.internal,
        }
        for nth, signal in enumerate(several)
    ]
    first: dict[tuple[int, int], int] = {}
    for stack_id, resource_id, id_ in fetch_prepared(
        db, ACCEPT, {"rows": _json(rows), "refusing": _REFUSING}
    ):
        first.setdefault((stack_id, resource_id), id_)
    if not first:
        return [None] * len(several)
    parameters = {"resources": numbers(resource for _, resource in first), "ids": numbers(first.values())}
    first_of = {row[0] for row in fetch_prepared(db, OLDEST, parameters)}
    results: list[bool | None] = []
    for signal in several:
        results.append(signal.resource_id in first_of if signal[:2] in first else None)
        first_of.discard(signal.resource_id)  # a single message per resource
    return results


def has_room(db: Db, resource_id: int) -> bool:
    """Whether a resource may have another pending signal."""
    row = db.execute(HAS_ROOM, {"resource_id": resource_id}).fetchone()
    return row is not None and bool(row[0])


class SignalAddress(NamedTuple):
    """The location of a resource, as given by a client."""

    uuid: str  # of the stack
    stack: str
    project_id: str
    name: str


class ResolvedTarget(NamedTuple):
    """The stack and the resource at a location."""

    stack_id: int
    stack_uuid: str
    stack_name: str
    project_id: str
    deleted_at: dt.datetime | None
    row: Receiver


def resolve_target(db: Db, several: Sequence[SignalAddress]) -> list[ResolvedTarget | None]:
    """Return the resource at each location, None where it does not exist."""
    rows = [
        {
            "nth": nth,
            "uuid": address.uuid,
            "stack": address.stack,
            "project_id": address.project_id,
            "name": address.name,
        }
        for nth, address in enumerate(several)
    ]
    results: list[ResolvedTarget | None] = [None] * len(several)
    for nth, *stack, id_, name, type_, runs_as, action, physical_id in fetch_prepared(
        db, REACH, {"rows": _json(rows)}
    ):
        row = Receiver(id_, name, type_, runs_as, action, physical_id)
        stack_id, uuid, stack_name, project_id, deleted_at = stack
        results[nth] = ResolvedTarget(stack_id, uuid, stack_name, project_id, deleted_at, row)
    return results


def receiver(db: Db, stack_id: int, name: str) -> Receiver | None:
    """Return the resource of a name that accepts a signal."""
    rows = fetch_prepared(db, RECEIVER, {"stack_id": stack_id, "name": name})
    return Receiver(*rows[0]) if rows else None


Values = tuple[Any, Any, Any, str | None]


def values(db: Db, several: Sequence[int]) -> list[Values | None]:
    """Return properties, data and metadata of resources, and all of these encrypted if any is secret."""
    rows = {
        row[0]: (row[1], row[2], row[3], row[4])
        for row in fetch_prepared(db, VALUES, {"ids": numbers(several)})
    }
    return [rows.get(id_) for id_ in several]


def numbers(ids: Iterable[int]) -> str:
    """Return numbers in PostgreSQL's text format of an array."""
    return f"{{{','.join(map(str, ids))}}}"


def _json(rows: Sequence[JsonMapping]) -> str:
    return orjson.dumps(rows).decode()
