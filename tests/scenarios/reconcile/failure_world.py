"""The outcomes, reasons and causes that failing stacks record."""

from __future__ import annotations

from orchestrator.store.stacks import history
from tests.scenarios.world import World


def outcomes(world: World) -> list[str | None]:
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def reason(world: World) -> str:
    [row] = world.rows("SELECT status_reason FROM stack")
    return str(row.status_reason)


def causes(world: World) -> list[tuple[str, int | None]]:
    stack = world.stack_row("s")
    result = history.list_failures(world.database, stack, range(1, stack.traversal + 1))
    return [(row.resource_name, row.revision) for row in result]
