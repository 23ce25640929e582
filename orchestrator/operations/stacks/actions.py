"""Stack actions: suspend, resume, check, cancel, roll back to a revision (docs/internals/rest-api.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import backoff
from orchestrator.engine.messages import CheckMessage, Message
from orchestrator.errors import ActionInProgress, Conflict, InvalidRequest, NotFound, NotSupported
from orchestrator.operations import queued_actions
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.keystone.authority import authority_for_update, credential_for_operation
from orchestrator.operations.observation import convergence, observation_pass
from orchestrator.operations.quotas.room import STORED_BYTES
from orchestrator.operations.request_body import read_object
from orchestrator.operations.validation.types_of_author import authorize_return, needs_check
from orchestrator.store.access import idempotency, quotas
from orchestrator.store.keystone import delegated_credentials
from orchestrator.store.stacks import history, revisions
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.stacks.stored_bytes import of_revision
from orchestrator.store.traversals import children, completion, traversals
from orchestrator.store.traversals import queued_actions as stored_queued_actions
from orchestrator.store.traversals.accept import accept_rollback, lock_root, revision_of_number
from orchestrator.store.traversals.traversals import Locked

Action = Callable[[OperationContext, StackRow], Sequence[Message]]


def start_action(
    context: OperationContext, stack: StackRow, body: Body, *, wait: bool = False
) -> Sequence[Message]:
    """Start the action that the body names.

    With `wait` a suspend or a resume is queued until the operation in progress has ended.

    Raises:
        InvalidRequest: it names no action, several, or an unknown one.
        NotFound: the stack is deleted.
        NotSupported: the stack's state does not allow the action.
        ActionInProgress: another operation is in progress, and the action is not queued.
        ActionQueued: another action is queued.
    """
    name = requested_action(body)
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    if name == convergence.ACTION:
        return convergence.converge(context, stack, body).messages
    if name in QUEUEABLE:
        return _suspend_or_resume(context, stack, name.upper(), wait=wait)
    return ACTIONS[name](context, stack)


def requested_action(body: Body) -> str:
    """Return the action that the body names.

    Raises:
        InvalidRequest: it names no action, several, or an unknown one.
    """
    names = list(read_object(body.read()))
    if not names:
        raise InvalidRequest("No action specified")
    if len(names) > 1:
        raise InvalidRequest("Multiple actions specified")
    if names[0] not in {*ACTIONS, *QUEUEABLE, convergence.ACTION}:
        raise InvalidRequest(f"Invalid action {names[0]} specified")
    return names[0]


def cancel_update(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Roll back to the last completed revision; operations in progress finish first.

    The content runs with the credential of its author, as after a failure. A nested stack's, whose
    revisions have no author, counts as submitted by the caller.
    """
    with ExitStack() as cleanup:
        authority, denied = None, None
        if stack.root_id != stack.id:
            good = stack.good_revision_id
            revision = None if good is None else revisions.of_stack(context.database, stack, good)
            returned = None if revision is None else authorize_return(context, stack, revision)
            needs_admin = returned is not None and returned.needs_admin
            denied = None if returned is None else returned.denied_types
            authority = cleanup.enter_context(authority_for_update(context, stack, needs_admin=needs_admin))
        db = cleanup.enter_context(context.database.borrow(hot=False))
        cleanup.enter_context(db.transaction())
        idempotency.record(db, stack.project_id, context.client_token, stack.uuid, stack.name)
        lock_root(db, stack.id, authority)
        running = _lock_in_progress(db, stack, "UPDATE")
        if authority is not None and running.good_revision_id != stack.good_revision_id:
            raise Conflict(f"Stack {stack.name} was changed by another request. Please try again.")
        opened = accept_rollback(
            db,
            stack.id,
            running.good_revision_id,
            created_by=context.caller.user,
            authority=authority,
            denied_types=denied,
            ended="cancelled",
        )
        children.mark_stale(db, stack.id)
    assert opened is not None  # it exists: it was locked just before
    return [opened.message]


