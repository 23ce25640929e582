"""The observe tasks: observe a resource, or the resources of a group, beside the operations of their stacks.

As in `check`, a message carries only an id. The sweep re-enqueues lost messages.
"""

from __future__ import annotations

from typing import Any, Final

from orchestrator.logs import logger
from orchestrator.operations.maintenance.late_requests import follow_late_requests
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.operations.observation.observe import observe_resource
from orchestrator.operations.observation.rounds import observe_group
from orchestrator.store.connections.database import UNREACHABLE
from tasks.app import app, engine
from tasks.execution import execution
from tasks.publisher import OBSERVE_TASK, ROUND_TASK

log = logger()

ROUND_SECONDS: Final = 3_600


@app.task(name=OBSERVE_TASK, bind=True, max_retries=2, shared=False)
def observe(self: Any, resource_id: int) -> None:
    """Observe a resource of a pass, or with late requests; enqueue the next resources, or a correction."""
    with execution(self.request) as running:
        try:
            running.messages = [
                *follow_late_requests(engine(), resource_id),
                *observe_resource(engine(), resource_id),
            ]
        except UNREACHABLE as error:  # the sweep re-enqueues the resource
            log.warning("database_unreachable", resource=resource_id, error=str(error))


# A round over very many objects takes long; it renews its lease and ends when that is lost.
@app.task(
    name=ROUND_TASK,
    bind=True,
    max_retries=2,
    shared=False,
    time_limit=ROUND_SECONDS,
    soft_time_limit=ROUND_SECONDS - 60,
)
def observe_round(self: Any, group_id: int) -> None:
    """Carry out a round of the continuous observation, and start the repairs that are due after it."""
    with execution(self.request) as running:
        try:
            touched = observe_group(engine(), group_id)
            database, types = engine().database.check_connection(durable=True), engine().types
            running.messages = [
                message for id_ in touched for message in repair_due_faults(database, types, id_)
            ]
        except UNREACHABLE as error:  # the sweep sends the message again
            log.warning("database_unreachable", group=group_id, error=str(error))
