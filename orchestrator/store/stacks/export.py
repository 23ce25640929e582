"""Reads a stack's resources for an export: those in the template, a single row per name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import and_, select
from sqlalchemy.dialects.postgresql import distinct_on

from orchestrator.json_types import JsonMapping
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.streaming import streamed
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.tables.graph import Resource
from orchestrator.store.tables.stacks import Stack


@dataclass(frozen=True, slots=True)
class ExportRow:
    """A resource with the data of its type."""

    name: str
    type: str
    physical_id: str | None
    action: str
    status: str
    metadata: JsonMapping | None
    data: JsonMapping | None
    sealed: bytes | None  # `data` and other values, encrypted, if any of it is secret
    child_id: int | None = None  # the row of its child stack, or of the snapshot of that


def resources(database: Database, stack: StackRow) -> Iterator[ExportRow]:
    """Yield the resources, ordered by name, in slices."""
    columns = [
        getattr(Resource, "metadata_" if name == "metadata" else name).label(name)
        for name in ExportRow.__slots__
        if name != "child_id"
    ]
    child = and_(Stack.parent_resource_id == Resource.id, Stack.deleted_at.is_(None))
    statement = (
        select(*columns, Stack.id.label("child_id"))
        .outerjoin(Stack, child)
        .where(Resource.stack_id == stack.id, Resource.deposed.is_(False))
        .ext(distinct_on(Resource.name))
        .order_by(Resource.name, Resource.id.desc())
    )
    for row in streamed(database, statement):
        yield ExportRow(**row._mapping)
