"""A round over resources that need a request each. A task observes for a limited time; the next continues."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.engine.observation.judgement import Evidence, Unobserved
from orchestrator.errors import ProviderUnreachable
from orchestrator.operations.observation.contexts import full_context
from orchestrator.operations.observation.findings import (
    Findings,
    Lease,
    RoundResult,
    evidence_of,
    recorded_values,
)
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.state import load_state
from orchestrator.operations.runtime.circuit_breaker import GuardedType
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.store.observation import groups, verdicts, watched
from orchestrator.store.observation.groups import Group
from orchestrator.store.observation.verdicts import Db
from orchestrator.store.observation.watched import Watched

TASK_SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 1.0  # between two tasks of a round: other messages take their turn
UNREACHABLE_IN_A_ROW: Final = 3  # after which the whole group is unknown


class SingleRound:
    """A round over the resources of a group without lists, or a part of it."""

    def __init__(
        self, engine: WorkerContext, db: Db, group: Group, types: Mapping[str, ResourceType]
    ) -> None:
        """Read the resources after those of the last task."""
        self.engine, self.db, self.group, self.types = engine, db, group, types
        self.items = sorted(watched.scan(db, group.project_id, list(types), group.after_id))
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
            evidence = self._observe(item)
            silent = silent + 1 if isinstance(evidence, Unobserved) else 0
            if silent >= UNREACHABLE_IN_A_ROW and isinstance(evidence, Unobserved):
                self.findings.write()
                raise ProviderUnreachable(evidence.reason)
            self.lease.renew()
        self.findings.write()
        verdicts.end_void(self.db, self.group)
        observed = before + len(self.items)
        return RoundResult(observed, observed, bool(self.findings.news))

    def _observe(self, item: Watched) -> Evidence | None:
        """Observe a resource; None: it has changed since it was read."""
        found = next(iter(watched.visits(self.db, [item.id])), None)
        if found is None or found.version != item.version:
            return None
        type_, visit = self.types[item.type_name], found.visit
        ctx = replace(full_context(self.engine, self.db, visit), listed={})
        guarded = GuardedType(type_, self.engine.breakers, visit)

        def observe() -> Observation:
            try:
                observation: Observation = guarded.observe(ctx, item.physical_id)
            finally:
                guarded.finish()
            return observation

        evidence = evidence_of(observe)
        state = load_state(visit, self.engine.cipher)
        self.findings.judge(item, visit, recorded_values(type_, visit, state, ctx), evidence)
        return evidence
