"""Accept a new template for a stack at any time, superseding an operation in progress
(docs/internals/rest-api.md §6).

PUT replaces the whole request; PATCH starts from the latest accepted revision, even if that failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

import orjson

from orchestrator.errors import Conflict, Diagnostic, InvalidRequest, InvalidTemplate, NotFound, NotSupported
from orchestrator.json_types import JsonObject
from orchestrator.operations import resource_quota
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import PausingFetcher
from orchestrator.operations.keystone import delegated_credentials
from orchestrator.operations.request_body import StackRequest, UpdateRequest, read_object, read_update
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.runtime.sealed_parameters import hidden_defaults, hidden_parameters
from orchestrator.operations.stacks.accepted_template import slices_of
from orchestrator.operations.stacks.create_delete import Accepted, desired_stack
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.operations.validation.observation_policy import kept_policy
from orchestrator.operations.validation.request import ValidatedRequest, validate_request
from orchestrator.store.access import idempotency, quotas
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import children
from orchestrator.store.traversals.accept import ConcurrentUpdate, StackInsert, accept_update
from orchestrator.store.traversals.traversals import RevisionChanged, StartedTraversal
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
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
    return not extra and all(_is_nothing(document.get(part)) for part in _PARTS)


def _is_nothing(value: object) -> bool:
    return all(_is_nothing(inner) for inner in value.values()) if isinstance(value, dict) else not value


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
    credential: list[int | None] = []
    for _ in range(TRIES):
        if stack.deleted_at is None and stack.action == "SUSPEND":
            raise NotSupported("Updating a stack when it is suspended")
        proposal = propose(context, stack, body, patch=patch)
        count = proposal.desired.resource_count
        limit = resource_quota.require_room(context, count, str(stack.uuid), reserve=True)
        slices = slices_of(context, proposal.desired.template, proposal.validated)
        requested, based_on = proposal.requested, stack.traversal if proposal.requested.patch else None
        if not credential:
            credential.append(
                cleanup.enter_context(delegated_credentials.credential_for_update(context, stack))
            )
        try:
            with context.database.borrow(hot=False) as db, db.transaction():
                idempotency.record(db, stack.project_id, context.client_token, stack.uuid, stack.name)
                opened = accept_update(
                    db,
                    stack.id,
                    replace(proposal.desired, credential_id=credential[0], slices=slices),
                    action="UPDATE",
                    lease=lease,
                    converge=requested.converge,
                    based_on=based_on,
                    expected=requested.expected_revision,
                )
                children.mark_stale(db, stack.id)
                quotas.enforce(db, limit, *proposal.desired.limits)
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
    request = _request(context, stack, requested, before)
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


def _request(
    context: OperationContext, stack: StackRow, requested: UpdateRequest, before: RevisionRow
) -> StackRequest:
    """Return the complete request: a PATCH inherits all that it omits."""
    request = replace(
        requested.request,
        stack_name=stack.name,
        disable_rollback=stack.disable_rollback
        if requested.disable_rollback is None
        else requested.disable_rollback,
        timeout_mins=stack.timeout_mins
        if requested.request.timeout_mins is None
        else requested.request.timeout_mins,
        keep_going=stack.keep_going if requested.keep_going is None else requested.keep_going,
        resume=stack.resume if requested.request.resume is None else requested.request.resume,
    )
    if not requested.patch:
        return request
    template = request.template
    if template is None:
        text = b"".join(revisions.read_content(context.database, before.template_hash))
        template = orjson.loads(text)
    files = {
        name: b"".join(revisions.read_content(context.database, bytes.fromhex(hash_))).decode()
        for name, hash_ in before.files.items()
        if name not in request.files
    }
    return replace(
        request,
        template=template,
        files={**files, **request.files},
        environment=_environment(context, requested, before),
        tags=stack.tags if requested.tags_left_out else request.tags,
        ignore_unknown_parameters=True,
    )


def _environment(context: OperationContext, requested: UpdateRequest, before: RevisionRow) -> JsonObject:
    """Return the stored environment merged with the request's, without the parameters to clear."""
    request = requested.request
    opened = hidden_parameters(context.cipher, before.sealed)
    stored = dict(before.environment)
    defaults = hidden_defaults(context.cipher, stored, before.sealed)
    parameters = {
        name: opened.get(name) if value is None else value
        for name, value in (stored.get("parameters") or {}).items()
        if name not in requested.clear_parameters
    }
    environment = (
        Environment()
        if request.environment_files
        else Environment.parse(request.environment, Limits.of(context.settings), of_request=True)
    )
    registry = {**(stored.get("resource_registry") or {}), **environment.resource_registry}
    made = {
        "parameters": {**parameters, **environment.parameters},
        "parameter_defaults": {
            **(stored.get("parameter_defaults") or {}),
            **defaults,
            **environment.parameter_defaults,
        },
        "resource_registry": registry,
        "event_sinks": list(environment.event_sinks) or stored.get("event_sinks") or [],
        "encrypted_param_names": stored.get("encrypted_param_names") or [],
        "observation_policy": environment.observation_policy or kept_policy(context, stored),
    }
    return {section: value for section, value in made.items() if value}


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
