"""A round over resources that need a request each. A task observes for a limited time; the next continues."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from orchestrator.engine.observation.judgement import Evidence, Unobserved
from orchestrator.errors import ProviderUnreachable
from orchestrator.operations.observation.findings import (
    Findings,
    Lease,
    RoundResult,
    full_context,
    observed,
    recorded_values,
)
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.state import load_state
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.observation import groups, verdicts, watched
from orchestrator.store.observation.groups import Group
from orchestrator.store.observation.verdicts import Db
from orchestrator.store.observation.watched import VersionedVisit, Watched

TASK_SECONDS: Final = 20.0
MAX_ITEMS: Final = 1_000  # resources of a task
PAUSE_SECONDS: Final = 1.0  # between two tasks of a round: other messages take their turn
UNREACHABLE_IN_A_ROW: Final = 3  # after which the whole group is unknown


class SingleRound:
    """A round over the resources of a group without lists, or a part of it."""

    def __init__(
        self, engine: WorkerContext, db: Db, group: Group, types: Mapping[str, ResourceType]
    ) -> None:
        """Read the resources after the last task's."""
        self.engine, self.db, self.group, self.types = engine, db, group, types
        self.items = watched.following(db, group.project_id, list(types), group.after_id, MAX_ITEMS)
        self.findings, self.lease = Findings(db, group), Lease(db, group)

    def run(self) -> RoundResult | None:
        """Observe as many resources as the time permits; None: the round is to be continued.

        Raises:
            Superseded: the lease is lost.
            ProviderUnreachable: the service gives no answer.
        """
        before = self.group.objects if self.group.after_id else 0
        until, silent = time.monotonic() + TASK_SECONDS, 0
        for number, item in enumerate(self.items):
            if number and time.monotonic() > until:
                self.findings.write()
                after_id = self.items[number - 1].id
                groups.proceed(self.db, self.group, after_id, before + number, PAUSE_SECONDS)
                return None
            seen = observe_one(self.engine, self.db, self.findings, item, self.types[item.type_name])
            evidence = seen.evidence if seen is not None else None
            silent = silent + 1 if isinstance(evidence, Unobserved) else 0
            if silent >= UNREACHABLE_IN_A_ROW and isinstance(evidence, Unobserved):
                self.findings.write()
                raise ProviderUnreachable(evidence.reason)
            self.lease.renew()
        self.findings.write()
        observed = before + len(self.items)
        if len(self.items) == MAX_ITEMS:
            groups.proceed(self.db, self.group, self.items[-1].id, observed, PAUSE_SECONDS)
            return None
        verdicts.end_void(self.db, self.group)
        # Of all tasks of the round, not of this one only.
        unconfirmed = verdicts.has_unconfirmed(self.db, self.group)
        return RoundResult(observed, observed, bool(self.findings.news), unconfirmed=unconfirmed)


class Seen(NamedTuple):
    """The evidence of an observation, and what it proves."""

    evidence: Evidence
    confirmed: bool

    @property
    def transient(self) -> bool:
        """Whether the provider is changing the object."""
        return isinstance(self.evidence, Observation) and self.evidence.exists and not self.evidence.ready


def observe_one(
    engine: WorkerContext, db: Db, findings: Findings, item: Watched, type_: ResourceType
) -> Seen | None:
    """Observe a resource, and add the result to the findings; None: it has changed since it was read, or is
    in quarantine.
    """
    if reason := engine.quarantine.reason("observation", item.id):
        findings.add_unobserved([item], reason)
        return None
    with engine.quarantine.guarding("observation", item.id):
        return _observe_one(engine, db, findings, item, type_)


def _observe_one(
    engine: WorkerContext, db: Db, findings: Findings, item: Watched, type_: ResourceType
) -> Seen | None:
    found = next(iter(watched.visits(db, [item.id])), None)
    if found is None or found.version != item.version:
        return None
    try:
        return _observed(engine, db, findings, item, type_, found)
    except DAMAGED as error:
        findings.judge_damaged(item, error)
        return None


def _observed(
    engine: WorkerContext,
    db: Db,
    findings: Findings,
    item: Watched,
    type_: ResourceType,
    found: VersionedVisit,
) -> Seen:
    visit = found.visit
    ctx = replace(full_context(engine, db, visit), listed={})
    evidence = observed(engine, visit, type_, ctx)
    state = load_state(visit, engine.cipher)
    drift = findings.judge(item, visit, recorded_values(type_, found, state, ctx), evidence)
    return Seen(evidence, drift.confirmed)
