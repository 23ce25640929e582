"""Create, delete and restore snapshots of a stack (docs/internals/rest-api.md §11,
docs/internals/engine-semantics.md §10).

A snapshot is a revision and a copy of each resource whose type supports copies. It is created by a traversal
of its own. A restore is an update to that revision in which the copied resources are created from their
copies: the type defines how, and the stored template contains it.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import ActionInProgress, InvalidRequest, LimitExceeded, NotFound, NotSupported
from orchestrator.json_types import JsonMapping
from orchestrator.operations import queued_actions
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.keystone.authority import authority_for_update
from orchestrator.operations.quotas.room import STORED_BYTES
from orchestrator.operations.request_body import read_object
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.snapshots.restored_template import with_restored_resources
from orchestrator.operations.validation.request import kinds_of
from orchestrator.operations.validation.types_of_author import authorize_return
from orchestrator.store import snapshots
from orchestrator.store.access import quotas
from orchestrator.store.snapshots import SnapshotRow
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.stacks.stored_bytes import of_revision, of_snapshot
from orchestrator.store.traversals import children
from orchestrator.store.traversals import queued_actions as stored_queued_actions
from orchestrator.store.traversals.accept import accept_restore
from orchestrator.template.environment import Environment
from orchestrator.template.group_template import is_members
from orchestrator.template.parse import Limits
from orchestrator.template.template import load


class SnapshotNotFound(NotFound):
    """The stack has no such snapshot."""

    heat_type = "SnapshotNotFound"

    def __init__(self, snapshot_id: str, stack_name: str) -> None:
        """Name both, in Heat's words."""
        self.kind, self.name = "Snapshot", snapshot_id
        message = f"The Snapshot ({snapshot_id}) for Stack ({stack_name}) could not be found."
        Exception.__init__(self, message)


@dataclass(frozen=True, slots=True)
class StartedSnapshot:
    """A snapshot in progress, and the messages to send."""

    snapshot: SnapshotRow
    messages: list[CheckMessage]


def take(context: OperationContext, stack: StackRow, body: Body, *, wait: bool = False) -> StartedSnapshot:
    """Start a snapshot of an idle stack; with `wait` queue it until the stack is idle.

    Raises:
        NotFound: the stack is deleted.
        InvalidRequest: the body is missing, or the name is not valid.
        ActionInProgress: the stack is not idle, and the snapshot is not queued.
        ActionQueued: another action is queued.
        LimitExceeded: it has the maximum number of snapshots, or the project its stored bytes.
    """
    name = _name(body)
    quota = context.quota("snapshots_per_stack")
    size = context.require_room(STORED_BYTES, of_snapshot(context.database, stack.id))
    with context.database.borrow(hot=False) as db, db.transaction():
        ground = snapshots.lock(db, stack.id)
        if ground is None:
            raise NotFound("Stack", stack.name)
        queued = None
        if ground.status == "IN_PROGRESS":
            if not wait:
                raise ActionInProgress(stack.name, ground.action)
            if not queued_actions.require_queueable(
                stack.name, "SNAPSHOT", ground.action, ground.queued_action
            ):
                queued = stored_queued_actions.queued_snapshot(db, stack.id)
        if queued is None and 0 <= quota <= ground.snapshots:
            raise LimitExceeded(
                f"You have reached the maximum snapshots per stack, {quota}. Please delete some snapshots."
            )
        messages = []
        if queued is not None:
            uuid = queued.uuid
        elif ground.status == "IN_PROGRESS":
            reason = queued_actions.reason_of("SNAPSHOT", ground.action)
            uuid = stored_queued_actions.queue_snapshot(db, stack.id, ground.revision_id, name, reason)
        else:
            uuid, opened = snapshots.begin(db, stack.id, ground, name)
            messages = [opened.message]
        quotas.enforce(db, size)
    return StartedSnapshot(find(context, stack, str(uuid)), messages)


def find(context: OperationContext, stack: StackRow, snapshot_id: str) -> SnapshotRow:
    """Return a snapshot of the stack.

    Raises:
        SnapshotNotFound: it has no snapshot of that id.
    """
    snapshot = snapshots.get(context.database, stack, snapshot_id)
    if snapshot is None:
        raise SnapshotNotFound(snapshot_id, stack.name)
    return snapshot


