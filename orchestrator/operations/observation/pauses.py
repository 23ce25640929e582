"""The pause of repairs that is in force for a stack, as shown with its status."""

from __future__ import annotations

import datetime as dt

from orchestrator.engine.observation import policies
from orchestrator.json_types import JsonObject
from orchestrator.store.connections.database import Database
from orchestrator.store.observation import rules
from orchestrator.store.stacks.stacks import StackRow


def pause_of(database: Database, stack: StackRow) -> JsonObject | None:
    """Return the pause or the maintenance window that is in force for a whole stack, None without one."""
    with database.borrow(hot=False) as db:
        rows = rules.listed(db, stack.project_id, kind="pause")
        if not rows:
            return None
        [place] = rules.places(db, [(stack.id, "", "")])
    now = dt.datetime.now(dt.UTC)
    found = policies.paused([row.rule for row in rows], place, now)
    if found is None:
        return None
    row = next(row for row in rows if row.id == found.id)
    until = policies.in_force_until(found, now)
    assert until is not None  # it is in force
    return {
        "id": str(row.uuid),
        "reason": row.reason,
        "until": until.astimezone(dt.UTC).isoformat()[:19] + "Z",
        "repeats": row.repeats or None,
        "created_by": row.created_by,
    }
