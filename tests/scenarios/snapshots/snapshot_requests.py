"""Requests for snapshots, and readers of their rows."""

from __future__ import annotations

from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from tests.scenarios.world import World


def take(world: World, name: str = "s") -> str:
    taken = snapshots.take(world.context, world.stack_row(name), Body(b"{}"))
    world.messages += taken.messages
    return str(taken.snapshot.uuid)


def found(world: World, snapshot: str, name: str = "s"):
    return snapshots.find(world.context, world.stack_row(name), snapshot)


def restore(world: World, snapshot: str, name: str = "s") -> None:
    world.messages += snapshots.restore(world.context, world.stack_row(name), snapshot)
