"""Limits on the stored values of resources: a sum per root stack and per project, of large values only
(adr/0012).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import orjson

from orchestrator.config import Settings
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.errors import LimitExceeded
from orchestrator.json_types import JsonMapping
from orchestrator.operations.quotas.limits import limit
from orchestrator.operations.quotas.room import is_near
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.store.access.quotas import Limit, enforce
from orchestrator.store.nodes import large_values
from orchestrator.store.nodes.large_values import LARGE_BYTES, Db, Part

QUOTA: Final = "large_value_bytes"
MAX_BYTES_PER_STACK: Final = 1024**3  # with nested stacks


def reserve(
    db: Db, settings: Settings, visit: ResourceVisit, part: Part, value: JsonMapping, before: JsonMapping
) -> None:
    """Reserve space for a value that is going to replace the stored value `before`.

    Raises:
        LimitExceeded: the value is larger than before, and the stack or the project has no space for it.
    """
    size = size_of(value)
    if size > LARGE_BYTES:
        try:
            _reserve(db, settings, visit, part, size)
        except LimitExceeded:
            large_values.drop_deleted(db, visit.stack.project_id)
            _reserve(db, settings, visit, part, size)
    elif before and size_of(before) > LARGE_BYTES:
        large_values.drop(db, visit.resource.id, part)


def has_large_values(state: ResourceState) -> bool:
    """Return whether a value of the resource is large."""
    values = (state.properties, state.metadata or {}, state.attributes)
    return any(size_of(value) > LARGE_BYTES for value in values)


def size_of(value: JsonMapping) -> int:
    """Return the size of a value in bytes of JSON."""
    return len(orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS))


def _reserve(db: Db, settings: Settings, visit: ResourceVisit, part: Part, size: int) -> None:
    stack, resource_id = visit.stack, visit.resource.id
    root_id, project_id = stack.root_id, stack.project_id
    with db.transaction():
        before = large_values.put(db, resource_id, part, root_id=root_id, project_id=project_id, size=size)
        if size <= before:
            return
        of_root, of_project = large_values.sums(db, root_id, project_id)
        limits = []
        for maximum, used, counted, whose in (
            (MAX_BYTES_PER_STACK, of_root, partial(_of_root, root_id), "stack"),
            (limit(db, settings, project_id, QUOTA), of_project, _of_project, "project"),
        ):
            if is_near(used=used, added=size, maximum=maximum):
                refusal = f"the large values of the {whose} have more than {maximum} bytes."
                limits.append(Limit(project_id, maximum, counted, refusal))
        enforce(db, *limits)


def _of_root(root_id: int, db: Db, project_id: str) -> int:
    return large_values.sums(db, root_id, project_id)[0]


def _of_project(db: Db, project_id: str) -> int:
    return large_values.sums(db, 0, project_id)[1]