def cancel_without_rollback(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Start no further operations; those in progress finish."""
    with context.database.borrow(hot=False) as db, db.transaction():
        running = _lock_in_progress(db, stack, "UPDATE", "CREATE")
        traversals.halt(db, stack.id, running.traversal)
        traversals.enqueue_open_operations(db, stack.id, running.traversal)
        reason = f"Stack {running.action} cancelled"
        ended = completion.end_failed(
            db, stack.id, running.traversal, reason=reason, at_once=True, outcome="cancelled"
        )
    with context.database.borrow(hot=False) as db:
        if ended is not None and ended.queued:
            queued_actions.start_or_drop(db, stack.id)
        # Ordered separately: the end of a child locks the child before its parent's node.
        children.halt_below(db, stack.id, running.traversal)
    return [] if ended is None else ended.messages


def _suspend_or_resume(
    context: OperationContext, stack: StackRow, action: str, *, wait: bool
) -> list[CheckMessage]:
    """Suspend all resources, dependents first, or resume all suspended resources.

    Without effect if the action is in progress already, or was the last action and is complete: a request may
    be repeated. Only a new desired state supersedes an operation in progress (operations/adr/0009).
    """
    with context.database.borrow(hot=False) as db, db.transaction():
        now = traversals.lock(db, stack.id)
        if now is None:
            raise NotFound("Stack", stack.name)
        requested = now.action == action and now.status != "FAILED"
        if requested and now.queued_action in (None, action):
            return []
        if now.status == "IN_PROGRESS":
            if not wait:
                raise ActionInProgress(stack.name, now.action)
            if queued_actions.require_queueable(stack.name, action, now.action, now.queued_action):
                reason = queued_actions.reason_of(action, now.action)
                stored_queued_actions.queue(db, stack.id, action, reason)
            return []
        opened = traversals.start_traversal(db, stack.id, action)
        children.mark_stale(db, stack.id)
    assert opened is not None  # it exists: it is locked
    return [opened.message]


def check(context: OperationContext, stack: StackRow) -> list[Message]:
    """Check all resources, including failed resources.

    A stack at rest that has reached its desired revision gets a CHECK traversal, and so does a stack that was
    never complete, unless operations are open; that CHECK fails. In any other case the resources are observed
    by a pass, which changes neither the action nor the status of the stack. A running check or pass is
    joined. If the credential of the author is not valid any more, the check has the caller's.
    """
    with (
        credential_for_operation(context, stack) as credential,
        context.database.borrow(hot=False) as db,
        db.transaction(),
    ):
        now = traversals.lock(db, stack.id)
        if now is None:
            raise NotFound("Stack", stack.name)
        if now.state == "CHECK_IN_PROGRESS":
            if credential is not None:
                delegated_credentials.discard(db, credential)
            return []
        if credential is not None:
            delegated_credentials.hold(db, credential, stack.id)
        never_complete = now.good_revision_id is None and now.action != "DELETE"
        checked = now.reached or (never_complete and not traversals.has_open_operations(db, stack.id))
        if now.status == "IN_PROGRESS" or not checked:
            text = f"during {now.action}" if now.status == "IN_PROGRESS" else f"of a stack in {now.state}"
            reason = f"Observation of the resources started {text}"
            seconds = backoff.RE_ENQUEUE_SECONDS
            return [*observation_pass.start(db, context.types, stack.id, reason, seconds, credential)]
        opened = traversals.start_traversal(db, stack.id, "CHECK", credential_id=credential)
        children.mark_stale(db, stack.id)
    assert opened is not None  # it exists: it is locked
    return [opened.message]


def _lock_in_progress(db: Connection[TupleRow], stack: StackRow, *actions: str) -> Locked:
    """Lock the stack and return its state, if any of these actions is in progress.

    Raises:
        NotFound: the stack is deleted.
        NotSupported: another action is in progress, or the action has just ended.
    """
    now = traversals.lock(db, stack.id)
    if now is None:
        raise NotFound("Stack", stack.name)
    if now.action not in actions or now.status != "IN_PROGRESS":
        raise NotSupported(f"Cancelling update when stack is {now.state}")
    return now


ACTIONS: Final[Mapping[str, Action]] = {
    "cancel_update": cancel_update,
    "cancel_without_rollback": cancel_without_rollback,
    "check": check,
}
SUSPENDED: Final = "Rolling back a stack when it is suspended"
QUEUEABLE: Final = frozenset({"suspend", "resume"})  # actions that may wait for the end of an operation


def checked_size(context: OperationContext, stack: StackRow, number: int) -> int:
    """Return the size in bytes of the revision whose types a rollback judges; 0 if none have to be judged."""
    revision = history.numbered(context.database, stack, number)
    if revision is None or not needs_check(context, revision):
        return 0
    return revisions.content_size(context.database, revision.template_hash)


def roll_back(context: OperationContext, stack: StackRow, number: int) -> list[CheckMessage]:
    """Start the rollback of a stack to the revision of that number, as a new revision; supersede an operation
    in progress (docs/internals/engine-semantics.md §8, §17). The caller submits the content again, and is its
    author.

    Raises:
        NotFound: the stack is deleted, or has no such revision.
        NotSupported: it is suspended.
        Forbidden: the caller may not use a type of the revision.
        Forbidden, MissingCredential, Unavailable: the caller cannot delegate their rights.
        LimitExceeded: the project has its maximum of stored bytes.
    """
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    if stack.action == "SUSPEND":  # before a credential is created
        raise NotSupported(SUSPENDED)
    revision = history.numbered(context.database, stack, number)
    if revision is None:
        raise NotFound("Revision", str(number))
    returned = authorize_return(context, stack, revision)
    size = context.require_room(STORED_BYTES, of_revision(context.database, stack.id, number))
    with (
        authority_for_update(context, stack, needs_admin=returned.needs_admin) as authority,
        context.database.borrow(hot=False) as db,
        db.transaction(),
    ):
        lock_root(db, stack.id, authority)
        now = traversals.lock(db, stack.id)
        if now is None:
            raise NotFound("Stack", stack.name)
        if now.action == "SUSPEND":
            raise NotSupported(SUSPENDED)
        revision_id = revision_of_number(db, stack.id, number)
        if revision_id is None:
            raise NotFound("Revision", str(number))
        opened = accept_rollback(
            db,
            stack.id,
            revision_id,
            created_by=context.caller.user,
            authority=authority,
            denied_types=returned.denied_types,
        )
        children.mark_stale(db, stack.id)
        quotas.enforce(db, size)
    assert opened is not None  # it exists: it is locked
    return [opened.message]
