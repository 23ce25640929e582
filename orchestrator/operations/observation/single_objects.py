"""Observation of a resource by a request for its object."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from orchestrator.engine.observation.judgement import Evidence
from orchestrator.operations.observation.contexts import full_context
from orchestrator.operations.observation.findings import Findings, evidence_of, recorded_values
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.state import load_state
from orchestrator.operations.runtime.circuit_breaker import GuardedType
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.store.observation import watched
from orchestrator.store.observation.verdicts import Db
from orchestrator.store.observation.watched import Watched


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
    """Observe a resource, and add the result to the findings; None: it has changed since it was read."""
    found = next(iter(watched.visits(db, [item.id])), None)
    if found is None or found.version != item.version:
        return None
    visit = found.visit
    ctx = replace(full_context(engine, db, visit), listed={})
    guarded = GuardedType(type_, engine.breakers, visit)

    def observe() -> Observation:
        try:
            observation: Observation = guarded.observe(ctx, item.physical_id)
        finally:
            guarded.finish()
        return observation

    evidence = evidence_of(observe)
    state = load_state(visit, engine.cipher)
    standing = findings.judge(item, visit, recorded_values(type_, visit, state, ctx), evidence)
    return Seen(evidence, standing.confirmed)
