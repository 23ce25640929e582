"""The inputs of outputs and of live metadata: read as stored, resolved by the operations."""

from __future__ import annotations

import uuid as uuid_
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from sqlalchemy import select

from orchestrator.engine.check.visit import NodeData
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.store.connections.database import Database
from orchestrator.store.connections.prepared import fetch_prepared
from orchestrator.store.tables.graph import Resource, ResourceDefinition
from orchestrator.store.tables.stacks import Revision, Stack

REVISION: Final = "SELECT outline, parameters, sealed, files FROM revision WHERE id = %(id)s::bigint"
RESOURCES: Final = """
SELECT id, name, physical_id, reference_id, action, status, attributes, sealed FROM resource
WHERE stack_id = %(stack_id)s AND name = ANY(%(names)s::text[]) AND NOT deposed
"""


class RevisionInputs(NamedTuple):
    """The parts of a revision that outputs are resolved with."""

    outline: JsonMapping
    parameters: JsonObject  # NULL for hidden parameters
    sealed: bytes | None
    files: Mapping[str, str]  # name -> hex hash


class ChildRow(NamedTuple):
    """A child stack, by the resource that it belongs to."""

    id: int
    uuid: uuid_.UUID
    name: str
    project_id: str
    revision_id: int | None
    parent_resource: str


class MetadataInputs(NamedTuple):
    """The definition and the stored data of a resource, and the parameters of its stack's revision."""

    name: str
    body: JsonMapping
    requires: Collection[str]
    data: JsonMapping | None
    sealed: bytes | None  # of the resource
    parameters: JsonObject
    sealed_parameters: bytes | None


def revision(database: Database, revision_id: int | None) -> RevisionInputs | None:
    """Return the inputs from a revision, None if it does not exist."""
    with database.borrow() as db:
        rows = fetch_prepared(db, REVISION, {"id": revision_id})
    return RevisionInputs(*rows[0]) if rows else None


def resources(database: Database, stack_id: int, names: Collection[str]) -> list[NodeData]:
    """Return the current resources of these names."""
    with database.borrow() as db:
        rows = fetch_prepared(db, RESOURCES, {"stack_id": stack_id, "names": list(names)})
    return [
        NodeData(
            id=id_,
            name=name,
            physical_id=physical_id,
            reference_id=reference_id,
            action=action,
            status=status,
            attributes=attributes,
            sealed=sealed.decode() if sealed else None,
        )
        for id_, name, physical_id, reference_id, action, status, attributes, sealed in rows
    ]


def children(database: Database, stack_id: int, resource_names: Collection[str]) -> list[ChildRow]:
    """Return the child stacks of the current resources of these names."""
    statement = (
        select(*(getattr(Stack, name) for name in ChildRow._fields))
        .join(Resource, Resource.id == Stack.parent_resource_id)
        .where(Stack.owner_id == stack_id, Stack.deleted_at.is_(None))
        .where(Resource.deposed.is_(False), Resource.name.in_(list(resource_names)))
    )
    with database.engine.connect() as connection:
        return [ChildRow(*row) for row in connection.execute(statement)]


def metadata(database: Database, resource_id: int, revision_id: int | None) -> MetadataInputs | None:
    """Return the inputs of the metadata of a resource that is COMPLETE, None for any other."""
    definition = ResourceDefinition
    of_resource = (
        select(definition.name, definition.body, definition.requires, Resource.data, Resource.sealed)
        .join(definition, definition.id == Resource.definition_id)
        .where(Resource.id == resource_id, Resource.status == "COMPLETE")
    )
    of_revision = select(Revision.parameters, Revision.sealed).where(Revision.id == revision_id)
    with database.engine.connect() as connection:
        row = connection.execute(of_resource).one_or_none()
        parameters = None if row is None else connection.execute(of_revision).one_or_none()
    return None if row is None or parameters is None else MetadataInputs(*row, *parameters)
