"""Release what an incarnation needs from the other incarnations of its resource, or take it back
(operations/adr/0013-release-before-a-replacement.md).

Ports, fixed addresses and unique names have a single holder. Before an incarnation is created, or a restored
one is settled, all others give theirs up, each under its own lease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from orchestrator.engine.check.decide import RETAINED, in_flight
from orchestrator.engine.check.outcome import Postponed, Replaced
from orchestrator.errors import UNANSWERED_ERRORS, Superseded
from orchestrator.json_types import JsonMapping
from orchestrator.operations.reconcile.step_outcomes import may_search, observe_and_advance
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import late_requests
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import load_state, recorded_properties
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.visit_calls import VisitCalls
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.verbs.values import found_ids
from orchestrator.store.nodes import incarnations
from orchestrator.store.nodes.incarnations import OtherView
from orchestrator.store.nodes.repository import CheckConnection

BUSY_SECONDS: Final = 1.0
RELEASE_SECONDS: Final = 2.0  # until the next observation, if the type names no time
# Carried out late, it would delete the replacement: that may have the same id.
LATE_DELETE: Final = "an earlier delete of the replaced object may still be carried out"
BUSY: Final = "another incarnation of the resource is visited"


@dataclass(frozen=True, slots=True)
class OtherIncarnations:
    """The other incarnations of visited resources; `lease` is the lease of the visits."""

    worker: WorkerContext
    db: CheckConnection
    lease: int | None

    def release(self, operation: ResourceOperation) -> Postponed | None:
        """Let the other incarnations release what this one needs. Return the wait for it, None if all have
        released it.
        """
        if self.lease is None or not operation.visit.others_hold:
            return None
        for other in incarnations.others(self.db, operation.visit):
            resource_type = self.worker.types.get(other.resource_type)
            if resource_type is not None and self._must_release(operation, other, resource_type):
                waits = self._release(operation, other.id, resource_type, self.lease)
                if waits is not None:
                    return waits
        return None

    def _must_release(self, operation: ResourceOperation, other: OtherView, type_: ResourceType) -> bool:
        """Return whether an incarnation has to give something up: a name, if the two have it in common. A
        retained object keeps its name.
        """
        if not type_.can_release or type_.unique is None:
            return type_.can_release
        if other.deletion_policy in RETAINED or other.is_external:
            return False
        properties = recorded_properties(other.properties, other.sealed, self.worker.cipher)
        return type_.unique.is_shared(properties, operation.state.properties)

    def _release(
        self, operation: ResourceOperation, id_: int, resource_type: ResourceType, lease: int
    ) -> Postponed | None:
        visit, seconds, done = operation.visit, lease_keeper.LEASE_SECONDS, False
        view = incarnations.hold(self.db, visit, id_, lease, seconds)
        if view is None:
            return Postponed(BUSY_SECONDS, BUSY)
        breakers = self.worker.breakers if resource_type.calls_out else None
        other = operation._replace(
            visit=visit._replace(resource=view, definition=None),
            resource=view,
            resource_type=resource_type,
            state=load_state(visit._replace(resource=view), self.worker.cipher),
            calls=VisitCalls(resource_type, visit, breakers),
        )
        late_requests.record_lost(self.db, view, resource_type)
        unanswered = False
        try:
            with self.worker.leases.keep([(visit.node_id, id_, lease)]), other.calls:
                waits = self._request(other)
            done = waits is None and view.physical_id is not None
        except UNANSWERED_ERRORS:
            unanswered = resource_type.deletes_first
            raise
        finally:
            late_requests.record_unanswered(self.db, view, other)
            incarnations.let_go(self.db, id_, lease, released=done, unanswered=unanswered)
        return waits

    def _request(self, other: ResourceOperation) -> Postponed | None:
        """Request the release of an object, and observe its end."""
        type_, deleted = other.resource_type, other.resource_type.deletes_first
        context = other.context("DELETE" if deleted else "RELEASE", 0.0)
        ids: tuple[str, ...] = () if other.state.physical_id is None else (other.state.physical_id,)
        if not ids and type_.can_find and may_search(other, context):
            ids = found_ids(other.calls.run(type_.find, context, context.token))
        for physical_id in ids:
            other.calls.run(type_.release, context, physical_id)
            seen = _observed(other, physical_id, context)
            if seen.exists and (seen.step or deleted or not seen.released):
                reason = seen.reason or f"{physical_id} is releasing what its replacement needs"
                return Postponed(seen.retry_after or RELEASE_SECONDS, reason)
        if deleted and (seconds := in_flight(other.resource, type_)) > 0:
            return Postponed(seconds, LATE_DELETE)
        return None

    def reclaim(self, operation: ResourceOperation, properties: JsonMapping) -> Postponed | Replaced | None:
        """Let a restored incarnation take back what it has released; `properties`: as recorded.
        Return the wait for it, None if nothing is missing. An object that was deleted is replaced.
        """
        type_, state, id_ = operation.resource_type, operation.state, operation.resource.id
        # Only the holder of the lease, which is this visit, changes it.
        if self.lease is None or not type_.can_release or operation.resource.released is None:
            return None
        if not type_.can_reclaim:
            return Replaced()
        waits = self.release(operation)
        if waits is not None:
            return waits
        self._mark(id_, released=False)  # from here on, the object may hold it again
        if state.physical_id is not None:
            context = replace(operation.context("RECLAIM", 0.0), properties=properties)
            operation.calls.run(type_.reclaim, context, state.physical_id, properties)
            seen = _observed(operation, state.physical_id, context)
            if not seen.exists and type_.unique is not None:
                return Replaced()
            if _is_changing(seen) and (seen.step or seen.busy or state.op is None):
                return Postponed(seen.retry_after or RELEASE_SECONDS, seen.reason or "it is restored")
        self._mark(id_, released=None)
        return None

    def share(self, operation: ResourceOperation) -> bool:
        """Whether the object of a deposed incarnation belongs to the current one: an attachment that was
        lost and made again has the id of the lost one.
        """
        physical_id = operation.state.physical_id
        return physical_id is not None and incarnations.is_shared(self.db, operation.visit, physical_id)

    def _mark(self, id_: int, *, released: bool | None) -> None:
        assert self.lease is not None
        if not incarnations.mark(self.db, id_, self.lease, released):
            raise Superseded("the lease was lost before a request was sent")


def _observed(operation: ResourceOperation, physical_id: str, context: Context) -> Observation:
    """Observe an object that was released or reclaimed, and carry out the steps that this requires.

    The steps are not recorded: `resource.step` belongs to the open operation. A later visit repeats them.
    """
    services = operation.services._replace(record_step=lambda _visit, _state: True)
    state = replace(operation.state, physical_id=physical_id, step=None)
    steps = operation._replace(services=services, state=state)
    return observe_and_advance(steps, lambda: replace(context, step=state.step or ""))


def _is_changing(seen: Observation) -> bool:
    return seen.exists and not seen.error and not seen.ready
