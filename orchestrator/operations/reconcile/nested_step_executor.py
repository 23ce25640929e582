"""A visit to a nested resource: what its type wants of the child, and how the child is.

Nothing is called and nothing awaited: what is to be done to the child is returned as a `Move`, which
`child_transitions.py` carries out in the transaction that lets the resource's node wait. The child's end
wakes the node, and the next visit reads how it ended (docs/internals/protocol.md rule 12).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.engine.check.change import Ask, Update, decide_change
from orchestrator.engine.check.child_status import (
    ADOPTED,
    ChildState,
    ChildStep,
    child_status,
    flattened,
    split_request,
    with_request,
)
from orchestrator.engine.check.decide import (
    Adopt,
    Compare,
    Create,
    Delete,
    DropRow,
    InvalidState,
    Keep,
    Observe,
    ReissueUpdate,
    RunAction,
    Step,
)
from orchestrator.engine.check.outcome import (
    ChildTransition,
    Deleted,
    Failed,
    Ready,
    Replaced,
    Unchanged,
    Unhealthy,
    failure_reason,
)
from orchestrator.engine.check.property_diff import as_stored
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.operations.children.child_view import StoredChildView
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.reconcile.step_executor import StepExecutor
from orchestrator.operations.resource_context.state import (
    StepResult,
    in_progress_event_written,
    observation_from_state,
    output_digest,
)
from orchestrator.operations.snapshots.restored_template import CHILD
from orchestrator.resources.base import Context, Observation, read_update_policy
from orchestrator.resources.nested_type import NestedType, Pause, SetChild, Settled
from orchestrator.store import snapshots
from orchestrator.store.nodes.repository import CheckConnection
from orchestrator.store.signals import group_resize
from orchestrator.store.traversals import child_reads
from orchestrator.store.traversals.children import ChildWanted
from orchestrator.template.function_view import ParentResourceProxy

CANCELLED = "{} aborted (user triggered cancel)"
CHILD_GONE = "Its stack is gone."


class NestedStepExecutor(StepExecutor):
    """Carries out what was decided for a resource whose thing is a stack."""

    kind: NestedType

    def bind_child(self, db: CheckConnection, stacks: ChildStackLoader) -> NestedStepExecutor:
        """Read the child; `stacks` knows what children are made from."""
        self.db, self.stacks = db, stacks
        fresh = self.resource.attempt == 0  # nothing was ever asked for
        self.child = None if fresh else child_reads.state(db, self.resource.id)
        self.asked, self.known.data = split_request(self.known.data)
        return self

    def execute(self, step: Step, retries_left: int) -> StepResult:
        """Do what was decided; what was asked of the child stays noted beside the type's own notes."""
        done = super().execute(step, retries_left)
        done.known.data = with_request(split_request(done.known.data)[1], self.asked)
        return done

    def _do(self, step: Step, retries_left: int) -> StepResult:
        known = self.known
        match step:
            case Create() | Compare():
                return self._begin()
            case Observe() | ReissueUpdate():
                return self._continue(retries_left)
            case Delete():
                return self._delete_child()
            case DropRow(retained=True) if self.visit.stack.retain and self.child is not None:
                return self._delete_child()  # row by row, nothing of what it made
            case DropRow(retained=retained):
                known.action = "DELETE"
                let_go = self.child.id if retained and self.child is not None else None
                return StepResult(Deleted(silent=not retained, let_go=let_go), known)
            case RunAction(action=action):
                done = self._act(action)
                if action == "CHECK" and isinstance(done.outcome, Failed):
                    return replace(done, outcome=Unhealthy(done.outcome.reason))  # it goes on to the others
                return done
            case Adopt():
                return self._adopt()
            case InvalidState():
                return super()._do(step, retries_left)
        return StepResult(Unchanged(), known)

    # Bringing the child to what is wanted.

    def _begin(self) -> StepResult:
        """Begin to bring the child to what is wanted, unless it is there."""
        known, resource = self.known, self.resource
        before = replace(known)
        case = self._comparison(before)._replace(converge=False, nested=True)
        decision = decide_change(case)
        if not isinstance(decision, Ask):  # of another type now: not evaluated
            return self._carry_out(decision, before)
        external = self._resolve()
        if external is not None:
            message = f"external_id is not supported for {resource.type}, which is a stack"
            return StepResult(Failed(failure_reason("NotSupported", resource.name, message)), before)
        if self.child is None or self.child.gone:
            known.action = "CREATE" if resource.action == "INIT" else "UPDATE"
            return self._advance(0)
        after = as_stored(known.properties)
        decision = decide_change(
            case._replace(desired=case.desired._replace(properties=after, metadata=known.metadata))
        )
        if not isinstance(decision, Keep | Update):
            return self._carry_out(decision, before)
        if isinstance(decision, Keep) and resource.status == "COMPLETE" and self._is_as_asked():
            known.secret = known.secret or before.secret
            return StepResult(Unchanged(), known)
        known.action = "UPDATE"
        return self._advance(0)

    def _is_as_asked(self) -> bool:
        """Whether the child was left as it was asked to be, from the very same definition."""
        visit, resource = self.visit, self.resource
        return (
            not visit.stack.converge
            and visit.stack.action != "RESTORE"
            and visit.definition is not None
            and resource.definition_id == visit.definition.id
            and self.child is not None
            and not self.child.disturbed
            and child_status(self.child, self.asked) == "done"
        )

    def _adopt(self) -> StepResult:
        """Let the child take over what is there inside: it is made by adoption itself."""
        known = self.known
        opened = self.cipher.open(self.resource.sealed.encode()) if self.resource.sealed else {}
        metadata, things = known.metadata, known.data.get(ADOPTED) or {}
        known.action = "ADOPT"
        begun = False
        try:
            self._resolve()
            known.metadata = metadata or known.metadata
            known.secret = known.secret or bool(opened.get("secret", opened))
            known.data = {key: value for key, value in known.data.items() if key != ADOPTED}
            done = self._advance(0, things)
            begun = isinstance(done.outcome, ChildTransition)
        finally:
            if not begun:  # tried again with what it was given
                known.data, known.secret = {**known.data, ADOPTED: things}, True
        return done

    def _continue(self, retries_left: int) -> StepResult:  # noqa: ARG002
        """Go on with what was begun; what was begun for another definition is left for ours."""
        known = self.known
        if (
            self.visit.definition is None
            or self.visit.act is not None
            or self.visit.halted
            or self._is_current()
        ):
            return self._evaluate_child(self.asked.turn if self.asked else 0)
        if self._type_changed():
            return StepResult(Replaced(), known)
        action = known.action
        self._resolve()
        known.action = action
        return self._advance(0)

    def _evaluate_child(self, turn: int) -> StepResult:
        """Judge how the child stands to what was asked of it."""
        known, child = self.known, self.child
        match child_status(child, self.asked):
            case "none" | "done" if self.asked is None:  # nothing was asked of it yet
                return self._advance(0)
            case "running":
                return self._wait(turn)
            case "done":
                return self._advance(turn + 1)
            case "failed":
                assert child is not None
                return self._failed(child)
            case "none":
                return StepResult(Failed(failure_reason("NotFound", self.resource.name, CHILD_GONE)), known)
        if self.visit.halted or self.visit.act is not None:
            message = CANCELLED.format(known.action)
            return StepResult(Failed(failure_reason("Error", self.resource.name, message)), known)
        return self._advance(0)

    def _advance(self, turn: int, things: Mapping[str, Any] | None = None) -> StepResult:
        """Ask the type what is next; a new child takes over the `things` that are there for it."""
        known, kind = self.known, self.kind
        live = self.stacks.child_view(self.db, self.visit, self.child)
        told = kind.step(self._context(), known.properties, live, turn)
        match told:
            case Settled(data=data, metadata=metadata, batched=batched):
                if batched and self.child is not None:
                    group_resize.mark_batched(self.db, self.child.id)
                if data is not None:
                    known.data = data
                if metadata is not None and metadata != (known.metadata or {}):
                    if known.given_metadata is None:
                        known.given_metadata = known.metadata or {}
                    known.metadata = metadata
                return self._settle(live)
            case Pause(seconds=seconds, data=data):
                known.data = data or known.data
                return self._move(ChildStep("pause", self.child, turn=turn, seconds=seconds))
            case SetChild(child=wanted, data=data, keeps_files=keeps_files):
                known.data = data or known.data
        if self.visit.halted:
            message = CANCELLED.format(known.action)
            return StepResult(Failed(failure_reason("Error", self.resource.name, message)), known)
        child = self.child
        fresh = child is None or child.gone
        ready, secret = self.stacks.desired_child(
            self.visit,
            wanted,
            child_uuid=str(uuid.uuid4()) if fresh or child is None else child.uuid,
            name=self.physical_name if fresh or child is None else child.name,
            secret=known.secret,
            parent=self._facade(),
            keeps=child.revision_id if keeps_files and child is not None and not fresh else None,
        )
        if not fresh and child is not None and self.visit.stack.action == "RESTORE":
            ready = self._restored(ready, child)
        if fresh and things is not None:
            ready = replace(ready, adopted=self.cipher.seal(things))
        known.secret = known.secret or secret
        known.physical_id = ready.uuid
        return self._move(ChildStep("create" if fresh else "update", self.child, wanted=ready, turn=turn))

    def _restored(self, ready: ChildWanted, child: ChildState) -> ChildWanted:
        """Return a child as it is to be with what its own snapshot copied made from the copies."""
        kept = snapshots.restored(self.db, self.visit.stack.revision_id, self.resource.name)
        uuid_ = self.cipher.open(kept).get(CHILD) if kept else None
        snapshot_id = None if uuid_ is None else snapshots.complete_snapshot(self.db, child.id, str(uuid_))
        if snapshot_id is None:
            return ready
        return self.stacks.restored(ready, snapshot_id)

    def _facade(self) -> ParentResourceProxy:
        """Return what the child may ask of the resource that it stands for
        (docs/internals/hot-language.md §5.1).
        """
        definition = self.visit.definition
        assert definition is not None
        body, view = definition.body, self._view()
        policy = body.get("update_policy")
        if policy:
            policy = view.resolve(policy, f"resources.{self.resource.name}.update_policy")
        return ParentResourceProxy(
            self.known.metadata,
            str(body.get("deletion_policy") or "Delete").capitalize(),
            policy,
            secret=self.known.secret or view.used_secret,
        )

    def _settle(self, live: StoredChildView) -> StepResult:
        """Take what the child hands on."""
        known, kind, ctx = self.known, self.kind, self._context()
        body = self.visit.definition.body if self.visit.definition else {}
        asked = body.get("asked") or ()
        attributes = kind.child_attributes(ctx, live, asked)
        known.secret = known.secret or live.used_secret
        seen = Observation(
            exists=True,
            attributes=attributes,
            reference_id=kind.child_reference_id(ctx, live),
        )
        self.take(seen)
        return StepResult(Ready(seen), known)

    def _move(self, move: ChildStep) -> StepResult:
        known = self.known
        known.attempt = max(known.attempt, 1)
        started = not in_progress_event_written(self.visit, known)
        known.op = "CREATE" if known.action == "ADOPT" else known.action
        return StepResult(ChildTransition(move), known, started)

    def _wait(self, turn: int) -> StepResult:
        return self._move(ChildStep("wait", self.child, turn=turn))

    def _failed(self, child: ChildState) -> StepResult:
        name = self.resource.name
        told = child_reads.causes(self.db, child)
        if child.action == "CHECK":  # each begins with whose it is, and says so again
            told = [cause.partition(": ")[2] or cause for cause in told]
        found = [flattened(cause, name) for cause in told]
        if not found:
            found = [failure_reason("Error", name, child.reason)]
        shown = "; ".join(found[:10]) + (f"; and {len(found) - 10} more" if len(found) > 10 else "")
        return StepResult(Failed(shown, tuple(found) if len(found) > 1 else ()), self.known)

    def _context(self) -> Context:
        action = "CREATE" if self.known.action == "ADOPT" else self.known.action
        return replace(self.context(action), data=self.known.data, update_policy=self._update_policy())

    def _update_policy(self) -> Mapping[str, Any]:
        """Return the update policy with its defaults.

        Raises:
            InvalidTemplate: with all that is wrong with it.
        """
        given = self.visit.definition.body.get("update_policy") if self.visit.definition else None
        if not given:
            return {}
        name = self.resource.name
        place = f"resources.{name}.update_policy"
        view = self._view()
        policy = view.resolve(given, place) or {}
        self.known.secret = self.known.secret or view.used_secret
        read, faults = read_update_policy(self.kind, policy, path=place)
        if faults:
            told = [Diagnostic(fault.code, f"{fault.path}: {fault.message}", fault.where) for fault in faults]
            raise InvalidTemplate(told)
        return read

    # What is the same for all types.

    def _delete_child(self) -> StepResult:
        known, child = self.known, self.child
        known.action = "DELETE"
        if child is None or child.gone:
            return StepResult(Deleted(), known, started=not in_progress_event_written(self.visit, known))
        if child.action == "DELETE" and known.op == "DELETE":
            match child_status(child, self.asked):
                case "running":
                    return self._wait(0)
                case "failed":
                    return self._failed(child)
        return self._move(ChildStep("delete", child))

    def _act(self, action: str) -> StepResult:
        known, child = self.known, self.child
        asking, aside = known.op != action, action != self.visit.act
        known.action = action
        if child is None or child.gone:
            return StepResult(Failed(failure_reason("NotFound", self.resource.name, CHILD_GONE)), known)
        if asking:
            return self._ask_child(action)
        match child_status(child, self.asked):
            case "running":
                return self._wait(0)
            case "failed" if not aside:
                return self._failed(child)
            case "elsewhere" if not aside and not self.visit.halted:
                return self._ask_child(action)
        known.value_digest = output_digest(known)
        return StepResult(Ready(observation_from_state(known)), known)

    def _ask_child(self, action: str) -> StepResult:
        """Ask the child for an action. The copy that a SNAPSHOT makes of it is its own snapshot, whose id is
        noted before.
        """
        copy = None
        if action == "SNAPSHOT":
            token = f"{self.resource.uuid}-s{self.visit.traversal}"
            copy = uuid.uuid5(uuid.UUID(self.resource.uuid), token)
            self.keep_copy(self.visit, self.known, token, {CHILD: str(copy)})
        return self._move(ChildStep("act", self.child, action=action, wanted=copy))
