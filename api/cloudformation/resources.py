"""Resources and events of a stack."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import orjson

from api.cloudformation.arguments import COMBINATION, MAX_PAGE, Arguments, QueryFault, page, token
from api.cloudformation.names import arn, find_stack, state
from api.dependencies import caller, dependencies, operation_context
from api.response.serialization import time
from api.v1.resources import metadata_of
from orchestrator.errors import LimitExceeded
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.stacks.resources import get_resource, list_resources
from orchestrator.security.resource_credentials import require
from orchestrator.security.signatures import Refused
from orchestrator.store.events.events import EventQuery, EventRow, event_uuid, list_events
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.stacks.physical_ids import stack_with
from orchestrator.store.stacks.resources import ResourceRow
from orchestrator.store.stacks.stacks import StackRow

MAX_RESOURCES: Final = 10_000  # resources in a response without pages
UNDECIDED: Final = {"StackResourceDriftStatus": "NOT_CHECKED"}


def describe_stack_resource(arguments: Arguments) -> JsonMapping:
    """Return a resource with its metadata; servers read their own metadata this way."""
    arguments.required("StackName")
    name = arguments.required("LogicalResourceId")
    arguments.check()
    stack = _opened(arguments, name)
    row = get_resource(operation_context(), stack, name)
    if row is None:
        raise _no_such_resource(name, stack)
    metadata = orjson.dumps(metadata_of(row, stack, operation_context()), default=str).decode()
    detail = {**_resource(row, stack, "LastUpdatedTimestamp"), "Metadata": metadata}
    return {"StackResourceDetail": {**detail, "Description": row.description}}


def describe_stack_resources(arguments: Arguments) -> JsonMapping:
    """Return the resources of a stack, or of the stack that owns a physical id."""
    name, physical = arguments.text("StackName"), arguments.text("PhysicalResourceId")
    if name is not None and physical is not None:
        arguments.fault("InvalidParameterCombination", f"{COMBINATION}:StackName and PhysicalResourceId")
    arguments.check()
    stack = find_stack(arguments) if physical is None else _of_physical(physical)
    logical = arguments.text("LogicalResourceId")
    filters = {"name": [logical]} if logical is not None else None
    rows = list(list_resources(operation_context(), stack, filters, limit=MAX_RESOURCES + 1))
    if len(rows) > MAX_RESOURCES:
        raise LimitExceeded(
            f"The stack has more than {MAX_RESOURCES} resources. ListStackResources shows them."
        )
    if logical is not None and not rows:
        raise _no_such_resource(logical, stack)
    described = [{**_resource(row, stack, "Timestamp"), "Description": row.description} for row in rows]
    return {"StackResources": described}


def list_stack_resources(arguments: Arguments) -> JsonMapping:
    """List the resources of a stack by name, page by page."""
    after = token(arguments)
    stack = find_stack(arguments)
    resources = list_resources(operation_context(), stack, after=after, limit=MAX_PAGE + 1)
    rows, has_more = page(resources, MAX_PAGE, lambda row: row.name)
    summaries = [_resource(row, stack, "LastUpdatedTimestamp") for row in rows]
    for item in summaries:
        del item["StackId"], item["StackName"]
    return {"StackResourceSummaries": summaries, **has_more}


def describe_stack_events(arguments: Arguments) -> JsonMapping:
    """List the events of a stack, newest first, page by page."""
    marker = token(arguments)
    stack = find_stack(arguments)
    database = dependencies().database
    events = list_events(database, stack, EventQuery(marker=marker, limit=MAX_PAGE + 1))
    rows, has_more = page(events, MAX_PAGE, lambda row: event_uuid(stack.uuid, row.id))
    back = _Rollbacks(stack, rows)
    return {"StackEvents": [_event(row, stack, back) for row in rows], **has_more}


def _opened(arguments: Arguments, resource: str) -> StackRow:
    """Return the stack of a query, if the caller may read the resource's metadata.

    Raises:
        NoSuchStack: it does not exist.
        Refused: the caller's key belongs to another stack.
        Forbidden: the caller's key belongs to another resource.
    """
    bearer = caller().bearer
    if bearer is None:
        return find_stack(arguments)
    stack = stacks.get(dependencies().database, bearer.project_id, bearer.stack_name, bearer.stack_uuid)
    if stack is None or arguments.required("StackName") not in (stack.name, str(stack.uuid), arn(stack)):
        raise Refused
    require(dependencies().database, bearer, stack.id, resource)
    return stack


def _of_physical(physical_id: str) -> StackRow:
    database, project_id = dependencies().database, caller().project_id
    uuid = stack_with(database, project_id, physical_id)
    stack = stacks.find(database, project_id, str(uuid)) if uuid is not None else None
    if stack is None:
        raise QueryFault("ValidationError", f"Stack for {physical_id} does not exist")
    return stack


def _no_such_resource(name: str, stack: StackRow) -> QueryFault:
    return QueryFault("ValidationError", f"Resource {name} does not exist for stack {stack.name}")


def _resource(row: ResourceRow, stack: StackRow, changed: str) -> JsonObject:
    """Return a resource; `changed` is the key of its last update time."""
    return {
        "StackId": arn(stack),
        "StackName": stack.name,
        "LogicalResourceId": row.name,
        "PhysicalResourceId": row.physical_id or "",
        "ResourceType": row.type,
        changed: time(row.updated_at or row.created_at),
        "ResourceStatus": row.state,
        "ResourceStatusReason": row.status_reason,
        "DriftInformation": UNDECIDED,
    }


class _Rollbacks:
    """The rollbacks of a stack that led to an earlier template, by their first event."""

    def __init__(self, stack: StackRow, rows: list[EventRow]) -> None:
        has_rollback = any(row.action == "ROLLBACK" for row in rows)
        rollbacks = revisions.rollbacks(dependencies().database, stack) if has_rollback else []
        self._first = [first for first, _ in rollbacks]
        self._back = [back for _, back in rollbacks]

    def led_back(self, row: EventRow) -> bool:
        """Whether the rollback of an event led to an earlier template."""
        number = bisect_right(self._first, row.id)
        return number > 0 and self._back[number - 1]


def _event(row: EventRow, stack: StackRow, back: _Rollbacks) -> JsonObject:
    is_stack_event = row.resource_name == stack.name and row.physical_id == str(stack.uuid)
    return {
        "EventId": event_uuid(stack.uuid, row.id),
        "StackId": arn(stack),
        "StackName": stack.name,
        "LogicalResourceId": row.resource_name,
        "PhysicalResourceId": row.physical_id or "",
        "ResourceType": row.resource_type,
        "Timestamp": time(row.created_at),
        "ResourceStatus": state(row.action, row.status, back=is_stack_event and back.led_back(row)),
        "ResourceStatusReason": row.reason,
        "ResourceProperties": orjson.dumps(dict(row.properties or {}), default=str).decode(),
    }
