"""Create and delete stacks: the API's operations, without HTTP.

A create whose name is taken, or that exceeds the quota of stacks, is refused first. Then it is validated in
full before any row is written, so that all errors of a template are reported at once and leave no trace. Then
it is a single transaction, whose INSERT decides about the name. Large bodies go through `offload.py`, which
runs the same functions in a subprocess.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from orchestrator.engine.messages import CheckMessage
from orchestrator.errors import NotFound
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.events import event_sinks
from orchestrator.operations.keystone.authority import authority_for_create, credential_for_operation
from orchestrator.operations.quotas.room import RESOURCES, STORED_BYTES
from orchestrator.operations.request_body import StackRequest, reject_nul_bytes
from orchestrator.operations.runtime import lease_keeper
from orchestrator.operations.runtime.sealed_parameters import sealed_values, without_hidden
from orchestrator.operations.stack_completion import start_delete
from orchestrator.operations.stacks.accepted_template import slices_of
from orchestrator.operations.stacks.new_stack import read_new_stack
from orchestrator.operations.validation.fault_places import shown_faults
from orchestrator.operations.validation.request import ValidatedRequest, validate_request
from orchestrator.operations.validation.types_of_author import types_denied_to
from orchestrator.store.access import idempotency, quotas
from orchestrator.store.keystone import delegated_credentials
from orchestrator.store.stacks.accepted_resources import Part
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals.accept import StackInsert, accept_create
from orchestrator.store.traversals.traversals import StartedTraversal
from orchestrator.template.function_view import FACADE_PARAMETERS
from orchestrator.template.template import Template


@dataclass(frozen=True, slots=True)
class Accepted:
    """An accepted request: its stack, and the messages to send."""

    uuid: str
    name: str
    messages: list[CheckMessage]
    warnings: Sequence[JsonObject] = ()  # about probable mistakes, as responses show them


def create(context: OperationContext, body: Body) -> Accepted:
    """Accept a new stack.

    Raises:
        InvalidRequest, InvalidTemplate, LimitExceeded, StackExists: no row was written.
    """
    opened, desired, _, warnings = validate_and_insert(context, body)
    return Accepted(str(desired.uuid), desired.name, [opened.message], warnings)


def validate_and_insert(
    context: OperationContext, body: Body, lease: int | None = None
) -> tuple[StartedTraversal, StackInsert, Template, Sequence[JsonObject]]:
    """Validate a create and insert its rows; with a `lease`, the caller plans the stack itself. Also return
    the warnings.
    """
    new, stack_uuid = read_new_stack(context, body), uuid.uuid4()
    validated = validate_request(context, new.request, stack_uuid=str(stack_uuid))
    desired = desired_stack(context, new.request, validated, stack_uuid)
    if new.adopted is not None:
        desired = replace(desired, adopted=context.cipher.seal(new.adopted))
    limit = context.require_room(RESOURCES, desired.resource_count)
    slices = slices_of(desired.template, validated)
    size = context.require_room(STORED_BYTES, added_bytes(desired, slices))
    with (
        authority_for_create(context, stack_uuid, needs_admin=validated.needs_admin) as authority,
        context.database.borrow(hot=False) as db,
        db.transaction(),
    ):
        idempotency.record(db, desired.project_id, context.client_token, desired.uuid, desired.name)
        opened = accept_create(
            db,
            replace(desired, authority=authority, slices=slices),
            lease=lease,
            seconds=lease_keeper.LEASE_SECONDS,
        )
        quotas.enforce(db, new.limit, limit, size, *desired.limits)
    return opened, desired, validated.template, shown_faults(validated.warnings)


def delete(context: OperationContext, stack: StackRow) -> list[CheckMessage]:
    """Start the delete of a stack, superseding an operation in progress.

    Raises:
        NotFound: it is deleted already.
    """
    with (
        credential_for_operation(context, stack) as credential,
        context.database.borrow(hot=False) as db,
        db.transaction(),
    ):
        idempotency.record(db, stack.project_id, context.client_token, stack.uuid, stack.name)
        if credential is not None:
            delegated_credentials.hold(db, credential, stack.id)
        opened = start_delete(db, stack.id, credential_id=credential)
    if opened is None:
        raise NotFound("Stack", stack.name)
    return [opened.message]


def added_bytes(desired: StackInsert, slices: Sequence[Part]) -> int:
    """Return the size of a new revision if none of its texts are stored."""
    texts = len(desired.template) + sum(map(len, desired.files.values())) + len(desired.sealed or b"")
    values = orjson.dumps([desired.environment, desired.parameters, desired.outline], default=str)
    return texts + len(values) + sum(len(part.entries) for part in slices)


def desired_stack(
    context: OperationContext, request: StackRequest, validated: ValidatedRequest, stack_uuid: uuid.UUID
) -> StackInsert:
    """Return the rows to insert for a validated request."""
    hidden = {name: validated.values[name] for name in validated.values.hidden if name in validated.values}
    masked = {*hidden, *validated.kinds.hidden}
    shown = {
        name: None if name in hidden else value
        for name, value in validated.values.items()
        if name in validated.template.parameters or name in FACADE_PARAMETERS
    }
    sinks = event_sinks.read(context, stack_uuid, validated.environment.event_sinks)
    template, environment = orjson.dumps(validated.document), without_hidden(validated.environment, masked)
    environment["event_sinks"] = list(sinks.kept)
    reject_nul_bytes(template, orjson.dumps([environment, shown]))  # YAML allows NUL where JSON did not
    return StackInsert(
        uuid=stack_uuid,
        name=request.stack_name,
        project_id=context.caller.project_id,
        username=context.caller.user,
        template=template,
        files=validated.files,
        environment=environment,
        parameters=shown,
        sealed=sealed_values(context.cipher, hidden, validated.environment, masked),
        outline=validated.template.outline(),
        resource_count=len(validated.template.resources),
        disable_rollback=request.disable_rollback,
        timeout_mins=request.timeout_mins,
        tags=request.tags,
        keep_going=request.keep_going,
        delete_on_failure=request.delete_on_failure,
        denied_types=types_denied_to(context).stored(),
        resume=request.resume,
        sinks=sinks.new,
        limits=() if sinks.limit is None else (sinks.limit,),
    )
