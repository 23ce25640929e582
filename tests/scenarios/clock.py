"""The clock of a scenario: the only place that knows which columns hold times.

PostgreSQL's own clock cannot be moved. A scenario instead moves the times that rows hold into the past, as
if that much time had gone by.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from sqlalchemy import text

from orchestrator.store.connections.database import Database

# Past moments: the table and the column with the time.
STARTS: Mapping[str, tuple[str, str]] = {
    "answer": ("circuit_breaker", "answered_at"),
    "probe": ("circuit_breaker", "probe_at"),
    "action": ("stack", "action_started_at"),
    "delete request": ("resource", "requested_at"),
    "enqueue": ("graph_node", "enqueued_at"),
    "event": ("event", "created_at"),
    "late request": ("late_request", "lost_at"),
    "late request due": ("late_request", "due_at"),
    "late request end": ("late_request", "until"),
    "lost lease": ("resource", "lost_at"),
    "operation": ("resource", "op_started_at"),
    "outage end": ("resource", "reachable_since"),
    "round message": ("observation_group", "enqueued_at"),
    "progress count": ("progress", "counted_at"),
    "sweep": ("sweep_turn", "begun_at"),
    "wait": ("graph_node", "waiting_since"),
}
LATE = ("late request", "late request due", "late request end")
# Work that is scheduled: the table, and the rows that have a time.
SCHEDULES: Mapping[str, tuple[str, str]] = {
    "node": ("graph_node", "state = 'waiting' AND due_at <> 'infinity'"),
    "observation": ("observation", "true"),
    "observation pass": ("observation_pass", "true"),
    "hastened round": ("observation_group", "due_at < now() + interval '1 minute'"),
    "signal": ("signal", "due_at <> 'infinity'"),
    "snapshot": ("snapshot", "due_at IS NOT NULL"),
}
LEASED = ("graph_node", "resource", "observation_group")


def elapse(database: Database, seconds: float, *starts: str, where: str = "true", **values: Any) -> None:
    """Move the times of these starts (`STARTS`) into the past, in the rows that `where` selects."""
    with database.engine.begin() as connection:
        for start in starts:
            table, column = STARTS[start]
            connection.execute(
                text(
                    f"UPDATE {table} SET {column} = {column} - make_interval(secs => :seconds) "
                    f"WHERE {column} IS NOT NULL AND {where}"
                ),
                {"seconds": seconds, **values},
            )


def age_refusals(database: Database, seconds: float) -> None:
    """Move the first refusals of all nodes into the past."""
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE graph_node SET refused_since = ("
                " SELECT jsonb_object_agg(key, value::float8 - :seconds)"
                " FROM jsonb_each_text(refused_since)) WHERE refused_since IS NOT NULL"
            ),
            {"seconds": seconds},
        )


def pass_time(database: Database, seconds: float) -> None:
    """Let so much time pass for everything."""
    columns: dict[str, set[str]] = defaultdict(set)
    for table, column in STARTS.values():
        columns[table].add(column)
    for table, _ in SCHEDULES.values():
        columns[table].add("due_at")
    for table in LEASED:
        columns[table].add("leased_until")
    with database.engine.begin() as connection:
        for table, names in sorted(columns.items()):
            moved = (f"{name} = {name} - make_interval(secs => :seconds)" for name in sorted(names))
            connection.execute(text(f"UPDATE {table} SET {', '.join(moved)}"), {"seconds": seconds})


def make_due(database: Database, *schedules: str) -> None:
    """Bring scheduled work forward to now."""
    with database.engine.begin() as connection:
        for schedule in schedules:
            table, scheduled = SCHEDULES[schedule]
            connection.execute(text(f"UPDATE {table} SET due_at = now() WHERE {scheduled}"))


def make_probes_due(database: Database) -> None:
    """Let every open circuit breaker permit its next probe."""
    with database.engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE circuit_breaker SET probe_at = now(), probing_until = NULL WHERE probe_at IS NOT NULL"
            )
        )


def expire_leases(database: Database) -> None:
    """Let every lease expire."""
    with database.engine.begin() as connection:
        for table in LEASED:
            connection.execute(
                text(f"UPDATE {table} SET leased_until = now() - interval '1 s' WHERE lease IS NOT NULL")
            )
