"""Resources of a stack: list, show, metadata (docs/internals/rest-api.md §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flask import Blueprint, Response, request

from api.dependencies import caller, dependencies, operation_context
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.failures import diagnostics
from api.response.observations import ListedVerdicts, observation_of
from api.response.serialization import Links, below, json_list, json_response, link, time
from api.streaming.shared_responses import shared
from orchestrator.errors import InvalidRequest, ResourceNotFound
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import OperationContext
from orchestrator.operations.masking import masked
from orchestrator.operations.outputs.live_attributes import NO_LIVE_VALUES, LiveValues, read_for_resource
from orchestrator.operations.outputs.outputs import live_metadata
from orchestrator.operations.resource_context.state import GIVEN_METADATA, recorded_secrets
from orchestrator.operations.software.api_requests import is_agent, machine_metadata
from orchestrator.operations.stacks.resources import get_resource, list_resources, list_tree
from orchestrator.resources.base import Attribute, ResourceType
from orchestrator.resources.registry import Registry
from orchestrator.security.encryption import Cipher
from orchestrator.security.resource_credentials import require
from orchestrator.store.connections.streaming import FETCH_SIZE
from orchestrator.store.stacks.resources import FILTERS, SEARCH, ResourceRow
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.member_attributes import unmarked
from orchestrator.template.parameters import MASK

resources = Blueprint("resources", __name__)


@resources.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources")
@shared
def index(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """List the resources by name; with `limit` (extension) a page after the name `marker`."""
    query_params.refuse_unknown([*FILTERS, SEARCH, "nested_depth", "with_detail", "limit", "marker"])
    levels, detail = query_params.levels(), query_params.boolean("with_detail")
    limit, marker = query_params.integer("limit"), query_params.text("marker")
    if levels and (limit is not None or marker is not None):
        raise InvalidRequest("'limit' and 'marker' are for one stack: leave out nested_depth.")
    stack, links = get_stack(stack_name, stack_id), Links()
    if query_params.text(SEARCH) and (detail or not limit or limit > FETCH_SIZE):
        raise InvalidRequest(
            f"'search' is for pages: set limit to {FETCH_SIZE} at most, without with_detail."
        )
    types = dependencies().types if detail else None
    filters, context = query_params.filters((*FILTERS, SEARCH)), operation_context()
    verdicts = ListedVerdicts(stack, tree=bool(levels), detail=detail)
    if limit is None and marker is None:
        rows = list_tree(context, stack, levels, filters, with_values=detail)
        return json_list("resources", (_listed(row, of, links, types, verdicts) for of, row in rows))
    page = list_resources(context, stack, filters, with_values=detail, after=marker, limit=limit)
    visible = _listed if limit is None else _of_page
    return json_list("resources", (visible(row, stack, links, types, verdicts) for row in page))


@resources.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>")
def show(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - as above
    """Return a resource with its attributes."""
    stack = get_stack(stack_name, stack_id)
    row = _resource_row(stack, resource_name)
    with_attr = request.args.getlist("with_attr")
    live = read_for_resource(operation_context(), stack, row, with_attr)
    body = _body(row, stack, Links(), dependencies().types, with_attr, live)
    if (observation := observation_of(row, stack)) is not None:
        body["observation"] = observation
    if query_params.boolean("with_diagnostics"):
        body["diagnostics"] = diagnostics(stack, resource_name)
    return json_response({"resource": body})


@resources.get("/<project_id>/stacks/<stack_name>/<stack_id>/resources/<resource_name>/metadata")
def metadata(project_id: str, stack_name: str, stack_id: str, resource_name: str) -> Response:  # noqa: ARG001 - as above
    """Return a resource's current metadata."""
    stack, bearer = get_stack(stack_name, stack_id), caller().bearer
    if bearer is not None:
        require(dependencies().database, bearer, stack.id, resource_name)
    row = _resource_row(stack, resource_name)
    return json_response({"metadata": metadata_of(row, stack, operation_context())})


def _listed(
    row: ResourceRow, stack: StackRow, links: Links, types: Registry | None, verdicts: ListedVerdicts
) -> JsonObject:
    """Return a resource as an entry of a list."""
    body = _body(row, stack, links, types)
    if (observation := verdicts.of(row)) is not None:
        body["observation"] = observation
    return body


def _of_page(
    row: ResourceRow, stack: StackRow, links: Links, types: Registry | None, verdicts: ListedVerdicts
) -> JsonObject:
    """Return a resource as an entry of a page, which omits `required_by`."""
    body = _listed(row, stack, links, types, verdicts)
    del body["required_by"]
    return body


def _resource_row(stack: StackRow, name: str) -> ResourceRow:
    row = get_resource(operation_context(), stack, name)
    if row is None:
        raise ResourceNotFound(name, stack.name)
    return row


