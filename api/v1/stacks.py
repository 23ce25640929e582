"""Stacks: create, list, show, delete (docs/internals/rest-api.md §5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from flask import Blueprint, Response, request

from api.dependencies import caller, dependencies, operation_context, outputs_of
from api.middleware.authorization import require_named
from api.request import query_params
from api.request.body import read_body
from api.request.stack_lookup import get_stack
from api.response.failures import diagnostics
from api.response.serialization import Links, NextPage, json_list, json_response, link, time
from api.streaming.shared_responses import shared
from api.v1.diagnosis import progress_body, queued_action_body
from api.v1.outputs import output_body
from orchestrator.engine.states import STACK_ACTIONS
from orchestrator.errors import NotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.observation import convergence
from orchestrator.operations.observation.pauses import pause_of
from orchestrator.operations.preview.create import CreatePreview
from orchestrator.operations.preview.update import UpdatePreview
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters
from orchestrator.operations.stacks.actions import requested_action
from orchestrator.operations.stacks.create_delete import Accepted
from orchestrator.operations.stacks.update import is_empty_patch
from orchestrator.security.policy import policy_of, require
from orchestrator.store.observation import counts as observed
from orchestrator.store.stacks import progress, revisions
from orchestrator.store.stacks.revisions import RevisionRow
from orchestrator.store.stacks.stacks import FILTERS, StackQuery, StackRow, count_stacks, list_stacks
from orchestrator.template.formats import format_named
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template
from orchestrator.template.versions import LATEST

stacks = Blueprint("stacks", __name__)

NO_DESCRIPTION: Final = "No description"
SLICE: Final = 100  # stacks whose progress and drift are read at once
# Alternative names of filters that clients use.
OTHER_NAMES: Final = {
    "stack_name": "name",
    "stack_status": "status",
    "stack_action": "action",
    "stack_owner": "username",
    "parent": "owner_id",
}


@stacks.get("/<project_id>/stacks")
def index(project_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the project's stacks; with `global_tenant` the stacks of all projects, if the policy allows it."""
    scope, admin = caller().scope, caller().is_admin
    if query_params.boolean("global_tenant"):
        require_named("stacks:global_index")
        scope, admin = None, True
    query, database, links, next_page = _query(), dependencies().database, Links(), NextPage()
    count = count_stacks(database, scope, query) if query_params.boolean("with_count") else None

    def tail(number: int, last: JsonMapping) -> JsonObject:
        full = query.limit is not None and 0 < query.limit == number
        links: JsonObject = {"links": [link("next", next_page.after(last["id"]))]} if full else {}
        return links if count is None else {**links, "count": count}

    with_progress, with_drift = query_params.boolean("with_progress"), query_params.boolean("with_drift")
    for wanted, right in ((with_progress, "stacks:progress"), (with_drift, "observations:index")):
        if wanted:
            require(policy_of(dependencies().settings), right, caller())
    rows = list_stacks(database, scope, query)
    counted = _counted(rows, with_progress=with_progress, with_drift=with_drift)
    return json_list(
        "stacks", ({**_listed(row, links, admin=admin), **extras} for row, extras in counted), tail
    )


@stacks.get("/<project_id>/stacks/detail")
def detail(project_id: str) -> Response:  # noqa: ARG001 - as above
    """List the project's stacks with further fields; filters are ignored."""
    query, links, admin = StackQuery(hidden_tags=_hidden_tags()), Links(), caller().is_admin
    rows = list_stacks(dependencies().database, caller().scope, query)
    return json_list("stacks", (_detailed(row, links, admin=admin) for row in rows))


@stacks.post("/<project_id>/stacks")
def create(project_id: str) -> Response:  # noqa: ARG001 - as above
    """Accept a new stack; workers create it later."""
    context = operation_context()
    with read_body(request, context.settings) as body:
        accepted = dependencies().operations.create(context, body)
    dependencies().publish(accepted.messages)
    url = Links().stack(context.caller.project_id, accepted.name, accepted.uuid)
    made: JsonObject = {"stack": {"id": accepted.uuid, "links": [link("self", url)]}}
    response = json_response(made | warnings_of(accepted), 201)
    response.headers["Location"] = url
    return response


