"""The resources whose live attributes a request reads."""

from __future__ import annotations

import uuid as uuid_
from collections.abc import Collection
from typing import Final, NamedTuple

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.json_types import JsonMapping

TYPES: Final = """
SELECT name, coalesce(runs_as, type) FROM resource
WHERE stack_id = %(stack_id)s AND name = ANY(%(names)s::text[]) AND NOT deposed AND physical_id IS NOT NULL
"""
RESOURCES: Final = """
SELECT name, uuid, coalesce(runs_as, type), physical_id, properties, data, metadata,
    convert_from(sealed, 'UTF8')
FROM resource
WHERE stack_id = %(stack_id)s AND name = ANY(%(names)s::text[]) AND NOT deposed AND physical_id IS NOT NULL
"""


class LiveInputs(NamedTuple):
    """The inputs of a read of live attributes, as stored."""

    name: str
    uuid: uuid_.UUID
    type_name: str
    physical_id: str
    properties: JsonMapping | None
    data: JsonMapping | None
    metadata: JsonMapping | None
    sealed: str | None  # the last three, encrypted


def types(db: Connection[TupleRow], stack_id: int, names: Collection[str]) -> dict[str, str]:
    """Return the types of existing resources by name."""
    return dict(db.execute(TYPES, {"stack_id": stack_id, "names": list(names)}).fetchall())


def resources(db: Connection[TupleRow], stack_id: int, names: Collection[str]) -> list[LiveInputs]:
    """Return the existing resources of these names."""
    values = {"stack_id": stack_id, "names": list(names)}
    return [LiveInputs(*row) for row in db.execute(RESOURCES, values).fetchall()]
