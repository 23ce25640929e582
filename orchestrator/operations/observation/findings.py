"""The results of a round: collected by resource, and written if they are news."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from orchestrator import metrics
from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.engine.check.outcome import error_text
from orchestrator.engine.check.visit import ResourceVisit
from orchestrator.engine.observation.differences import Recorded
from orchestrator.engine.observation.drift import IN_SYNC, Drift
from orchestrator.engine.observation.judgement import (
    Evidence,
    Unlisted,
    Unobserved,
    judge,
    unobserved,
    without_accepted,
)
from orchestrator.engine.observation.policies import accepts
from orchestrator.engine.physical_names import physical_name
from orchestrator.errors import AwaitingBudget, Misconfigured, Superseded
from orchestrator.logs import logger
from orchestrator.operations.children.loader import LazyStackContext
from orchestrator.operations.keystone.delegated_credentials import cloud_of_visit
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context import operation
from orchestrator.operations.resource_context.stack_context import StoredStackContext
from orchestrator.operations.resource_context.state import ResourceState, load_state
from orchestrator.operations.runtime.visit_calls import VisitCalls
from orchestrator.operations.software.type_store import DeploymentStore
from orchestrator.resources.base import Context, Observation, ResourceType, Value
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.stack_context import StackLocation
from orchestrator.resources.verbs.contexts import read_context
from orchestrator.store import circuit_breakers
from orchestrator.store.connections.damaged_rows import damage
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.observation import groups, rules, verdicts
from orchestrator.store.observation.groups import Group
from orchestrator.store.observation.verdicts import Db, NewDrift
from orchestrator.store.observation.watched import VersionedVisit, Watched
from orchestrator.template.secret_values import NO_SECRETS

log = logger()

BATCH: Final = 500  # findings written at a time
RENEW_SECONDS: Final = 5.0


def observable(types: Mapping[str, ResourceType], name: str) -> ResourceType | None:
    """Return a type whose objects are observed at a provider, None for all other types."""
    try:
        type_ = types.get(name)
    except Misconfigured:  # reported at the start of the worker
        return None
    if type_ is None or isinstance(type_, NestedType) or not (type_.calls_out and type_.can_check):
        return None
    return type_


def evidence_of(observe: Callable[[], Observation]) -> Evidence:
    """Observe an object; a request that is not sent for lack of capacity proves nothing."""
    try:
        return observe()
    except AwaitingBudget:
        return Unlisted()
    except UNREACHABLE:
        raise  # our own database
    except Exception as error:
        return Unobserved(error_text(error))


def observed(engine: WorkerContext, visit: ResourceVisit, type_: ResourceType, ctx: Context) -> Evidence:
    """Observe the object of a resource by a request; the caller judges an absence after an outage."""

    def observe() -> Observation:
        with VisitCalls(type_, visit, engine.breakers, always=False, doubts=False) as calls:
            context = replace(ctx, calls=calls.provider)
            return calls.run(type_.observe, context, visit.resource.physical_id or "")

    return evidence_of(observe)


def recorded_values(
    type_: ResourceType, found: VersionedVisit, state: ResourceState, ctx: Context
) -> Recorded:
    """Return the values that a resource was built with. A failed update of a stack that has reached its
    desired revision was a repair: it has recorded the same values.
    """
    resource = found.visit.resource
    repaired = found.reached and (resource.action, resource.status) == ("UPDATE", "FAILED")
    return Recorded(
        type_,
        state.properties,
        type_.chosen(ctx),
        state.secrets if state.secret else NO_SECRETS,
        settled=resource.status == "COMPLETE" or repaired,
    )


class RoundResult(NamedTuple):
    """The facts of a complete round."""

    objects: int
    calls: int
    news: bool
    credential_id: int | None = None
    lost: int = 0
    restored: bool = False
    unconfirmed: bool = False  # a verdict needs another observation


class Lease:
    """The lease of a group, renewed from time to time during a round."""

    def __init__(self, db: Db, group: Group) -> None:
        """The lease has just begun."""
        self._db, self._group, self._renewed_at = db, group, time.monotonic()

    def renew(self) -> None:
        """Renew the lease unless it is new.

        Raises:
            Superseded: it is lost.
        """
        if time.monotonic() - self._renewed_at < RENEW_SECONDS:
            return
        if not groups.renew(self._db, self._group):
            raise Superseded("another worker observes the group")
        self._renewed_at = time.monotonic()


class Findings:
    """What a round knows and finds about the resources of its group."""

    def __init__(self, db: Db, group: Group) -> None:
        """Read the deviations that are known."""
        self._db, self._group = db, group
        self.known: Mapping[int, Drift] = verdicts.drifts(db, group)
        self._acceptances = [row.rule for row in rules.listed(db, group.project_id, kind="accept")]
        self._around: dict[int, rules.Surroundings] = {}  # by stack, in this round
        self.with_accepted: set[int] = set()  # resources with accepted differences
        self._new: list[tuple[Watched, Drift]] = []
        self.news = 0
        self.missing = sum(1 for drift in self.known.values() if drift.state == "MISSING")

    def before(self, item: Watched) -> Drift:
        """Return what was known about a resource before the round."""
        return self.known.get(item.id, IN_SYNC)

    def judge(self, item: Watched, visit: ResourceVisit, recorded: Recorded, evidence: Evidence) -> Drift:
        """Add the evidence of an observation; return what it proves."""
        before = self.before(item)
        after_outage = self._group.failing or bool(before.unknown) or self._after_outage(evidence)
        after = judge(recorded, evidence, before, after_outage=after_outage)
        if after.differences and self._acceptances:
            shown = self._without_accepted(visit, after)
            if shown != after:
                self.with_accepted.add(item.id)
                after = shown
        self._add(item, after)
        return after

    def judge_damaged(self, item: Watched, error: Exception) -> None:
        """Add that the rows of a resource cannot be read: its state is not known."""
        log.error("row_damaged", kind="resource", id=item.id, error=damage(error))
        self.add_unobserved([item], damage(error))

    def _after_outage(self, evidence: Evidence) -> bool:
        """Whether the service gave other visits no answer a short time ago. Checked only for absences: each
        already cost a request.
        """
        if not isinstance(evidence, Observation) or evidence.exists:
            return False
        return circuit_breakers.is_in_doubt(self._db, self._group.project_id, self._group.service)

    def _without_accepted(self, visit: ResourceVisit, drift: Drift) -> Drift:
        resource, stack_id, now = visit.resource, visit.stack.id, self._group.round_at
        if stack_id not in self._around:
            self._around |= rules.surroundings(self._db, [stack_id])
        place = self._around[stack_id].place(resource.name, resource.resource_type)
        return without_accepted(
            drift, lambda property_: accepts(self._acceptances, place, property_, now) is not None
        )

    def add_unobserved(self, items: Sequence[Watched], reason: str) -> None:
        """Add resources that were not observed, for a reason that concerns all of them."""
        for item in items:
            self._add(item, unobserved(self.before(item), reason))

    def _add(self, item: Watched, after: Drift) -> None:
        before = self.before(item)
        if after == before:
            return
        self.missing += (after.state == "MISSING") - (before.state == "MISSING")
        self._new.append((item, after))
        if len(self._new) >= BATCH:
            self.write()

    def write(self) -> None:
        """Write the new findings."""
        if not self._new:
            return
        new, self._new = self._new, []
        rows = [NewDrift(item.id, item.version, drift) for item, drift in new]
        written = verdicts.record(self._db, self._group, rows)
        self.news += len(new)
        for item, drift in new:
            if item.id in written and drift.verdict != self.before(item).verdict:
                metrics.count_verdict(item.type_name, drift.verdict)


def full_context(
    engine: WorkerContext, db: Db, visit: ResourceVisit, credential_id: int | None = None
) -> Context:
    """Return the context of any type, with access to the stack and its software. `credential_id` replaces the
    credential of the visit.
    """
    stored_context = StoredStackContext(db, engine.cipher, None, engine.settings.endpoint)
    software = DeploymentStore.of(visit, engine.database, engine.cipher, engine.settings)
    state = load_state(visit, engine.cipher)
    ctx = operation.context(visit, state, "CHECK", 0.0, software, stored_context)
    ctx = replace(ctx, stack_context=LazyStackContext(engine.stacks, visit))
    chosen = visit.credential_id if credential_id is None else credential_id
    cloud = cloud_of_visit(
        engine.database.borrow, engine.cipher, engine.settings, visit.stack.root_id, chosen
    )
    return operation.with_provider_access(ctx, engine.settings, visit.stack.project_id, cloud)


def context_in_list(
    type_: ResourceType,
    visit: ResourceVisit,
    state: ResourceState,
    cloud: Cloud | None,
    listed: Mapping[str, Value],
) -> Context:
    """Return the context of a type with lists, whose observations need the object only."""
    resource, stack = visit.resource, visit.stack
    return read_context(
        name=resource.name,
        physical_name=physical_name(stack.name, resource.name, resource.uuid, type_.physical_name_limit),
        token=f"{resource.uuid}-{resource.attempt}",
        properties=state.properties,
        data=state.data,
        metadata=state.metadata or {},
        secret=state.secret,
        project_id=stack.project_id,
        cloud=cloud,
        location=StackLocation(stack.project_id, stack.name, stack.uuid, resource.name),
        listed=listed,
    )