@stacks.get("/<project_id>/stacks/<stack_name>/<stack_id>")
@shared
def show(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return a stack."""
    with_outputs = query_params.boolean("resolve_outputs", default=True)
    with_diagnostics = query_params.boolean("with_diagnostics")
    stack = get_stack(stack_name, stack_id)
    revision = revisions.desired(dependencies().database, stack)
    described = (revision.outline.get("description") if revision else None) or NO_DESCRIPTION
    visible = {
        **_common(stack, Links()),
        "description": described,
        "template_description": described,
        "parameters": parameters_of(stack, revision),
        "disable_rollback": stack.disable_rollback,
        "keep_going": stack.keep_going,
        "resume": stack.resume,
        "timeout_mins": stack.timeout_mins,
        "tags": list(stack.tags),
        "capabilities": [],
        "notification_topics": [],
    }
    if stack.queued_action is not None:
        visible["queued_action"] = queued_action_body(stack)
    counted = progress.read(dependencies().database, stack)
    if counted.total:  # the counts of an old stack were purged
        visible["progress"] = progress_body(counted)
    deviating = observed.deviating(dependencies().database, stack)
    if any(deviating.values()):
        visible["observation"] = observed.all_verdicts(dependencies().database, stack, deviating)
    if (pause := pause_of(dependencies().database, stack)) is not None:
        visible["observation_pause"] = pause
    if with_outputs and stack.deleted_at is None:
        visible["outputs"] = _outputs(stack) if revision and revision.outline["outputs"] else []
    if with_diagnostics:  # only on request: clients print every key of a stack
        visible["diagnostics"] = diagnostics(stack)
    return json_response({"stack": visible})


@stacks.route("/<project_id>/stacks/<stack_name>/<stack_id>", methods=["PUT", "PATCH"])
def update(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Accept a new template for the stack, also during another action."""
    patch = request.method == "PATCH"
    if not patch:
        require_named("stacks:update")
        stack = get_stack(stack_name, stack_id)
    context = operation_context()
    with read_body(request, context.settings) as body:
        if patch:
            require_named("stacks:update_no_change" if is_empty_patch(body) else "stacks:update_patch")
            stack = get_stack(stack_name, stack_id)
        accepted = dependencies().operations.update(context, stack, body, patch=patch)
    dependencies().publish(accepted.messages)
    found = warnings_of(accepted)
    return json_response(found, 202) if found else Response(status=202)


@stacks.post("/<project_id>/stacks/<stack_name>/<stack_id>/actions")
def act(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Start an action of the stack; with `wait` a suspend or resume is queued during another action."""
    stack, context = get_stack(stack_name, stack_id), operation_context()
    wait = query_params.boolean("wait")
    with read_body(request, context.settings, small=True) as body:
        action = requested_action(body)
        require_named(f"actions:{action}")
        if action == convergence.ACTION:
            answer = convergence.converge(context, stack, body)
            dependencies().publish(answer.messages)
            return json_response({"converge": answer.body})
        messages = dependencies().operations.start_action(context, stack, body, wait=wait)
    dependencies().publish(messages)
    return json_response(None)


@stacks.delete("/<project_id>/stacks/<stack_name>/<stack_id>")
def delete(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Start to delete the stack, also during another action."""
    stack = get_stack(stack_name, stack_id)
    if stack.deleted_at is not None:
        raise NotFound("Stack", stack_name)
    dependencies().publish(dependencies().operations.delete(operation_context(), stack))
    return Response(status=204)


def _query() -> StackQuery:
    """Read the query of a listing; unknown parameters are ignored, as in Heat."""
    filters = query_params.filters([*FILTERS, "status"])
    for alias, name in OTHER_NAMES.items():
        if values := query_params.texts(alias):
            filters.setdefault(name, []).extend(values)
    return StackQuery(
        filters={name: values for name, values in filters.items() if name != "status"},
        states=[_state(value) for value in filters.get("status", ())],
        tags=query_params.comma_separated("tags"),
        tags_any=query_params.comma_separated("tags_any"),
        not_tags=query_params.comma_separated("not_tags"),
        not_tags_any=query_params.comma_separated("not_tags_any"),
        hidden_tags=[] if query_params.boolean("show_hidden") else _hidden_tags(),
        show_deleted=query_params.boolean("show_deleted"),
        show_nested=query_params.boolean("show_nested"),
        sort_keys=query_params.texts("sort_keys"),
        sort_dir=query_params.direction(),
        marker=query_params.text("marker"),
        limit=query_params.integer("limit"),
        search=query_params.text("search"),
    )


def _hidden_tags() -> list[str]:
    return [tag.strip() for tag in dependencies().settings.hidden_stack_tags.split(",") if tag.strip()]


def _state(text: str) -> tuple[str | None, str]:
    """Split `CREATE_FAILED` into action and status; `FAILED` alone matches every action."""
    action, separator, status = text.partition("_")
    return (action, status) if separator and action in STACK_ACTIONS else (None, text)


def _counted(
    rows: Iterator[StackRow], *, with_progress: bool, with_drift: bool
) -> Iterator[tuple[StackRow, JsonObject]]:
    """Yield stacks, each with its progress if it is in progress, and its drift; a query for a slice of
    stacks.
    """
    database = dependencies().database
    while part := list(islice(rows, SLICE)):
        at_work = [row for row in part if row.in_progress] if with_progress else []
        progresses = progress.read_several(database, at_work)
        drifted = observed.drifted(database, part) if with_drift else {}
        for row in part:
            extras: JsonObject = {}
            if row.id in progresses:
                extras["progress"] = progress_body(progresses[row.id])
            if row.id in drifted:
                extras["drift"] = drifted[row.id]
            yield row, extras


def _listed(row: StackRow, links: Links, *, admin: bool) -> JsonObject:
    listed = {**_common(row, links), "description": "", "tags": list(row.tags) or None}
    return {**listed, "project": row.project_id} if admin else listed


def _outputs(stack: StackRow) -> list[JsonObject]:
    resolved = outputs_of(stack)
    return [output_body(output) for output in resolved]


def _detailed(row: StackRow, links: Links, *, admin: bool) -> JsonObject:
    details: JsonObject = {
        "disable_rollback": row.disable_rollback,
        "timeout_mins": row.timeout_mins,
        "capabilities": [],
        "notification_topics": [],
    }
    return {**_listed(row, links, admin=admin), **details}


def _common(row: StackRow, links: Links) -> JsonObject:
    return {
        "id": str(row.uuid),
        "links": [link("self", links.of(row))],
        "stack_name": row.name,
        "stack_status": row.state,
        "stack_status_reason": row.status_reason,
        "creation_time": time(row.created_at),
        "updated_time": time(row.updated_at),
        "deletion_time": time(row.deleted_at),
        "stack_owner": row.username or None,
        "parent": str(row.parent_uuid) if row.parent_uuid else None,
        "stack_user_project_id": row.user_project_id,
    }


def warnings_of(answer: Accepted | CreatePreview | UpdatePreview) -> JsonObject:
    """Return the warnings about a request, an extension to Heat; {} if there are none."""
    return {"warnings": [*answer.warnings]} if answer.warnings else {}


def parameters_of(stack: StackRow, revision: RevisionRow | None) -> dict[str, str]:
    """Return all parameters as text, pseudo parameters first, hidden values masked."""
    if revision is None:
        return pseudo_parameters(str(stack.uuid), stack.name, stack.project_id, format_named(LATEST))
    template = Template.from_outline(revision.outline)
    schemas = template.parameters
    values = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id, template.form)
    supplied = {name: value for name, value in revision.parameters.items() if name in schemas}
    hidden = frozenset(
        name for name in supplied if schemas[name].hidden or supplied[name] is None
    )  # encrypted
    return ParameterValues({**values, **supplied}, hidden).public(schemas)