def remove(context: OperationContext, stack: StackRow, snapshot_id: str) -> None:
    """Mark a snapshot for deletion; the sweep deletes it and its copies.

    Raises:
        SnapshotNotFound: the stack has no snapshot of that id.
        NotSupported: it is in progress.
    """
    snapshot = find(context, stack, snapshot_id)
    if snapshot.action == "CREATE":
        with context.database.borrow(hot=False) as db:
            removed = snapshots.remove(db, snapshot.id)
        if not removed and find(context, stack, snapshot_id).action == "CREATE":
            raise NotSupported("Deleting in-progress snapshot")


def template_size(context: OperationContext, stack: StackRow, snapshot_id: str) -> int:
    """Return the size of a snapshot's template in bytes.

    Raises:
        SnapshotNotFound: the stack has no snapshot of that id.
    """
    revision = revisions.of_stack(context.database, stack, find(context, stack, snapshot_id).revision_id)
    return 0 if revision is None else revisions.content_size(context.database, revision.template_hash)


def restore(context: OperationContext, stack: StackRow, snapshot_id: str) -> list[CheckMessage]:
    """Start the restore of a stack from a snapshot, superseding an operation in progress. The caller submits
    the content again, and is its author.

    Raises:
        Forbidden, MissingCredential, Unavailable: the caller cannot delegate their rights.
        NotFound: the stack is deleted.
        SnapshotNotFound: it has no snapshot of that id.
        NotSupported: the snapshot is not complete, or the stack is suspended.
        Forbidden: the caller may not use a type of the snapshot.
        LimitExceeded: the project has its maximum of stored bytes.
    """
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    if stack.action == "SUSPEND":
        raise NotSupported("Updating a stack when it is suspended")
    snapshot = find(context, stack, snapshot_id)
    revision = revisions.of_stack(context.database, stack, snapshot.revision_id)
    if (snapshot.action, snapshot.status) != ("CREATE", "COMPLETE") or revision is None:
        raise NotSupported("Restoring incomplete snapshot")
    returned = authorize_return(context, stack, revision)
    changed = _restored_template(context, stack, snapshot, revision)
    template = None if changed is None else orjson.dumps(changed)
    added = of_revision(context.database, stack.id, revision.number) + len(template or b"")
    size = context.require_room(STORED_BYTES, added)
    with (
        authority_for_update(context, stack, needs_admin=returned.needs_admin) as authority,
        context.database.borrow(hot=False) as db,
        db.transaction(),
    ):
        opened = accept_restore(
            db,
            stack.id,
            snapshot.id,
            template=template,
            created_by=context.caller.user,
            authority=authority,
            denied_types=returned.denied_types,
        )
        children.mark_stale(db, stack.id)
        quotas.enforce(db, size)
    if opened is None:  # the snapshot or the stack was deleted in between
        raise NotSupported("Restoring incomplete snapshot")
    return [opened.message]


def _name(body: Body) -> str | None:
    text = body.read()
    if not text.startswith(b"{"):
        raise InvalidRequest("The body of a snapshot request must be a JSON object; {} is accepted.")
    name = read_object(text).get("name")
    if name is not None and not isinstance(name, str):
        raise InvalidRequest("The 'name' of a snapshot must be a string.")
    return name


def _restored_template(
    context: OperationContext, stack: StackRow, snapshot: SnapshotRow, revision: RevisionRow
) -> JsonMapping | None:
    """Return the revision's template with copied resources created from their copies; None if it does not
    change.
    """
    copies = list(snapshots.copies(context.database, snapshot.id, kept_only=True))
    if not copies:
        return None
    text = b"".join(revisions.read_content(context.database, revision.template_hash))
    if is_members(text):  # the group's members are created again instead
        return None
    document = dict(orjson.loads(text))
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    values = stored_values(dict(revision.parameters), revision.sealed, context.cipher, pseudo)
    template = load(document, Limits.of_stored(context.settings), values)
    kinds = kinds_of(context, _environment(revision), {}, fetching=False, authorizes=False)
    return with_restored_resources(document, template, kinds, copies, context.types, context.cipher)


def _environment(revision: RevisionRow) -> Environment:
    return Environment(resource_registry=revision.environment.get("resource_registry") or {})