def _body(
    row: ResourceRow,
    stack: StackRow,
    links: Links,
    types: Registry | None,
    with_attr: list[str] | None = None,
    live: LiveValues = NO_LIVE_VALUES,
) -> JsonObject:
    """Return a resource; with `types`, also its description and attributes. A list does not read live
    attributes.
    """
    url = links.of(stack)
    linked = [link("self", below(url, "resources", row.name)), link("stack", url)]
    if row.child_uuid is not None and row.child_name is not None:
        linked.append(link("nested", links.stack(stack.project_id, row.child_name, row.child_uuid)))
    created = time(row.created_at)
    body: JsonObject = {
        "resource_name": row.name,
        "logical_resource_id": row.name,
        "physical_resource_id": row.physical_id or "",
        "resource_type": row.type,
        "resource_status": row.state,
        "resource_status_reason": row.status_reason,
        "creation_time": created,
        "updated_time": time(row.updated_at) or created,
        "required_by": list(row.required_by),
        "links": linked,
    }
    body |= _observation(row, always=types is not None)
    if stack.parent_resource is not None:
        body["parent_resource"] = stack.parent_resource
    if types is not None:
        body["description"] = row.description
        cipher = dependencies().cipher
        body["attributes"] = shown_attributes(row, types, cipher, with_attr or (), live.values)
        if live.error:
            body["attributes_error"] = live.error
    return body


def _observation(row: ResourceRow, *, always: bool) -> JsonObject:
    """Return the last observation and the outage after it, if any; without `always` only those that differ
    from a healthy resource.
    """
    found: JsonObject = {}
    if always or row.observed not in (None, "ready"):
        found |= {
            "observed": row.observed,
            "observed_at": time(row.observed_at),
            "observed_reason": row.observed_reason,
        }
    if always or row.is_unreachable:
        since = row.unreachable_since if row.is_unreachable else None
        reason = row.unreachable_reason if row.is_unreachable else None
        found |= {"unreachable_since": time(since), "unreachable_reason": reason}
    return found


def shown_attributes(
    row: ResourceRow,
    types: Registry,
    cipher: Cipher,
    with_attr: Sequence[str] = (),
    live: JsonMapping = NO_LIVE_VALUES.values,
) -> JsonObject:
    """Return the last observed attributes, and the `live` attributes that were read: null if unknown, secrets
    masked.
    """
    resource_type = types.get(row.effective_type)
    declared: Mapping[str, Attribute] = resource_type.attributes if resource_type is not None else {}
    opened = cipher.open(row.sealed) if row.sealed is not None else {}
    secrets, recorded = recorded_secrets(opened), dict[str, Any]()
    if secrets is not None:
        known = {**(opened.get("attributes") or row.attributes or {}), **live}
        recorded = {name: secrets.masked_output(item) for name, item in known.items()}

    def value(name: str) -> Any:
        if secrets is None and name in declared:
            return MASK
        attribute = declared.get(name)
        hidden = attribute is not None and attribute.secret and name in recorded
        return MASK if hidden else unmarked(recorded.get(name))

    if secrets is not None and isinstance(recorded.get("show"), Mapping):
        return {**{name: value(name) for name in with_attr}, **recorded["show"]}
    names = declared.keys() if resource_type is not None else recorded.keys()
    return {name: value(name) for name in dict.fromkeys([*names, *with_attr]) if name != "show"}


def whole_metadata(row: ResourceRow, cipher: Cipher) -> JsonObject:
    """Return the unmasked metadata."""
    if row.sealed is None or row.metadata is not None:
        return dict(row.metadata or {})
    return dict(cipher.open(row.sealed).get("metadata") or {})


def metadata_of(row: ResourceRow, stack: StackRow, context: OperationContext) -> Any:
    """Return the metadata as visible to the caller: unmasked for its intended reader, masked otherwise."""
    resource_type = context.types.get(row.effective_type)
    if resource_type is not None and resource_type.publishes:
        shown = None if is_agent(context) else shown_metadata(row, context.types, context.cipher)
        return machine_metadata(context, stack, row, resource_type, shown)
    if row.child_uuid is not None and (live := live_metadata(context, stack, row.id)) is not None:
        created, secrets = live
        if context.caller.bearer is not None:
            return created
        return masked(created) if secrets is None else secrets.masked(created)
    if context.caller.bearer is not None:
        return whole_metadata(row, context.cipher)
    return shown_metadata(row, context.types, context.cipher)


def shown_metadata(row: ResourceRow, types: Mapping[str, ResourceType], cipher: Cipher) -> Any:
    """Return the metadata with the values of an encrypted row masked.

    Data of signals is shown if the type declares it as not secret; metadata of the template may be secret.
    """
    if row.sealed is None:
        return row.metadata or {}
    retained, resource_type = whole_metadata(row, cipher), types.get(row.effective_type)
    opened = cipher.open(row.sealed)
    values, secrets = (opened.get("data") or {}).get(GIVEN_METADATA), recorded_secrets(opened)
    if values is None and secrets is not None:
        return secrets.masked(retained)
    if resource_type is None or not resource_type.open_metadata:
        return masked(retained)
    secret = retained if values is None else values
    return {key: masked(value) if key in secret else value for key, value in retained.items()}
