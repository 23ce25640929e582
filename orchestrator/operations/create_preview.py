"""Say what a create would make, and make nothing (spec/rest-api.md §5.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.properties import Resolved
from orchestrator.errors import OrchestratorError, StackExists
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.fetching import fetcher
from orchestrator.operations.outputs import Output
from orchestrator.operations.request import StackRequest, read_request
from orchestrator.operations.vetting import Vetted, vet
from orchestrator.resources.base import ResourceType
from orchestrator.store import previewing
from orchestrator.store.acceptance import refuse_beyond
from orchestrator.template.definition import ResourceDefinition, StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.functions.allowance import allowance
from orchestrator.template.parameters import MASK
from orchestrator.template.view import ResourceProxy

EXPRESSIONS_SECONDS = 20.0  # for all that a preview lets evaluate


@dataclass(frozen=True, slots=True)
class Unmade:
    """One resource that would be made, its values as far as nothing has to be there for them."""

    name: str
    type: str
    description: str
    required_by: Sequence[str]
    properties: Mapping[str, Any]  # null where it comes from what is not there, masked where it is secret
    attributes: Sequence[str]  # names
    metadata: Any


@dataclass(frozen=True, slots=True)
class CreatePreview:
    """A stack that would be made."""

    name: str
    description: str
    parameters: Mapping[str, str]
    outputs: Sequence[Output]
    resources: Sequence[Unmade]
    disable_rollback: bool
    timeout_mins: int | None
    tags: Sequence[str]


def preview_create(context: OperationContext, body: Body) -> CreatePreview:
    """Return what a create would make.

    Raises:
        InvalidRequest, InvalidTemplate, LimitExceeded, StackExists: it would be refused.
    """
    request = read_request(body.read(), fetcher(context.settings))
    vetted = vet(context, request, stack_uuid="None")
    project = context.caller.project_id
    with previewing.moment(context.database) as db:
        refuse_beyond(db, project, context.settings.max_stacks_per_tenant)
        if previewing.is_taken(db, project, request.stack_name):
            raise StackExists(request.stack_name)
    return _shown(request, vetted)


@allowance(EXPRESSIONS_SECONDS)
def _shown(request: StackRequest, vetted: Vetted) -> CreatePreview:
    template = vetted.template
    nobody = {name: ResourceProxy(name, None, {}, "INIT", "COMPLETE") for name in template.resources}
    view = StackDefinition(
        template.version, vetted.values, nobody, vetted.files.get, mappings=template.mappings
    )
    required_by: dict[str, list[str]] = {name: [] for name in template.resources}
    for name, definition in template.resources.items():
        for required in definition.requires:
            required_by[required].append(name)
    return CreatePreview(
        request.stack_name,
        template.description,
        vetted.values.public(template.parameters),
        [
            Output(one.name, one.description, _value(view, one.value, f"outputs.{one.name}.value"))
            for one in template.outputs.values()
        ],
        [_unmade(one, vetted, view, required_by[one.name]) for one in template.resources.values()],
        request.disable_rollback,
        request.timeout_mins,
        request.tags,
    )


def _unmade(
    definition: ResourceDefinition, vetted: Vetted, view: StackDefinition, required_by: Sequence[str]
) -> Unmade:
    body, kind = definition.body, vetted.kinds.of(definition)
    assert isinstance(kind, ResourceType)
    words = format_named(view.version).words
    place = f"{words.resources}.{definition.name}"
    view.touched_secret = False
    resolved = Resolved(body, view, kind, place, f"{place}.{words.properties}")
    given, _ = kind.read_properties(resolved.values)
    # What is translated may have gone elsewhere.
    secret = {*given, *resolved.secrets} if resolved.secrets and kind.translation else resolved.secrets
    view.touched_secret = False
    metadata = _value(view, body.get("metadata"), f"{place}.{words.metadata}")
    return Unmade(
        definition.name,
        definition.type,
        str(body.get("description") or ""),
        required_by,
        {name: MASK if name in secret else given.get(name) for name in {**kind.properties, **given}},
        sorted(kind.attributes),
        MASK if view.touched_secret else metadata or {},
    )


def _value(view: StackDefinition, written: Any, path: str) -> Any:
    """Return a value, null when it takes something that is not there."""
    try:
        return view.resolve(written, path)
    except OrchestratorError:
        return None
