"""Carry out one step: the plugin acts, then looks. No transaction is open here.

What comes back is the outcome and the resource as it is now; `operations/reconcile/batch.py` writes both
down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.engine.check import hooks
from orchestrator.engine.check.change import (
    ADOPT,
    NO_NAMES,
    PREEMPT,
    REISSUE,
    Ask,
    Comparison,
    Decision,
    Desired,
    Evidence,
    Forbidden,
    Recorded,
    Refuse,
    Replace,
    Shadow,
    Update,
    decide_change,
)
from orchestrator.engine.check.decide import (
    Abandon,
    Adopt,
    Compare,
    Create,
    Delete,
    DropRow,
    InvalidState,
    Keep,
    Observe,
    OutcomeUnknown,
    Recreate,
    ReissueUpdate,
    RunAction,
    Step,
)
from orchestrator.engine.check.outcome import (
    Deleted,
    Failed,
    Outcome,
    PreviousOperationEnded,
    Ready,
    Refreshed,
    Replaced,
    Restricted,
    Unchanged,
    Unhealthy,
    Wait,
    failure_reason,
    judge_error,
    judge_observation,
)
from orchestrator.engine.check.property_diff import as_stored, needs_other_type, with_drift
from orchestrator.errors import ProviderError, ProviderSilent, Superseded
from orchestrator.operations.reconcile.action_steps import run_action_step
from orchestrator.operations.reconcile.desired_state import PropertyResolution
from orchestrator.operations.resource_context.state import (
    OperationNotRecorded,
    ResourceState,
    StepResult,
    in_progress_event_written,
    merged_requirements,
    observation_from_state,
    output_digest,
)
from orchestrator.resources.base import NOTHING_TYPE, Context, Created, Observation
from orchestrator.store.connections.database import UNREACHABLE

NO_ID = "Resource ID was not provided."
REPAIRED_REASON = "Update status to COMPLETE for FAILED resource neither update nor replace."


class StepExecutor(PropertyResolution):
    """Carries out what was decided for one resource."""

    def execute(self, step: Step, retries_left: int) -> StepResult:
        """Do what was decided and look; errors of the type become outcomes."""
        if self.visit.kind == "cleanup":
            self.known.action = "DELETE"
        try:
            done = self._abort_if_stack_failed(self._do(step, retries_left))
            if self._is_side_step(step) and isinstance(done.outcome, Ready):
                return replace(done, outcome=PreviousOperationEnded(done.outcome.observation))
            return done
        except (Superseded, OperationNotRecorded, *UNREACHABLE):  # nobody's fault, and no end of anything
            raise
        except Exception as error:
            outcome = self._judge_error(error, retries_left)
            if isinstance(outcome, Failed):
                outcome = self._earlier_operation_pending(step, retries_left) or outcome
            return StepResult(
                outcome,
                self.known,
                started=not self.begun and not in_progress_event_written(self.visit, self.known),
            )

    def _do(self, step: Step, retries_left: int) -> StepResult:
        known = self.known
        match step:
            case Create(wait_seconds=seconds):
                return self._create(seconds, retries_left)
            case Adopt():
                return self._adopt()
            case Observe():
                return self._continue(retries_left)
            case Compare():
                return self._compare()
            case ReissueUpdate():
                return self._reissue_update()
            case Recreate():
                ctx, physical_id = self.context("DELETE"), known.physical_id or ""
                self.kind.delete(ctx, physical_id)
                seen = self.kind.observe(ctx, physical_id)
                if seen.exists:
                    return StepResult(Wait(seen.retry_after, "removing what went wrong", discard=True), known)
                known.physical_id = known.op = known.reference_id = None
                known.data, known.attributes, known.given_metadata = {}, {}, None
                return self._create(0.0, retries_left)
            case Delete(look_first=look_first, wait_seconds=seconds):
                return self._delete(look_first, seconds, retries_left)
            case DropRow(retained=retained):
                known.action = "DELETE"
                return StepResult(Deleted(silent=not retained), known)
            case OutcomeUnknown(reason=reason):
                return StepResult(Failed(failure_reason("OutcomeUnknown", self.resource.name, reason)), known)
            case RunAction(action=action, ask=ask):
                return run_action_step(self, action, ask=ask)
            case InvalidState(reason=reason):
                known.action = self.visit.act or known.action
                if known.action == "CHECK":  # what failed to be made fails it
                    return StepResult(Unhealthy(reason, left_alone=not self.resource.never_created), known)
                text = failure_reason("Error", self.resource.name, reason)
                return StepResult(Unhealthy(text, left_alone=True), known)
            case Keep() | Abandon():
                return StepResult(Unchanged(), known)

    def _abort_if_stack_failed(self, done: StepResult) -> StepResult:
        """Give up what is still waited for when the stack has given up: it failed, or was cancelled."""
        visit, known, outcome = self.visit, self.known, done.outcome
        over = visit.halted and visit.stack.status != "IN_PROGRESS"
        if not over or not isinstance(outcome, Wait) or outcome.retried or not self._can_cancel():
            return done
        assert known.op is not None
        reason = f"{known.op} aborted: {self._cancel(known.op)}"
        return StepResult(Failed(failure_reason("Error", self.resource.name, reason)), known)

    def _can_cancel(self) -> bool:
        known, kind = self.known, self.kind
        return kind.can_cancel and known.op in kind.preemptible and known.physical_id is not None

    def _cancel(self, action: str) -> str:
        return self.kind.cancel(self.context(action), self.known.physical_id or "")

    def _judge_error(self, error: Exception, retries_left: int) -> Outcome:
        name, count = self.resource.name, self.visit.retry_count
        return judge_error(error, name=name, retries_left=retries_left, retry_count=count)

    def _earlier_operation_pending(self, step: Step, retries_left: int) -> Wait | None:
        """Return the wait for what an earlier try asked for, when to ask for it again was refused and it goes
        on: that is no end of it (docs/internals/protocol.md rule 1). Once it has ended, the answer to asking
        again counts.
        """
        if (
            not isinstance(step, RunAction | ReissueUpdate)
            or self.resource.op is None
            or not self.known.unanswered
        ):
            return None
        try:
            seen = self.kind.observe(self.context(self.known.action), self.known.physical_id or "")
        except ProviderError as error:
            outcome = self._judge_error(error, retries_left)
            return outcome if isinstance(outcome, Wait) else None
        if seen.ready or seen.error or not seen.exists:
            return None
        return Wait(seen.retry_after, seen.reason or "state changed")

    def _is_side_step(self, step: Step) -> bool:
        """Whether a step is not what the traversal is there for: that comes after it."""
        match step:
            case RunAction(action=action):
                return action != self.visit.act
            case Create() | Observe() | ReissueUpdate() | Recreate():
                return self.visit.act is not None
        return False

    def _create(self, seconds: float, retries_left: int) -> StepResult:
        known, kind = self.known, self.kind
        if self._type_changed():  # created for an older definition: cleanup finds and deletes the result
            return StepResult(Replaced(), known)
        started = known.op is None
        if kind.calls_out and not started:  # as it was begun, for whichever definition
            ctx = self.context("CREATE")
            found = kind.find(ctx, ctx.token)
            if found is not None:
                known.physical_id = found
                self._grant_access(ctx, Created(found))
                return self._continue(retries_left)
            if seconds > 0:
                return StepResult(Wait(seconds, "an earlier request for it may still be carried out"), known)
        external = self._resolve()
        if external is not None:
            return self._adopt_external(external)
        if started:
            known.attempt, known.action = known.attempt + 1, "CREATE"
            if kind.calls_out:
                self.open_operation()
        known.op = "CREATE"
        if kind.calls_out and not self.begun:  # looking took its time: is it still ours to make?
            self.open_operation()
        self._send_create(self.context("CREATE"))
        return self._judge(self._observe(), retries_left, started=started and not kind.calls_out)

    def _send_create(self, ctx: Context) -> None:
        """Send the create. Until it is answered, it may be carried out at any time."""
        known = self.known
        known.unanswered = self.kind.calls_out
        try:
            created = self.kind.create(ctx, known.properties)
        except ProviderError as error:
            known.unanswered = isinstance(error, ProviderSilent)  # a refusal is an answer
            raise
        known.unanswered = False
        known.physical_id, known.data = created.physical_id, created.data
        known.secret = known.secret or created.secret
        self._grant_access(ctx, created)

    def _grant_access(self, ctx: Context, made: Created) -> None:
        """Let in whoever has what the type says."""
        grant = made.access or self.kind.grants(ctx, made.physical_id)
        if grant is not None:
            self.surroundings.grant_access(self.resource.id, grant)

    def _delete(self, look_first: bool, seconds: float, retries_left: int) -> StepResult:
        known = self.known
        started = known.op != "DELETE"
        if known.physical_id is None and look_first:
            ctx = self.context("DELETE")
            found = self.kind.find(ctx, ctx.token)
            if found is None:
                if seconds > 0:
                    return StepResult(
                        Wait(seconds, "an earlier request for it may still be carried out"), known
                    )
                return StepResult(Deleted(), known, started=True)
            known.physical_id = found
        known.op = "DELETE"
        if started and self.kind.calls_out:
            self.open_operation()
        ctx, physical_id = self.context("DELETE", 0.0 if started else None), known.physical_id or ""
        self.kind.delete(ctx, physical_id)
        seen = self.kind.observe(ctx, physical_id)
        if not seen.exists and self.kind.needs_lease:
            self.surroundings.revoke_access(self.resource.id)
            if (users := self.users()) is not None:
                users.release()
        return self._judge(seen, retries_left, started=started and not self.kind.calls_out, deleting=True)

    def _judge(
        self, seen: Observation, retries_left: int, *, started: bool, deleting: bool = False
    ) -> StepResult:
        known = self.known
        outcome = judge_observation(
            seen,
            name=self.resource.name,
            deleting=deleting,
            retries_left=retries_left,
            retry_count=self.visit.retry_count,
        )
        if isinstance(outcome, Ready):
            self.take(seen)
        return StepResult(outcome, known, started)

    def _observe(self) -> Observation:
        known, was_open = self.known, self.resource.op in ("CREATE", "UPDATE")
        action = "UPDATE" if known.op == "UPDATE" else "CREATE"
        return self.kind.observe(self.context(action, None if was_open else 0.0), known.physical_id or "")

    def _continue(self, retries_left: int) -> StepResult:
        """Look how an open operation does; one that was begun for another definition is followed by ours."""
        known, inputs = self.known, sorted(self.visit.inputs)
        done = self._judge(self._observe(), 0 if known.op == "UPDATE" else retries_left, started=False)
        outcome = done.outcome
        if isinstance(outcome, Wait) and not outcome.retried and known.op in self.kind.adjustable:
            return done if self._is_current() else self._reissue_update()
        if isinstance(outcome, Wait) and not outcome.retried and known.op in self.kind.preemptible:
            if self._is_current():
                return done
            if isinstance(decide_change(self._comparison(known), PREEMPT), Replace):
                self._cancel(known.op)
                return replace(done, outcome=Replaced())
            known.value_digest = output_digest(known)  # nobody need wait for it any more
            return replace(
                done,
                outcome=PreviousOperationEnded(
                    observation_from_state(known, "Given up for a newer template")
                ),
            )
        if isinstance(outcome, Failed) and not self._is_current():
            return replace(
                done, outcome=PreviousOperationEnded(observation_from_state(known), outcome.reason)
            )
        if not isinstance(outcome, Ready):
            return done
        if not self._is_current():
            return replace(done, outcome=PreviousOperationEnded(outcome.observation))
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([data.value_digest or "" for data in inputs])
        return done

    def _is_current(self) -> bool:
        """Whether what was begun is what is wanted now, with what its requirements hand on now."""
        resource, definition = self.resource, self.visit.definition
        if definition is None or resource.definition_id != definition.id:
            return False
        begun_with = dict(zip(resource.requires, resource.input_digests, strict=True))
        return all(begun_with.get(data.id) == (data.value_digest or "") for data in self.visit.inputs)

    def _compare(self) -> StepResult:
        """Compare an existing resource with its definition, and carry out the decision."""
        before = replace(self.known)
        case = self._comparison(before)
        decision = decide_change(case)
        while isinstance(decision, Ask):
            case = self._with_fact(case, decision, before)
            decision = decide_change(case)
        return self._carry_out(decision, before)

    def _comparison(self, before: ResourceState) -> Comparison:
        """Return what is known before anything is evaluated or observed."""
        visit, resource = self.visit, self.resource
        desired = Desired(resource.kind)
        if visit.definition is not None:
            wanted = self._wanted_type()
            shadowed = wanted == NOTHING_TYPE and visit.definition.body["type"] != NOTHING_TYPE
            desired = Desired(wanted, shadowed)
        return Comparison(
            Recorded(
                resource.name,
                resource.type,
                resource.kind,
                resource.action,
                resource.status,
                before.physical_id,
                before.properties,
                before.metadata,
            ),
            desired,
            self.kind,
            converge=visit.stack.converge,
            restricted=hooks.restricted(visit) if visit.hooks else NO_NAMES,
        )

    def _with_fact(self, case: Comparison, ask: Ask, before: ResourceState) -> Comparison:
        """Return the comparison with the fact that was asked for."""
        known, evidence = self.known, case.evidence
        match ask.fact:
            case "definition":
                external = self._resolve()
                if external is None and known.stood_in_for:
                    self._unshadow()
                after = as_stored(known.properties)
                return case._replace(
                    desired=case.desired._replace(
                        properties=after, metadata=known.metadata, external_id=external
                    )
                )
            case "health":
                ctx = self.context(self.resource.action, 0.0)
                healthy = self.kind.is_healthy_after_failure(ctx, known.physical_id or "")
                return case._replace(evidence=evidence._replace(healthy=healthy))
            case "observation":
                seen = self._refresh_from_provider(before, case.desired.properties or {})
                recorded = case.recorded._replace(properties=before.properties)
                return case._replace(recorded=recorded, evidence=evidence._replace(observation=seen))
            case "feasibility":
                known.secret = known.secret or before.secret
                ctx = self.context("UPDATE", 0.0)
                must_replace = self.kind.must_replace(ctx, known.physical_id or "", known.properties)
                return case._replace(evidence=evidence._replace(feasible=not must_replace))

    def _carry_out(self, decision: Decision, before: ResourceState) -> StepResult:
        known, wanted = self.known, self.wanted
        match decision:
            case Keep() if wanted is not None and wanted.external_id is not None:
                return self._keep_external(before)
            case Keep():
                known.secret = known.secret or before.secret
                known.properties = before.properties
                return self._settle_unchanged(before)
            case Update(changed=changed):
                return self._update(changed, before)
            case Shadow():
                return self._shadow()
            case Refuse(message=message):
                reason = failure_reason("NotSupported", self.resource.name, message)
                return StepResult(Failed(reason), before)
            case Forbidden(action=action):
                return StepResult(Restricted(action), before)
        return StepResult(Replaced(), before)

    def _refresh_from_provider(self, before: ResourceState, after: Mapping[str, Any]) -> Observation:
        """Observe the resource, so that changes made by others count as differences."""
        ctx = replace(self.context("CHECK", 0.0), properties=before.properties)
        seen = self.kind.observe(ctx, before.physical_id or "")
        if seen.exists and not seen.error:
            if seen.ready:
                self.take(seen)
            before.properties = with_drift(self.kind, before.properties, after, seen)
        return seen

    def _settle_unchanged(self, before: ResourceState) -> StepResult:
        """Settle what is as it is wanted; its row is written when it did not say so."""
        known, resource = self.known, self.resource
        if resource.status == "COMPLETE" and known.value_digest == before.value_digest:
            return StepResult(Unchanged(), known)
        if resource.status == "FAILED":
            return StepResult(Refreshed(observation_from_state(known, REPAIRED_REASON)), known)
        known.action = "UPDATE"
        return StepResult(Refreshed(observation_from_state(known)), known)

    def _reissue_update(self) -> StepResult:
        """Send an update again whose fate is unknown, for the current definition."""
        before = replace(self.known)
        case = self._comparison(before)._replace(restricted=NO_NAMES)
        decision = decide_change(case, REISSUE)
        while isinstance(decision, Ask):
            self._resolve()
            desired = case.desired._replace(properties=as_stored(self.known.properties))
            case = case._replace(desired=desired)
            decision = decide_change(case, REISSUE)
        if isinstance(decision, Update):
            return self._update(decision.changed, before)
        return StepResult(Replaced(), before)

    def _type_changed(self) -> bool:
        """Whether the definition is of another type by now."""
        return needs_other_type(self.resource.kind, self._wanted_type())

    def _wanted_type(self) -> str:
        """Return the name of what is to carry the definition out."""
        definition = self.visit.definition
        assert definition is not None
        name: str = definition.body.get("runs_as") or definition.body["type"]
        return name

    def _shadow(self) -> StepResult:
        """Leave a thing alone that OS::Heat::None now stands for: it never changes, and has no attributes.

        The row stays its type's, so that what deletes it deletes the thing
        (docs/internals/resource-types.md §A4).
        """
        known, inputs = self.known, sorted(self.visit.inputs)
        assert self.visit.definition is not None
        before = known.value_digest
        known.attributes, known.reference_id, known.stood_in_for = {}, None, True
        known.value_digest = output_digest(known)
        known.definition_id = self.visit.definition.id
        known.requires = tuple([data.id for data in inputs])
        known.input_digests = tuple([data.value_digest or "" for data in inputs])
        if before == known.value_digest and self.resource.status == "COMPLETE":
            return StepResult(Unchanged(), known)
        known.action = "UPDATE"
        return StepResult(Refreshed(observation_from_state(known)), known)

    def _unshadow(self) -> None:
        """Look at a thing again whose own type is back."""
        self.known.stood_in_for = False
        self.take(self.kind.observe(self.context("CHECK", 0.0), self.known.physical_id or ""))

    def _update(self, changed: frozenset[str], before: ResourceState) -> StepResult:
        known, kind = self.known, self.kind
        known.action = "UPDATE"
        narrowed = known.requires, known.input_digests
        # Until it is done it may still stand on what it was built with.
        known.requires, known.input_digests = merged_requirements(before, known)
        known.op = "UPDATE"
        if kind.calls_out:
            self.open_operation()
        if changed:
            ctx = self.context("UPDATE", 0.0)
            known.unanswered = kind.calls_out
            made = kind.update(ctx, known.physical_id or "", known.properties, changed)
            known.unanswered = False
            known.physical_id, known.secret = made.physical_id, known.secret or made.secret
            if made.data:
                known.data = made.data
            self._grant_access(ctx, made)
        done = self._judge(self._observe(), 0, started=not kind.calls_out)
        if isinstance(done.outcome, Ready):
            known.requires, known.input_digests = narrowed
        return done

    def _keep_external(self, before: ResourceState) -> StepResult:
        """Keep an external resource; only what it requires is recorded anew."""
        return StepResult(
            Unchanged(),
            replace(
                before,
                requires=self.known.requires,
                input_digests=self.known.input_digests,
                definition_id=self.known.definition_id,
            ),
        )

    def _adopt_external(self, physical_id: str) -> StepResult:
        """Take a thing that others made for the resource: it is looked at, and nothing is asked of it."""
        known = self.known
        known.physical_id, known.action = physical_id, "CHECK"
        known.attempt = max(known.attempt, 1)
        seen = self.kind.observe(self.context("CHECK", 0.0), physical_id)
        if not seen.exists:
            seen = replace(seen, exists=True, error=seen.error or f"there is no {physical_id}")
        return self._judge(replace(seen, ready=True), 0, started=True)

    def _adopt(self) -> StepResult:
        """Take over what an adopted stack has: it is looked at, and nothing is asked of it."""
        known, name, physical_id = self.known, self.resource.name, self.known.physical_id
        opened = self.cipher.open(self.resource.sealed.encode()) if self.resource.sealed else {}
        metadata, known.action = known.metadata, "ADOPT"
        started = not in_progress_event_written(self.visit, known)
        self._resolve()
        secret = known.secret or opened.get("secret", bool(opened))
        known.metadata, known.secret = metadata or known.metadata, True  # until it is known to be none
        if physical_id is None:
            return StepResult(Failed(failure_reason("Exception", name, NO_ID)), known, started)
        try:
            seen = self.kind.observe(self.context("CHECK", 0.0), physical_id)
        except LookupError as error:
            reason = f"Its resource_data do not say {error}."
            return StepResult(Failed(failure_reason("Exception", name, reason)), known, started)
        case = self._comparison(known)._replace(evidence=Evidence(observation=seen))
        if isinstance(decide_change(case, ADOPT), Replace):
            return StepResult(Replaced(), known)
        if not seen.exists:
            seen = replace(seen, exists=True, error=seen.error or f"There is no {physical_id}.")
        known.secret = secret
        done = self._judge(replace(seen, ready=True), 0, started=started)
        known.secret = known.secret or not isinstance(done.outcome, Ready)
        return done
