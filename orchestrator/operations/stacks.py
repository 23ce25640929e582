"""Create, delete and validate stacks: what the API's verbs do, without HTTP.

A create is checked in full before anything is written, so that every fault of a template is answered on the
spot and leaves nothing behind; then it is one durable transaction. Large bodies go through `intake.py`, which
runs the same functions in a process of their own.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.engine.messages import Ring
from orchestrator.engine.validate import validate_stack
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded, NotFound
from orchestrator.graph.build import build
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.parameters import pseudo
from orchestrator.operations.request import StackRequest, read_request, refuse_nul
from orchestrator.store import traversals
from orchestrator.store.acceptance import Wanted, accept_create
from orchestrator.store.stacks import StackRow
from orchestrator.store.traversals import Opened
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits, parse
from orchestrator.template.places import placed
from orchestrator.template.template import Template, load


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request written down: the stack it is for, and what to enqueue."""

    uuid: str
    name: str
    rings: list[Ring]


@dataclass(frozen=True, slots=True)
class Checked:
    """A request with nothing wrong in it."""

    document: Mapping[str, Any]  # the template as data
    template: Template
    environment: Environment
    values: ParameterValues


def create(context: OperationContext, body: Body) -> Accepted:
    """Accept a new stack.

    Raises:
        InvalidRequest, InvalidTemplate, LimitExceeded, StackExists: nothing was written.
    """
    opened, wanted, _ = accept(context, body)
    return Accepted(str(wanted.uuid), wanted.name, [opened.ring])


def accept(
    context: OperationContext, body: Body, lease: int | None = None
) -> tuple[Opened, Wanted, Template]:
    """Check a create and write it down; with a `lease` the caller goes on to plan it."""
    request = read_request(body.read())
    stack_uuid = uuid.uuid4()
    checked = check(context, request, stack_uuid=str(stack_uuid))
    wanted = _wanted(context, request, checked, stack_uuid)
    with context.database.connect() as db:
        opened = accept_create(
            db,
            wanted,
            quota=context.settings.max_stacks_per_tenant,
            lease=lease,
            seconds=context.settings.lease_seconds,
        )
    return opened, wanted, checked.template


def check(
    context: OperationContext, request: StackRequest, *, stack_uuid: str, strict: bool = True
) -> Checked:
    """Find everything wrong with a request; `strict` where parameter values must be complete.

    Raises:
        InvalidTemplate: with every fault found.
        LimitExceeded: the template is too large or has too many resources.
    """
    assert request.template is not None
    settings = context.settings
    _check_size(request, settings.max_template_size)
    limits = Limits.of(settings)
    document, template = _read(request, limits)
    if len(template.resources) > settings.max_resources_per_stack:
        raise LimitExceeded("Maximum resources per stack exceeded.")
    environment = Environment.parse(request.environment, limits)
    supplied = {**environment.parameters, **request.parameters}
    faults: list[Diagnostic] = []
    given = pseudo(stack_uuid, request.stack_name, context.caller.project_id)
    defaults = environment.parameter_defaults
    try:
        values = ParameterValues.build(template.parameters, supplied, defaults, given, missing_ok=not strict)
    except InvalidTemplate as error:
        faults += error.diagnostics
        values = ParameterValues.build(template.parameters, {}, {}, given, missing_ok=True)
        strict = False
    names = list(template.resources)
    try:
        build(names, [template.resources[name].requires for name in names])
    except InvalidTemplate as error:
        faults += error.diagnostics
    timeout = (request.timeout_mins or settings.stack_action_timeout / 60) * 60.0
    faults += validate_stack(template, values, context.types, strict=strict, stack_timeout_seconds=timeout)
    if faults:
        raise InvalidTemplate(placed(faults, request.template, document))
    return Checked(document, template, environment, values)


def delete(context: OperationContext, stack: StackRow) -> list[Ring]:
    """Begin to remove a stack, over whatever runs.

    Raises:
        NotFound: it is gone already.
    """
    with context.database.connect() as db, db.transaction():
        opened = traversals.bump(db, stack.id, "DELETE")
    if opened is None:
        raise NotFound("Stack", stack.name)
    return [opened.ring]


def _read(request: StackRequest, limits: Limits) -> tuple[Mapping[str, Any], Template]:
    """Return the template as data and as a definition; a text is parsed once, and again only to find where it
    is wrong.
    """
    source = request.template
    if not isinstance(source, str):
        assert source is not None
        return source, load(source, limits, request.files)
    document = parse(source, limits)
    try:
        return document, load(document, limits, request.files)
    except InvalidTemplate:
        load(source, limits, request.files)
        raise


def _check_size(request: StackRequest, limit: int) -> None:
    for text in (request.template, *request.files.values()):
        size = len(text.encode()) if isinstance(text, str) else len(orjson.dumps(text))
        if size > limit:
            raise LimitExceeded(f"Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes).")


def _wanted(
    context: OperationContext, request: StackRequest, checked: Checked, stack_uuid: uuid.UUID
) -> Wanted:
    hidden = {name: checked.values[name] for name in checked.values.hidden if name in checked.values}
    shown = {
        name: None if name in hidden else value
        for name, value in checked.values.items()
        if name in checked.template.parameters
    }
    template, environment = orjson.dumps(checked.document), _shown(checked.environment, hidden)
    refuse_nul(template, orjson.dumps([environment, shown]))  # YAML can write it where JSON did not
    return Wanted(
        uuid=stack_uuid,
        name=request.stack_name,
        project_id=context.caller.project_id,
        username=context.caller.user,
        template=template,
        files=request.files,
        environment=environment,
        parameters=shown,
        sealed=context.cipher.seal(hidden) if hidden else None,
        outline=checked.template.outline(),
        disable_rollback=request.disable_rollback,
        timeout_mins=request.timeout_mins,
        tags=request.tags,
    )


def _shown(environment: Environment, hidden: Collection[str]) -> dict[str, Any]:
    """Return the environment to keep: without the values of hidden parameters, whose names stay."""
    kept = environment.to_json()
    for section in ("parameters", "parameter_defaults"):
        kept[section] = {name: None if name in hidden else value for name, value in kept[section].items()}
    return kept
