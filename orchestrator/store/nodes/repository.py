"""The store's interface for checks: claim, read, open operations, write outcomes (docs/internals/protocol.md
rules 1-5, 11-15).

The statements are in `visit_sql.py` and `outcome_sql.py`. Rows are sent as a JSON array, so that fifty nodes
cost a single round trip.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json

from orchestrator.engine.check.visit import (
    ControlVisit,
    DefinitionView,
    NodeData,
    ResourceView,
    ResourceVisit,
    StackView,
    Visit,
)
from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import Superseded
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.connections.prepared import fetch_prepared, numbered
from orchestrator.store.nodes import action_sql as act
from orchestrator.store.nodes import outcome_sql as ending
from orchestrator.store.nodes import visit_sql as sql
from orchestrator.store.nodes.outcome_builder import OutcomeStatement, render

CheckConnection = Connection[TupleRow]

MAX_CLEAN_NODES = 512
RESOURCE_ID = 21  # index in VISIT_COLUMNS


class Settled(NamedTuple):
    """The result of a statement that moves nodes: messages to send, resources that were written, the number
    of released nodes left to the dispatch window.
    """

    messages: list[CheckMessage]
    held: frozenset[int]
    not_enqueued: int = 0
    outstanding: int = 0
    clean: tuple[int, ...] = ()  # nodes that need no visit: `settle_clean` settles them


def settled(rows: Sequence[tuple[Any, ...]], root: str) -> Settled:
    """Return the result in the rows of such a statement."""
    messages: list[CheckMessage] = []
    held, clean, not_enqueued, outstanding = [], [], 0, 0
    for row in rows:
        match row[0]:
            case "send":
                messages.append(CheckMessage(row[1], row[2], row[3], row[4], root))
            case "held":
                held.append(row[1])
            case "queued":
                not_enqueued += 1
            case "outstanding":
                outstanding += row[1]
            case "clean":
                clean.append(row[1])
    return Settled(messages, frozenset(held), not_enqueued, outstanding, tuple(clean))


def claim(db: CheckConnection, ids: Sequence[int], traversal: int, lease: int, seconds: float) -> list[int]:
    """Claim nodes and their resources for a visit; return the claimed nodes. Committed on return."""
    values = {
        "ids": _bigints(ids),
        "traversal": str(traversal),
        "lease": str(lease),
        "seconds": str(seconds),
    }
    claimed = [row[0] for row in retried(db, sql.CLAIM, values)]
    if len(claimed) < len(ids):
        _defer(db, ids, claimed, traversal)
    return claimed


def _defer(db: CheckConnection, ids: Sequence[int], claimed: Collection[int], traversal: int) -> None:
    db.execute(sql.DEFER_BUSY, {"ids": [id_ for id_ in ids if id_ not in claimed], "traversal": traversal})


def read_queued(db: CheckConnection, ids: Sequence[int], traversal: int) -> tuple[list[Visit], list[int]]:
    """Read queued nodes without a claim; return the visits, and the nodes whose resource is claimed."""
    visits, busy = list[Visit](), []
    if len(ids) == 1:
        rows = fetch_prepared(db, sql.READ_QUEUED_ONE, {"id": str(ids[0]), "traversal": str(traversal)})
    else:
        rows = fetch_prepared(db, sql.READ_QUEUED, {"ids": list(ids), "traversal": str(traversal)})
    for row in rows:
        if row[-1]:
            busy.append(row[0])
        else:
            visits.append(control_visit(row) if row[RESOURCE_ID] is None else resource_visit(row))
    return visits, busy


def defer_busy(db: CheckConnection, ids: Sequence[int], traversal: int) -> None:
    """Postpone nodes whose resource is claimed for a short time."""
    db.execute(sql.DEFER_BUSY, {"ids": list(ids), "traversal": traversal})


def read_claimed(db: CheckConnection, ids: Sequence[int], lease: int) -> list[Visit]:
    """Read claimed nodes, in a snapshot later than the claim (docs/internals/protocol.md rule 2)."""
    return [
        control_visit(row) if row[RESOURCE_ID] is None else resource_visit(row, others_hold=bool(row[-1]))
        for row in fetch_prepared(db, sql.READ_CLAIMED, {"ids": _bigints(ids), "lease": str(lease)})
    ]


def traversals_of(db: CheckConnection, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return the stacks and traversals of nodes."""
    rows = db.execute(sql.TRAVERSALS_OF, {"ids": list(ids)}).fetchall()
    return [(stack_id, traversal) for stack_id, traversal in rows]


def mark_interrupted(db: CheckConnection, ids: Sequence[int], lease: int) -> None:
    """Record that a call that the database interrupted may or may not have sent the requests of the open
    operations under its lease. The call is over, so nothing is in flight.
    """
    db.execute(sql.MARK_INTERRUPTED, {"ids": list(ids), "lease": lease})


