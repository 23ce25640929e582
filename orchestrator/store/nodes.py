"""What a check asks of the store: claim, look, begin, and the ways a visit ends (PROTOCOL.md 1-5, 11-15).

The statements are in `node_statements.py`. Rows go there as one JSON array, so that one node and fifty cost
one round trip.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, errors
from psycopg.rows import TupleRow
from psycopg.types.json import Json

from orchestrator.engine.messages import Ring
from orchestrator.engine.visit import DefinitionView, NodeData, ResourceView, StackView, Visit
from orchestrator.store import node_statements as sql

Hot = Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a statement that moves nodes did: messages to send, resources still ours, nodes left for the
    window.
    """

    rings: list[Ring]
    held: frozenset[int]
    unrung: int = 0
    outstanding: int = 0


def _settled(rows: Sequence[tuple[Any, ...]], root: str) -> Settled:
    rings = [Ring(row[1], row[2], row[3], row[4], root) for row in rows if row[0] == "ring"]
    return Settled(
        rings,
        frozenset(row[1] for row in rows if row[0] == "held"),
        sum(row[0] == "queued" for row in rows),
        sum(row[1] for row in rows if row[0] == "outstanding"),
    )


def claim(db: Hot, ids: Sequence[int], traversal: int, lease: int, seconds: float) -> list[int]:
    """Take these nodes and their resources for one visit; return those we got. Committed on return."""
    values = {"ids": list(ids), "traversal": traversal, "lease": lease, "seconds": seconds}
    claimed = [row[0] for row in _retried(db, sql.CLAIM, values)]
    if len(claimed) < len(ids):
        _refuse(db, ids, claimed, traversal)
    return claimed


def _refuse(db: Hot, ids: Sequence[int], claimed: Collection[int], traversal: int) -> None:
    db.execute(sql.REFUSE, {"ids": [id_ for id_ in ids if id_ not in claimed], "traversal": traversal})


def claim_and_look(db: Hot, ids: Sequence[int], traversal: int, lease: int, seconds: float) -> list[Visit]:
    """Take these nodes, whose types call nobody, and read what they need: one round trip."""
    values = {"ids": list(ids), "traversal": traversal, "lease": lease, "seconds": seconds}
    visits = [_visit(row) for row in _retried(db, sql.CLAIM_AND_LOOK, values)]
    if len(visits) < len(ids):
        _refuse(db, ids, [visit.node_id for visit in visits], traversal)
    return visits


def look(db: Hot, ids: Sequence[int], lease: int) -> list[Visit]:
    """Read what the claimed nodes need, in a snapshot later than the claim (PROTOCOL.md 2)."""
    return [_visit(row) for row in db.execute(sql.LOOK, {"ids": list(ids), "lease": lease}).fetchall()]


def begin(db: Hot, rows: Sequence[Mapping[str, Any]], lease: int) -> frozenset[int]:
    """Open an operation, durably, before its provider is called; return the resources that were ours."""
    return frozenset(row[0] for row in _retried(db, sql.BEGIN, {"rows": Json(list(rows)), "lease": lease}))


def write(
    db: Hot, statement: str, rows: Sequence[Mapping[str, Any]], lease: int, root: str, ring: int = 0
) -> Settled:
    """Run SETTLE, SETTLE_KEPT, SETTLE_GONE, WAIT or FAIL over `rows`; ring at most `ring` released nodes."""
    values: dict[str, Any] = {"rows": Json(list(rows)), "lease": lease}
    if "%(ring)s" in statement:
        values["ring"] = ring
    return _settled(_retried(db, statement, values), root)


def settle_nodes(db: Hot, ids: Sequence[int], lease: int, root: str, ring: int = 0) -> Settled:
    """Settle nodes that visit no resource: joins and plans."""
    return _settled(_retried(db, sql.SETTLE_NODES, {"ids": list(ids), "lease": lease, "ring": ring}), root)


def drop(db: Hot, ids: Sequence[int], lease: int, root: str) -> Settled:
    """Let go of nodes whose traversal is over."""
    return _settled(_retried(db, sql.DROP, {"ids": list(ids), "lease": lease}), root)


def wake(db: Hot, ids: Sequence[int], root: str) -> list[Ring]:
    """Ring for nodes of newer traversals that these nodes' visits held up."""
    return _settled(_retried(db, sql.WAKE_LATE, {"ids": list(ids)}), root).rings


def top_up(db: Hot, root_id: int, root: str, window: int) -> Settled:
    """Ring queued nodes of a root stack until `window` messages are outstanding (PROTOCOL.md 15)."""
    return _settled(db.execute(sql.TOP_UP, {"root": root_id, "window": window}).fetchall(), root)


def record_stray(db: Hot, visit: Visit, token: str, physical_id: str) -> None:
    """Keep note of a thing made under a lease that was lost (PROTOCOL.md 4)."""
    assert visit.resource is not None
    db.execute(
        sql.STRAY,
        {
            "stack_id": visit.stack.id,
            "resource_id": visit.resource.id,
            "token": token,
            "type": visit.resource.type,
            "physical_id": physical_id,
        },
    )


def renew(db: Hot, held: Sequence[tuple[int, int | None, int]], seconds: float) -> None:
    """Lengthen the leases of (node, resource, lease)."""
    db.execute(
        sql.RENEW,
        {
            "nodes": [node for node, _, _ in held],
            "resources": [resource for _, resource, _ in held if resource is not None],
            "leases": [lease for _, _, lease in held],
            "seconds": seconds,
        },
    )


def _retried(db: Hot, statement: str, values: Mapping[str, Any], tries: int = 5) -> list[tuple[Any, ...]]:
    """Run a statement, again when PostgreSQL broke a deadlock with it (40P01)."""
    while True:
        try:
            return db.execute(statement, values).fetchall()
        except (errors.DeadlockDetected, errors.SerializationFailure):
            tries -= 1
            if not tries:
                raise


def _visit(row: tuple[Any, ...]) -> Visit:
    resource = definition = None
    if row[19] is not None:
        resource = ResourceView(*row[19:38])
    if row[38] is not None:
        definition = DefinitionView(row[38], row[39], row[40], tuple(row[41]), row[42])
    inputs = tuple(NodeData(*data) for data in row[43] or ())
    return Visit(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        row[5],
        row[6],
        StackView(*row[7:19]),
        resource,
        definition,
        inputs,
    )
