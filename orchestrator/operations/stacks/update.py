"""Accept a new template for a stack at any time, superseding an operation in progress
(docs/internals/rest-api.md §6).

PUT replaces the whole request; PATCH starts from the latest accepted revision, even if that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.errors import Conflict, Diagnostic, InvalidRequest, InvalidTemplate, NotFound, NotSupported
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.operations.keystone.authority import authority_for_update
from orchestrator.operations.quotas.room import RESOURCES, STORED_BYTES
from orchestrator.operations.request_body import (
    StackRequest,
    UpdateRequest,
    is_nothing,
    read_object,
    read_update,
)
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.stacks.accepted_template import slices_of
from orchestrator.operations.stacks.create_delete import Accepted, added_bytes, desired_stack
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.operations.validation.request import ValidatedRequest, validate_request
from orchestrator.operations.validation.stored_content import complete_request
from orchestrator.store.access import idempotency, quotas
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children
from orchestrator.store.traversals.accept import Authority, ConcurrentUpdate, StackInsert, accept_update
from orchestrator.store.traversals.traversals import RevisionChanged, StartedTraversal
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

_PARTS: Final = {
    "template", "template_url", "files", "files_container", "environment", "environment_files", "parameters",
}  # fmt: skip
TRIES: Final = 10  # attempts of a PATCH that conflicts with other requests


@dataclass(frozen=True, slots=True)
class ProposedUpdate:
    """A valid update that is not stored yet."""

    requested: UpdateRequest
    request: StackRequest  # with the defaults of a PATCH filled in
    validated: ValidatedRequest
    desired: StackInsert


def update(context: OperationContext, stack: StackRow, body: Body, *, patch: bool = False) -> Accepted:
    """Accept an update of a stack.

    Raises:
        NotFound: the stack is deleted.
        NotSupported: it is suspended.
        InvalidRequest, InvalidTemplate, LimitExceeded: no row was written.
        RevisionChanged: the stack has another revision than the request expects.
    """
    opened, _, warnings = accept(context, stack, body, patch=patch)
    return Accepted(str(stack.uuid), stack.name, [opened.message], warnings)


def is_empty_patch(body: Body) -> bool:
    """Whether a PATCH changes nothing and only repeats the update (docs/internals/rest-api.md §5.6)."""
    if body.path is not None:
        return False
    try:
        document = read_object(body.read())
    except InvalidRequest:
        return False
    extra = document.keys() - _PARTS - {"existing", "stack_name", "expected_revision"}
    return not extra and all(is_nothing(document.get(part)) for part in _PARTS)


def accept(
    context: OperationContext, stack: StackRow, body: Body, *, patch: bool = False, lease: int | None = None
) -> tuple[StartedTraversal, Template, Sequence[JsonObject]]:
    """Validate an update and store it; with a `lease`, the caller plans the stack itself. Also return the
    warnings.

    A PATCH that conflicts with another request starts again from that request's revision.
    """
    with ExitStack() as resources:
        return _accept(context, stack, body, resources, patch=patch, lease=lease)


def _accept(
    context: OperationContext,
    stack: StackRow,
    body: Body,
    cleanup: ExitStack,
    *,
    patch: bool,
    lease: int | None,
) -> tuple[StartedTraversal, Template, Sequence[JsonObject]]:
    """Validate and store an update; contexts entered into `cleanup` end with the request."""
    authority: Authority | None = None
    for _ in range(TRIES):
        if stack.deleted_at is None and stack.action == "SUSPEND":
            raise NotSupported("Updating a stack when it is suspended")
        proposal = propose(context, stack, body, patch=patch)
        count = proposal.desired.resource_count
        limit = context.require_room(RESOURCES, count, stack_uuid=str(stack.uuid))
        slices = slices_of(proposal.desired.template, proposal.validated)
        size = context.require_room(STORED_BYTES, added_bytes(proposal.desired, slices))
        requested, based_on = proposal.requested, stack.traversal if proposal.requested.patch else None
        if authority is None and requested.has_content:
            needs_admin = proposal.validated.needs_admin
            authority = cleanup.enter_context(authority_for_update(context, stack, needs_admin=needs_admin))
        try:
            with context.database.borrow(hot=False) as db, db.transaction():
                idempotency.record(db, stack.project_id, context.client_token, stack.uuid, stack.name)
                opened = accept_update(
                    db,
                    stack.id,
                    replace(proposal.desired, authority=authority, slices=slices),
                    action="UPDATE",
                    lease=lease,
                    converge=requested.converge,
                    based_on=based_on,
                    expected=requested.expected_revision,
                )
                children.mark_stale(db, stack.id)
                quotas.enforce(db, limit, size, *proposal.desired.limits)
        except ConcurrentUpdate:
            stack = _retry_on_conflict(context, stack)
            continue
        if opened is None:
            raise NotFound("Stack", stack.name)
        return opened, proposal.validated.template, shown_faults(proposal.validated.warnings)
    raise Conflict(f"Stack {stack.name} is being changed by other requests continuously. Please try again.")


def _retry_on_conflict(context: OperationContext, stack: StackRow) -> StackRow:
    now = stacks.get(context.database, context.caller.project_id, stack.name, str(stack.uuid))
    if now is None:
        raise NotFound("Stack", stack.name)
    return now


def propose(context: OperationContext, stack: StackRow, body: Body, *, patch: bool) -> ProposedUpdate:
    """Validate an update in full without storing it.

    Raises:
        NotFound: the stack is deleted.
        RevisionChanged: the stack has another revision than the request expects.
        InvalidRequest, InvalidTemplate, LimitExceeded, NotSupported: it cannot be accepted.
    """
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack.name)
    requested = read_update(body.read(), PausingFetcher(context.settings), patch=patch)
    before = revisions.desired(context.database, stack)
    assert before is not None
    if requested.expected_revision not in (None, before.number):  # compared again when it is stored
        raise RevisionChanged(stack.name, before.number, requested.expected_revision)
    request = complete_request(context, stack, requested, before)
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    old = stored_values(dict(before.parameters), before.sealed, context.cipher, pseudo)
    parent, hide = old.parent, frozenset[str]()
    if parent is not None and requested.patch:  # values given by the parent stack stay secret
        hide = old.hidden - requested.request.parameters.keys()
    validated = validate_request(
        context, request, stack_uuid=str(stack.uuid), parent=parent, hide=hide, depth=stack.depth
    )
    _refuse_immutable(old, before, validated)
    return ProposedUpdate(
        requested, request, validated, desired_stack(context, request, validated, stack.uuid)
    )


def _refuse_immutable(old: ParameterValues, before: RevisionRow, validated: ValidatedRequest) -> None:
    """Refuse a new value of an immutable parameter that the stack had before.

    Raises:
        InvalidTemplate: with a diagnostic for each such parameter.
    """
    schemas = before.outline["parameters"]
    faults = [
        Diagnostic(
            "immutable-parameter",
            f"The following parameters are immutable and may not be updated: {name}",
            f"parameters.{name}",
            heat_type="ImmutableParameterModified",
        )
        for name, schema in validated.template.parameters.items()
        if schema.immutable and name in schemas and old.get(name) != validated.values.get(name)
    ]
    if faults:
        raise InvalidTemplate(faults)
