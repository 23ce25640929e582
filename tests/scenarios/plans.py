"""Statistics of PostgreSQL for the statements of a block: the rows read, by kind of scan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import event

from orchestrator.store.connections.database import Database


@dataclass
class Work:
    """The sum over all statements of the block."""

    rows: int = 0
    statements: list[tuple[int, str]] = field(default_factory=list)  # rows, and the statement
    scans: list[str] = field(default_factory=list)  # "Index Scan event", of stored tables

    @property
    def walked(self) -> list[str]:
        """The scans that read whole tables."""
        return [scan for scan in self.scans if scan.startswith("Seq Scan")]


@contextlib.contextmanager
def watched(database: Database) -> Iterator[Work]:
    """Run every query of the block a second time, explained."""
    work = Work()
    busy = False

    def explain(_connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        nonlocal busy
        if busy or not statement.lstrip().upper().startswith(("SELECT", "WITH")):
            return
        busy = True
        with cursor.connection.cursor() as other:
            other.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement, parameters)
            before = work.rows
            _count(other.fetchone()[0][0]["Plan"], work)
            work.statements.append((work.rows - before, statement))
        busy = False

    event.listen(database.engine, "before_cursor_execute", explain)
    try:
        yield work
    finally:
        event.remove(database.engine, "before_cursor_execute", explain)


def explained(db: Any, statement: str, values: Mapping[str, Any]) -> Work:
    """Run a statement once, explained; `db` is a connection of the store."""
    work = Work()
    [(found,)] = db.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + statement, values).fetchall()
    _count(found[0]["Plan"], work)
    work.statements.append((work.rows, statement))
    return work


def _count(plan: dict[str, Any], work: Work) -> None:
    if "Relation Name" in plan:
        removed = sum(plan.get(key, 0) for key in ("Rows Removed by Filter", "Rows Removed by Index Recheck"))
        work.rows += int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
        work.scans.append(f"{plan['Node Type']} {plan['Relation Name']}")
    for part in plan.get("Plans", ()):
        _count(part, work)