def read_claimed_plan(db: CheckConnection, node_id: int, lease: int) -> ControlVisit | None:
    """Read a claimed plan node; None if the lease is lost."""
    match read_claimed(db, [node_id], lease):
        case [ControlVisit() as visit]:
            return visit
        case _:
            return None


def read_for_adoption(db: CheckConnection, visit: ResourceVisit) -> ResourceVisit:
    """Return the visit of a resource to be adopted, with the definition that it was adopted with.

    Raises:
        Superseded: the node is not claimed, and is gone by now.
    """
    return _read_again(db, visit, sql.READ_FOR_ADOPTION)


def read_with_operation_inputs(db: CheckConnection, visit: ResourceVisit) -> ResourceVisit:
    """Return the visit of a resource with an open operation, with the definition and requirements that this
    was started with.

    Raises:
        Superseded: the node is not claimed, and its resource is gone by now.
    """
    return _read_again(db, visit, sql.READ_WITH_OPERATION_INPUTS)


def _read_again(db: CheckConnection, visit: ResourceVisit, statement: str) -> ResourceVisit:
    row = db.execute(statement, {"id": visit.node_id}).fetchone()
    if row is None or row[RESOURCE_ID] is None:
        raise Superseded("the resource no longer exists")
    return resource_visit(row)


def begin(db: CheckConnection, row: JsonMapping, lease: int) -> bool:
    """Open an operation, durably, before the provider is called; return whether the resource was written."""
    return _written(db, ending.BEGIN, row, lease)


def begin_step(db: CheckConnection, row: JsonMapping, lease: int) -> bool:
    """Record the next step of an open operation, durably, before it is carried out; return whether the
    resource was written.
    """
    return _written(db, ending.BEGIN_STEP, row, lease)


def _written(db: CheckConnection, statement: str, row: JsonMapping, lease: int) -> bool:
    return bool(retried(db, statement, single_row_parameters({**row, "lease": lease}, statement)))


def write_outcome(
    db: CheckConnection,
    statement: OutcomeStatement,
    rows: Sequence[JsonMapping],
    lease: int | None,
    root: str,
    max_messages: int = 0,
) -> Settled:
    """Write outcomes that share a statement; send messages for at most `max_messages` released nodes.

    Without a lease nothing was claimed, and the statement locks the nodes and resources that it writes.
    """
    leased = lease is not None
    values: dict[str, object]
    if len(rows) == 1:
        text = render(statement, leased=leased, rows="one")
        values = single_row_parameters({**rows[0], "lease": lease, "max_messages": max_messages}, text)
    else:
        text = render(statement, leased=leased, rows="many")
        values = {"rows": Json(list(rows)), "lease": lease, "max_messages": max_messages}
    return settled(retried(db, text, values), root)


def single_row_parameters(row: JsonMapping, statement: str) -> JsonObject:
    """Return a row as parameters of the single-row form of a statement; unused columns are left out."""
    values: dict[str, object] = {}
    for name in numbered(statement)[1]:
        value = row.get(name)
        if value is None or value.__class__ is str:
            values[name] = value
        else:
            values[name] = str(value) if value.__class__ in _PLAIN else _text(value)
    return values


def _bigints(values: Sequence[int]) -> str:
    """Return an array in PostgreSQL's text format, for `prepared.as_texts`."""
    return "{" + ",".join(map(str, values)) + "}"


_PLAIN: Final = frozenset({int, bool, float})  # classes of most values that are no texts


def _text(value: object) -> str:
    """Return a column's value in PostgreSQL's text format: with text parameters one plan serves all rows."""
    if isinstance(value, tuple):
        return "{" + ",".join([f'"{item}"' for item in value]) + "}" if value else "{}"
    if isinstance(value, dict):
        return orjson.dumps(value).decode()
    return str(value)


def run(
    db: CheckConnection, statement: str, values: Mapping[str, object], root: str, tries: int = 5
) -> Settled:
    """Run another statement that moves nodes."""
    return settled(retried(db, statement, values, tries), root)


def settle_nodes(
    db: CheckConnection, ids: Sequence[int], lease: int, root: str, max_messages: int = 0
) -> Settled:
    """Settle nodes that visit no resource: joins and plans."""
    return settled(
        retried(db, ending.SETTLE_NODES, {"ids": list(ids), "lease": lease, "max_messages": max_messages}),
        root,
    )


def settle_clean(db: CheckConnection, ids: Sequence[int], root: str, max_messages: int) -> Settled:
    """Settle nodes whose requirements have unchanged outputs, and repeatedly those that become clean by this;
    return the messages for other released nodes.
    """
    messages: list[CheckMessage] = []
    not_enqueued, todo = 0, list(ids)
    while todo:
        part, todo = todo[:MAX_CLEAN_NODES], todo[MAX_CLEAN_NODES:]
        values = {"ids": part, "max_messages": max(0, max_messages - len(messages))}
        passed = settled(retried(db, ending.SETTLE_CLEAN_NODES, values), root)
        messages += passed.messages
        not_enqueued += passed.not_enqueued
        todo += passed.clean
    return Settled(messages, frozenset(), not_enqueued)


