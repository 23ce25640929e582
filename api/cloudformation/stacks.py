"""Stacks: list, describe, create, update, cancel, delete."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final
from uuid import UUID

import orjson

from api.cloudformation.arguments import MAX_DETAILED_PAGE, MAX_PAGE, Arguments, page, token
from api.cloudformation.names import ARN, arn, find_stack, live_stack, relatives, state
from api.cloudformation.templates import template_of
from api.cloudformation.tokens import once
from api.dependencies import caller, dependencies, outputs_of
from api.request.body import spooled_body
from api.response.serialization import time
from api.v1.outputs import note_secret
from api.v1.stacks import parameters_of
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.outputs.outputs import MAX_OUTPUTS_BYTES, Output
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.stacks.revisions import Brief
from orchestrator.store.stacks.stacks import StackQuery, StackRow

UNDECIDED: Final = {"StackDriftStatus": "NOT_CHECKED"}
CANCEL: Final = orjson.dumps({"cancel_update": None})
ON_FAILURE: Final[Mapping[str, Mapping[str, bool]]] = {
    "DO_NOTHING": {"disable_rollback": True},
    "ROLLBACK": {"disable_rollback": False},
    "DELETE": {"disable_rollback": False, "delete_on_failure": True},
}
DELETED: Final = "DELETE_COMPLETE"
# Rejected, because the caller would rely on them; parameters that only reduce the response are ignored.
NOT_DONE: Final = (
    "DeploymentConfig",
    "EnableTerminationProtection",
    "ResourceTypes",
    "RetainExceptOnCreate",
    "RollbackConfiguration.RollbackTriggers",
    "StackPolicyBody",
    "StackPolicyURL",
    "StackPolicyDuringUpdateBody",
    "StackPolicyDuringUpdateURL",
)


def list_stacks(arguments: Arguments) -> JsonMapping:
    """List the project's stacks, newest first; deleted stacks if their status is requested."""
    statuses = set(arguments.members("StackStatusFilter"))
    rows, has_more = _listing(arguments, MAX_PAGE, deleted=DELETED in statuses)
    briefs = revisions.briefs(dependencies().database, [row.revision_id for row in rows if row.revision_id])
    summaries = [_summary(row, briefs.get(row.revision_id or 0)) for row in rows]
    retained = [item for item in summaries if not statuses or item["StackStatus"] in statuses]
    return {"StackSummaries": retained, **has_more}


def describe_stacks(arguments: Arguments) -> JsonMapping:
    """Return a stack, or all live stacks."""
    if arguments.text("StackName") is not None:
        return {"Stacks": [_described(find_stack(arguments))]}
    rows, has_more = _listing(arguments, MAX_DETAILED_PAGE)
    described, size = list[JsonObject](), 0
    for row in rows:
        described.append(_described(row))
        size += len(orjson.dumps(described[-1], default=str))
        if size > MAX_OUTPUTS_BYTES and row is not rows[-1]:  # the page ends early
            return {"Stacks": described, "NextToken": str(row.uuid)}
    return {"Stacks": described, **has_more}


def create_stack(arguments: Arguments) -> JsonMapping | None:
    """Accept a new stack. A failure rolls it back unless the caller disables that."""
    return once(arguments, partial(_create, arguments), with_body=True)


def _create(arguments: Arguments, context: OperationContext) -> JsonMapping:
    arguments.unsupported(*NOT_DONE)
    arguments.not_both("DisableRollback", "OnFailure")
    failing = arguments.choice("OnFailure", ON_FAILURE)
    disabled = arguments.boolean("DisableRollback")
    values, _ = _values(arguments)
    document = {
        **template_of(arguments),
        **_options(arguments),
        "stack_name": arguments.required("StackName"),
        "parameters": values,
        **ON_FAILURE.get(failing or "", {"disable_rollback": disabled or False}),
    }
    arguments.check()
    with spooled_body(document, context.settings) as body:
        accepted = dependencies().operations.create(context, body)
    dependencies().publish(accepted.messages)
    return {"StackId": f"{ARN}{caller().project_id}:stacks/{accepted.name}/{accepted.uuid}"}


def update_stack(arguments: Arguments) -> JsonMapping | None:
    """Accept a new template, or new values for the current template. Tags are kept unless given."""
    return once(arguments, partial(_update, arguments), with_body=True)


def _update(arguments: Arguments, context: OperationContext) -> JsonMapping:
    arguments.unsupported(*NOT_DONE)
    values, retained = _values(arguments)
    again = arguments.boolean("UsePreviousTemplate") or False
    document: JsonObject = {
        **template_of(arguments, again=again),
        **_options(arguments),
        "parameters": values,
    }
    if (disabled := arguments.boolean("DisableRollback")) is not None:
        document["disable_rollback"] = disabled
    stack = live_stack(arguments)
    patch = again or bool(retained)
    if patch:
        document["clear_parameters"] = _removed_parameters(
            arguments, stack, set(values), retained, again=again
        )
    elif "tags" not in document:
        document["tags"] = ",".join(stack.tags)
    with spooled_body(document, context.settings) as body:
        accepted = dependencies().operations.update(context, stack, body, patch=patch)
    dependencies().publish(accepted.messages)
    return {"StackId": arn(stack)}


def cancel_update_stack(arguments: Arguments) -> None:
    """Cancel the running update and return to the previous state."""
    once(arguments, partial(_cancel, arguments), with_body=False)


def _cancel(arguments: Arguments, context: OperationContext) -> None:
    stack = live_stack(arguments)
    dependencies().publish(dependencies().operations.start_action(context, stack, Body(data=CANCEL)))


