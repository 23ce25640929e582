"""Check, suspend, resume or copy what is there (docs/internals/engine-semantics.md §10)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.check.outcome import Failed, Ready, Unhealthy, Wait, judge_act
from orchestrator.operations.resource_context.operation import ResourceOperation
from orchestrator.operations.resource_context.state import StepResult, observation_from_state
from orchestrator.resources.base import Observation

JUST_STARTED_SECONDS = 0.001  # since it was asked for: a look that nothing was asked for before is at 0


def run_action_step(dealing: ResourceOperation, action: str, *, ask: bool) -> StepResult:
    """Do an action that brings the resource to no other template; `ask` unless that was done already.

    Where no provider has anything to do, it is done at once.
    """
    known, kind = dealing.known, dealing.kind
    known.action = action
    if action == "CHECK" and not kind.has_provider_check:
        return _check(dealing)
    started = known.op != action
    able = {"SNAPSHOT": kind.can_copy, "CHECK": True}.get(action, kind.can_pause)
    if kind.calls_out and not able:
        if action == "SNAPSHOT":
            _snapshot_resource(dealing)
        return _judge(dealing, observation_from_state(known), started=True)
    known.op = action
    if kind.calls_out and started:
        dealing.open_operation()
    token = _snapshot_resource(dealing) if action == "SNAPSHOT" else None
    if action != "SNAPSHOT" and ask:
        _request_action(dealing, action)
    ctx = dealing.context(action, JUST_STARTED_SECONDS if started else None)
    seen = kind.observe(replace(ctx, token=token or ctx.token), known.physical_id or "")
    return _judge(dealing, seen, started=started and not kind.calls_out)


def _check(dealing: ResourceOperation) -> StepResult:
    known, kind = dealing.known, dealing.kind
    if not kind.can_check:
        reason = f"CHECK not supported for {dealing.resource.type}"
        return StepResult(Ready(observation_from_state(known, reason)), known)
    seen = kind.observe(dealing.context("CHECK", 0.0), known.physical_id or "")
    if seen.exists and not seen.error and not seen.ready:
        seen = replace(seen, error=seen.reason or "It is not ready.", error_kind="Error")
    return _judge(dealing, seen, started=True)


def _request_action(dealing: ResourceOperation, action: str) -> None:
    """Ask for a pause or its end, or a check. Until that is answered, it may not have been asked for."""
    known, kind = dealing.known, dealing.kind
    known.unanswered = kind.calls_out
    verbs = {"SUSPEND": kind.suspend, "RESUME": kind.resume, "CHECK": kind.check}
    verbs[action](dealing.context(action, 0.0), known.physical_id or "")
    known.unanswered = False


def _snapshot_resource(dealing: ResourceOperation) -> str:
    """Ask for the copy of a SNAPSHOT unless that is known to have been done; return its token."""
    known, kind, visit = dealing.known, dealing.kind, dealing.visit
    token, kept = dealing.keep_copy(visit, known, f"{dealing.resource.uuid}-s{visit.traversal}", None)
    if visit.act == "SNAPSHOT" and kept is None and kind.can_copy:
        ctx = replace(dealing.context("SNAPSHOT", 0.0), token=token)
        dealing.keep_copy(visit, known, token, kind.snapshot(ctx, known.physical_id or ""))
    return token


def _judge(dealing: ResourceOperation, seen: Observation, *, started: bool) -> StepResult:
    known = dealing.known
    outcome = judge_act(seen, name=dealing.resource.name, physical_id=known.physical_id or "")
    aside = known.action != dealing.visit.act
    if aside and isinstance(outcome, Wait) and known.action in dealing.kind.preemptible:
        if dealing.kind.can_cancel:
            dealing.kind.cancel(dealing.context(known.action), known.physical_id or "")
        outcome = Ready(observation_from_state(known))  # nobody need wait for it any more
    elif isinstance(outcome, Ready):
        dealing.take(seen)
    elif isinstance(outcome, Failed) and known.action == "CHECK":
        outcome = Unhealthy(outcome.reason)
    return StepResult(outcome, known, started)
