"""Record requests that may still be carried out, after newer ones: without an answer, or of a
worker that lost its lease (operations/adr/0025). The objects are observed until then
(`operations/maintenance/late_requests.py`). Creates and deletes are searched and repeated instead
(docs/internals/protocol.md rule 4).
"""

from __future__ import annotations

from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.decide import PAUSES
from orchestrator.engine.check.visit import ResourceView
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.store.maintenance import late_requests

Db = Connection[TupleRow]

LATE_SECONDS: Final = 600.0  # longer than any service keeps a request in its queues
ANSWERED_SECONDS: Final = 10.0  # after an answer that came too late: nothing arrives any more


def record_lost(db: Db, resource: ResourceView, type_: ResourceType) -> None:
    """Record the requests that an earlier visit has left behind, if any may still be carried out."""
    lost = resource.lost_seconds
    if lost is not None and lost + LATE_SECONDS > 0 and is_followed(resource, type_):
        late_requests.record(db, resource.id, lost + LATE_SECONDS, pauses=resource.op in PAUSES)


def record_unanswered(db: Db, resource: ResourceView, operation: ResourceOperation) -> None:
    """Record a request of this visit that had no answer, if there is any."""
    if operation.calls.unanswered and is_followed(resource, operation.resource_type):
        late_requests.record(db, resource.id, LATE_SECONDS, pauses=operation.state.op in PAUSES)


def record_late_outcome(db: Db, resource: ResourceView, state: ResourceState, type_: ResourceType) -> None:
    """Record the requests of a visit that has lost its lease: they were perhaps carried out a moment ago."""
    if is_followed(resource, type_):
        seconds = LATE_SECONDS if state.unanswered else ANSWERED_SECONDS
        late_requests.record(db, resource.id, seconds, pauses=state.op in PAUSES)


def is_followed(resource: ResourceView, type_: ResourceType) -> bool:
    """Whether late requests matter: they change an object at a provider, which carries them out by itself."""
    if isinstance(type_, NestedType) or not type_.calls_out or not type_.flight_seconds:
        return False
    return (resource.physical_id is not None and not resource.deposed) or type_.can_release