def drop(db: CheckConnection, ids: Sequence[int], lease: int, root: str) -> Settled:
    """Release nodes whose traversal is over."""
    return settled(retried(db, ending.DROP, {"ids": list(ids), "lease": lease}), root)


def separate(db: CheckConnection, ids: Sequence[int], lease: int, root: str) -> Settled:
    """Release claimed nodes and their resources unchanged; return a message for each."""
    return settled(retried(db, sql.SEPARATE, {"ids": _bigints(ids), "lease": str(lease)}), root)


def drop_unclaimed(db: CheckConnection, ids: Sequence[int]) -> None:
    """Drop queued nodes that were not claimed, if their traversal is over."""
    db.execute(ending.DROP_UNCLAIMED, {"ids": list(ids)})


def wake_newer_traversals(db: CheckConnection, ids: Sequence[int], root: str) -> list[CheckMessage]:
    """Return messages for nodes of newer traversals that waited for these nodes' resources."""
    return settled(retried(db, ending.WAKE_NEWER_TRAVERSALS, {"ids": _bigints(ids)}), root).messages


def refill_window(db: CheckConnection, root_id: int, root: str, window: int) -> Settled:
    """Send messages for queued nodes of a root stack until `window` messages are outstanding
    (docs/internals/protocol.md rule 15).
    """
    return settled(fetch_prepared(db, sql.REFILL_WINDOW, {"root": root_id, "window": window}), root)


def upsert_resource_snapshot(
    db: CheckConnection, visit: ResourceVisit, values: Mapping[str, Any]
) -> tuple[str, bytes | None]:
    """Write the snapshot of a resource, or find the snapshot that an older traversal requested; return its
    token and the stored answer.
    """
    resource = visit.resource
    named = {"name": resource.name, "type": resource.type, "runs_as": resource.runs_as}
    where = {"stack_id": visit.stack.id, "traversal": visit.traversal}
    statement = act.UPSERT_RESOURCE_SNAPSHOT if visit.act == "SNAPSHOT" else act.UNFINISHED_RESOURCE_SNAPSHOT
    row = db.execute(statement, {**named, **where, **values}).fetchone()
    return (values["token"], None) if row is None else (row[0], row[1])


def record_orphan(db: CheckConnection, visit: ResourceVisit, token: str, physical_id: str) -> None:
    """Record an object that was created under a lost lease (docs/internals/protocol.md rule 4)."""
    db.execute(
        sql.INSERT_ORPHAN,
        {
            "stack_id": visit.stack.id,
            "resource_id": visit.resource.id,
            "token": token,
            "type": visit.resource.resource_type,
            "physical_id": physical_id,
        },
    )


def renew(db: CheckConnection, leases: Sequence[tuple[int, int | None, int]], seconds: float) -> None:
    """Extend the leases of (node, resource, lease)."""
    db.execute(
        sql.RENEW,
        {
            "nodes": [node for node, _, _ in leases],
            "resources": [resource for _, resource, _ in leases if resource is not None],
            "leases": [lease for _, _, lease in leases],
            "seconds": seconds,
        },
    )


def release(db: CheckConnection, node_id: int, lease: int) -> None:
    """Release a claimed node that visits no resource."""
    db.execute(sql.RELEASE, {"id": node_id, "lease": lease})


def retried(
    db: CheckConnection, statement: str, values: Mapping[str, object], tries: int = 5
) -> list[tuple[Any, ...]]:
    """Run a statement, and again after a deadlock (40P01)."""
    while True:
        try:
            return fetch_prepared(db, statement, values)
        except (errors.DeadlockDetected, errors.SerializationFailure):
            tries -= 1
            if not tries:
                raise


def resource_visit(row: tuple[Any, ...], *, others_hold: bool = True) -> ResourceVisit:
    """Return the visit in a row of VISIT_COLUMNS that has a resource; the rest is read with a claim only."""
    definition = None if row[45] is None else DefinitionView(*row[45:50])
    inputs = tuple([NodeData(*data) for data in row[50]]) if row[50] else ()
    return ResourceVisit(  # type: ignore[call-arg]  # a row of Any
        *row[:7],
        StackView(*(*row[7:21], row[61])),
        ResourceView(*(*row[21:45], *row[54:59], row[62])),
        definition,
        inputs,
        row[51] or (),
        row[52],
        row[53],
        row[59],
        row[60],
        row[63],
        row[64],
        row[65],
        row[66],
        others_hold,
    )


def control_visit(row: tuple[Any, ...]) -> ControlVisit:
    """Return the visit in a row that begins as VISIT_COLUMNS and has no resource."""
    return ControlVisit(*row[:7], StackView(*row[7:21]))  # type: ignore[call-arg]  # a row of Any