def delete_stack(arguments: Arguments) -> None:
    """Start to delete a stack, also during another action."""
    once(arguments, partial(_delete, arguments), with_body=False)


def _delete(arguments: Arguments, context: OperationContext) -> None:
    arguments.unsupported("RetainResources")
    arguments.choice("DeletionMode", ("STANDARD",))
    stack = live_stack(arguments)
    dependencies().publish(dependencies().operations.delete(context, stack))


def _listing(arguments: Arguments, size: int, *, deleted: bool = False) -> tuple[list[StackRow], JsonObject]:
    database, project_id, marker = dependencies().database, caller().project_id, token(arguments)
    if marker is not None and (not _is_id(marker) or stacks.find(database, project_id, marker) is None):
        arguments.invalid("NextToken is none of ours")
    arguments.check()
    hidden = [tag.strip() for tag in dependencies().settings.hidden_stack_tags.split(",") if tag.strip()]
    query = StackQuery(hidden_tags=hidden, show_deleted=deleted, marker=marker, limit=size + 1)
    return page(stacks.list_stacks(database, project_id, query), size, lambda row: str(row.uuid))


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _summary(stack: StackRow, brief: Brief | None) -> JsonObject:
    return {
        **_common(stack, back=brief is not None and brief.copy_of is not None),
        "TemplateDescription": brief.description if brief else "",
    }


def _common(stack: StackRow, *, back: bool) -> JsonObject:
    return {
        "StackId": arn(stack),
        "StackName": stack.name,
        "CreationTime": time(stack.created_at),
        "LastUpdatedTime": time(stack.updated_at),
        "DeletionTime": time(stack.deleted_at),
        "StackStatus": state(stack.action, stack.status, back=back),
        "StackStatusReason": stack.status_reason,
        "DriftInformation": UNDECIDED,
    }


def _described(stack: StackRow) -> JsonObject:
    revision = revisions.desired(dependencies().database, stack)
    outputs = []
    if stack.deleted_at is None:
        resolved = outputs_of(stack)
        outputs = [_output(output) for output in resolved]
    values = parameters_of(stack, revision).items()
    return {
        **_common(stack, back=revision is not None and revision.copy_of is not None),
        **relatives(stack),
        "Description": (revision.outline.get("description") if revision else None) or "",
        "Parameters": [
            {"ParameterKey": name, "ParameterValue": value} for name, value in values if "::" not in name
        ],
        "Outputs": outputs,
        "DisableRollback": stack.disable_rollback,
        "TimeoutInMinutes": stack.timeout_mins,
        "Capabilities": [],
        "NotificationARNs": [],
        "RollbackConfiguration": {},
        "Tags": [_tag(text) for text in stack.tags],
        "EnableTerminationProtection": False,
    }


def _output(output: Output) -> JsonObject:
    """Return an output with its value as text; a failed output has its error instead."""
    note_secret(output)
    value = output.value if isinstance(output.value, str) else orjson.dumps(output.value).decode()
    result = {"OutputValue": value} if output.error is None else {"OutputError": output.error}
    return {"OutputKey": output.key, **result, "Description": output.description or None}


def _options(arguments: Arguments) -> JsonObject:
    """Return the options that create and update share."""
    chosen: JsonObject = {}
    if (minutes := arguments.integer("TimeoutInMinutes")) is not None:
        chosen["timeout_mins"] = minutes
    if arguments.is_given("Tags"):
        chosen["tags"] = ",".join(_tags(arguments))
    return chosen


def _values(arguments: Arguments) -> tuple[dict[str, str], set[str]]:
    """Return the given parameter values, and the names of parameters that keep their values."""
    values: dict[str, str] = {}
    retained: set[str] = set()
    for fields in arguments.structures("Parameters"):
        name, value = fields.get("ParameterKey", ""), fields.get("ParameterValue")
        keeps = fields.get("UsePreviousValue", "").lower() == "true"
        if not name:
            arguments.missing("ParameterKey")
        elif name in values or name in retained:
            arguments.invalid(f"the parameter {name} is given twice")
        elif keeps and value is not None:
            arguments.invalid(f"the parameter {name} has a ParameterValue and UsePreviousValue")
        elif keeps:
            retained.add(name)
        elif value is None:
            arguments.invalid(f"the parameter {name} has no ParameterValue")
        else:
            values[name] = value
    return values, retained


def _removed_parameters(
    arguments: Arguments, stack: StackRow, named: set[str], kept: set[str], *, again: bool
) -> list[str]:
    """Return the parameters that lose their values: neither given nor kept.

    Raises:
        QueryFault: a kept parameter, or a value for the current template, is unknown in the stack.
    """
    revision = revisions.desired(dependencies().database, stack)
    declared: JsonMapping = revision.outline.get("parameters") or {} if revision else {}
    stored: JsonMapping = revision.environment.get("parameters") or {} if revision else {}
    unknown = sorted((kept | named if again else kept) - set(declared))
    for name in unknown:
        arguments.fault("ValidationError", f"The Parameter ({name}) was not defined in template.")
    arguments.check()
    return sorted(set(stored) - named - kept)


def _tags(arguments: Arguments) -> list[str]:
    """Return `Key=Value` for each tag, the format of a stack's tags; the key alone without a value."""
    tags = []
    for fields in arguments.structures("Tags"):
        key, value = fields.get("Key", ""), fields.get("Value", "")
        if not key:
            arguments.missing("Key")
        elif "=" in key or "," in key or "," in value:
            arguments.invalid(f"the tag {key} has a comma, or = in its key")
        tags.append(f"{key}={value}" if value else key)
    return tags


def _tag(text: str) -> dict[str, str]:
    key, _, value = text.partition("=")
    return {"Key": key, "Value": value}
