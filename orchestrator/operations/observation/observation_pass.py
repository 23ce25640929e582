"""The pass over the resources of a stack: start it, select the next resources, end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import backoff, metrics
from orchestrator.engine.messages import Message, ObservationMessage
from orchestrator.operations.runtime.maintenance_job import (
    MAX_ROWS,
    Maintenance,
    MaintenanceJob,
)
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.store import observations
from orchestrator.store.connections.damaged_rows import apart

Db = Connection[TupleRow]
Types = Mapping[str, ResourceType]

MAX_SLICES: Final = 10  # slices of resources read in one transaction; the sweep continues the pass


def start(
    db: Db,
    types: Types,
    stack_id: int,
    reason: str,
    re_enqueue_seconds: float,
    credential_id: int | None = None,
) -> list[ObservationMessage]:
    """Start a pass over the resources of a stack, or join the running pass. `credential_id` is the
    caller's, in place of the content's. Run in a transaction.
    """
    if not observations.begin(db, stack_id, reason, credential_id):
        return []
    return continue_pass(db, types, stack_id, re_enqueue_seconds)


def continue_pass(db: Db, types: Types, stack_id: int, re_enqueue_seconds: float) -> list[ObservationMessage]:
    """Select the next resources of a pass, and end the pass after the last. Run in a transaction.

    Without effect if another process is doing so: that process, or the sweep, selects them.
    """
    selection = observations.lock(db, stack_id)
    if selection is None:
        return []
    after, exhausted = (selection.after_name, selection.after_id), selection.exhausted
    free = observations.WINDOW - selection.under_way
    chosen: list[int] = []
    for _ in range(MAX_SLICES):
        if exhausted or len(chosen) >= free:
            break
        rows = observations.candidates(db, stack_id, *after)
        for row in rows:
            if len(chosen) >= free:
                break
            after = (row.name, row.id)
            if row.has_object and is_observable(types, row.type_name):
                chosen.append(row.id)
        else:
            exhausted = len(rows) < observations.SLICE
    more = not exhausted and len(chosen) < free
    messages = observations.select_next(
        db,
        stack_id,
        chosen,
        after=after,
        exhausted=exhausted,
        seconds=0.0 if more else re_enqueue_seconds,
        re_enqueue_seconds=re_enqueue_seconds,
    )
    if exhausted and not chosen and not selection.under_way:
        observations.end(db, stack_id)
    return messages


def is_observable(types: Types, type_name: str) -> bool:
    """Return whether resources of the type can be observed: at a provider, or as a child stack.

    A type that is not installed is a template, or was removed; the observation decides.
    """
    type_ = types.get(type_name)
    if type_ is None or isinstance(type_, NestedType):
        return True
    return type_.calls_out and type_.can_check


def enqueue_observations(tools: Maintenance) -> Sequence[Message]:
    """Return messages for the resources of passes."""
    observed = observations.due(tools.db, backoff.RE_ENQUEUE_SECONDS, MAX_ROWS)
    metrics.count_recovered("observation", len(observed))
    return observed


def continue_passes(tools: Maintenance) -> Sequence[Message]:
    """Select the next resources of passes; return their messages."""
    messages: list[Message] = []
    for stack_id in observations.due_passes(tools.db):
        with apart("stack", stack_id=stack_id), tools.db.transaction():
            messages += continue_pass(tools.db, tools.types, stack_id, backoff.RE_ENQUEUE_SECONDS)
    return messages


OBSERVATIONS: Final = MaintenanceJob(
    "observations", enqueue_observations, observations.HAS_DUE, exclusive=True
)
PASSES: Final = MaintenanceJob("observation_passes", continue_passes, observations.HAS_DUE_PASSES)
