"""Hooks: pause, resume, release and list nodes (docs/internals/engine-semantics.md §11)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check import hooks
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.messages import CheckMessage
from orchestrator.json_types import JsonMapping
from orchestrator.store.nodes import hook_sql as sql
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.outcome_builder import render

Db = Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class Paused:
    """A resource that is paused at a hook."""

    name: str
    hook: str
    action: str  # of the resource
    status: str
    since: dt.datetime
    node_id: int = 0


def write_hooks(db: Db, hooks_by_node: Mapping[int, Sequence[str]]) -> None:
    """Write the hooks of newly planned nodes, by node id."""
    if hooks_by_node:
        texts = ["{" + ",".join(names) + "}" for names in hooks_by_node.values()]
        db.execute(sql.SET_HOOKS, {"ids": list(hooks_by_node), "hooks": texts})


def pause_before(db: Db, visit: ResourceVisit, hook: str, lease: int | None) -> bool:
    """Pause a node at a hook before its step; return False if its traversal is over or another visit has
    claimed it.
    """
    values = {
        "stack_id": visit.stack.id,
        "traversal": visit.traversal,
        "node_id": visit.node_id,
        "hook": hook,
        "reason": hooks.pause_reason(hook),
        "lease": lease,
    }
    statement = sql.PAUSE_UNCLAIMED if lease is None else sql.PAUSE_CLAIMED
    return bool(repository.retried(db, statement, values))


def pause_after(db: Db, row: JsonMapping, hook: str, lease: int | None) -> bool:
    """Write the outcome of a visit, as `repository.write_outcome` does, and pause its node; return False if
    the lease of the resource is lost.
    """
    paused = sql.DELETE_PAUSED if hook == "post-delete" else sql.SETTLE_PAUSED
    statement = render(paused, leased=lease is not None, rows="one")
    parameters = {"hook": hook, "paused": hooks.pause_reason(hook), "lease": lease}
    return bool(
        repository.retried(db, statement, {**repository.single_row_parameters(row, statement), **parameters})
    )


def clear(db: Db, stack_id: int, name: str, hook: str) -> list[CheckMessage]:
    """Resume the nodes that are paused at the hook; return their messages, none if no node was paused. Run in
    a transaction.
    """
    values = {
        "stack_id": stack_id,
        "name": name,
        "hook": hook,
        "after": hook.startswith("post-"),
        "changed": hooks.CHANGED,
        "reason": hooks.cleared_reason(hook),
    }
    return [CheckMessage(*row) for row in db.execute(sql.CLEAR, values).fetchall()]


def release_paused(db: Db, stack_id: int) -> None:
    """Drop paused nodes of traversals that are over. Run in a transaction."""
    values = {"stack_id": stack_id, "reason": hooks.GIVEN_UP}
    if db.execute(sql.LOCK_WAITING, values).fetchone() is not None:
        db.execute(sql.RELEASE_PAUSED, values)


def paused(
    db: Db, stack_id: int, after: tuple[dt.datetime, int] | None = None, limit: int | None = None
) -> list[Paused]:
    """Return the paused resources, the longest waiting first; `after` a time and a node id."""
    since, node_id = after or (None, 0)
    values = {"stack_id": stack_id, "since": since, "node_id": node_id, "limit": limit}
    return [Paused(*row) for row in db.execute(sql.PAUSED, values).fetchall()]
