"""Stacks, their previews, and the lookup by name."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from api.openapi.convergence import ConvergenceShow, ConvergeOptions
from api.openapi.observations import Counts, Pause
from api.openapi.operation import Operation, Operations, Response, no_content, ok
from api.openapi.shapes import Link, Page, Progress, State, TypeMatch, Warned
from orchestrator.bodies.model import UUID, Id, Shape, Time, described, optional
from orchestrator.json_types import JsonObject

TAG: Final = "stacks"
TEMPLATE: Final = {
    "heat_template_version": "2021-04-16",
    "parameters": {"length": {"type": "number", "default": 12}},
    "resources": {
        "one": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "length"}}},
        "two": {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["one", "value"]}}},
    },
    "outputs": {"it": {"value": {"get_resource": "one"}}},
}
Flag = bool | Literal["true", "false", "True", "False"]


class StackDefinition(Shape):
    """Fields of create and update requests."""

    template: JsonObject | str | None = optional(
        "Template: an object, or a text in YAML or JSON. Alternative: `template_url`.", TEMPLATE
    )
    template_url: str | None = optional(
        "URL from which the server fetches the template: http or https, public addresses."
    )
    files: dict[str, str] | None = optional(
        "Contents of the files that `get_file` and nested templates refer to, by name.", {}
    )
    files_container: str | None = optional("Object store container with further files.")
    environment: JsonObject | str | None = optional(
        "Environment: an object, or a text in YAML or JSON. Ignored if `environment_files` is given.",
        {"parameters": {}},
    )
    environment_files: list[str] | None = optional(
        "Names of environments in `files`, merged in this order.", []
    )
    parameters: JsonObject | None = optional(
        "Parameter values; they take precedence over the environment.", {"length": 8}
    )
    disable_rollback: Flag | None = optional("Keep created resources after a failure. Default: true.", True)
    timeout_mins: int | None = optional(
        "Timeout of the action in minutes; 0 or null: the server's default.", 60, ge=0
    )
    tags: str | None = optional("Comma-separated tags of at most 80 characters each.", "blue,green")
    keep_going: Flag | None = optional("A failure stops only dependent resources. Extension.", False)
    resume: Flag | None = optional("Continue after an outage that outlasted the timeout. Extension.", True)
    parameters_win: Flag | None = optional(
        "`parameters` also take precedence over `environment_files`. Extension.", False
    )


class StackCreate(StackDefinition):
    """A new stack."""

    stack_name: str = described(
        "Name, unique among the project's live stacks.", "web", pattern=r"^[a-zA-Z][a-zA-Z0-9_.\-]{0,254}$"
    )
    delete_on_failure: Flag | None = optional("Delete the stack if its create fails. Extension.", False)
    adopt_stack_data: str | None = optional(
        "Text of an exported stack, whose physical resources are adopted."
    )


class StackUpdate(StackDefinition):
    """A complete new definition: omitted fields are reset."""

    converge: Flag | None = optional("Observe the real resources before the comparison.", False)
    existing: Flag | None = optional("Merge with the current definition, like PATCH.", False)
    expected_revision: int | None = optional("Refused if the newest revision is another one. Extension.", 3)


class StackPatch(StackUpdate):
    """Changes to the current definition: omitted fields are kept. An empty request repeats the update."""

    clear_parameters: list[str] | None = optional("Parameters to reset to their defaults.", [])


class StackPlace(Shape):
    """Id and URL of a stack."""

    id: Id
    links: list[Link] = described("`self`.")


class StackMade(Warned):
    """An accepted stack."""

    stack: StackPlace = described("The stack.")


class StackCommon(StackPlace):
    """Fields in lists and in single stacks."""

    stack_name: str = described("Name.", "web")
    creation_time: Time
    updated_time: Time | None = described(
        "Request time of the last action, except the create.", "2026-01-01T12:00:00Z"
    )
    deletion_time: Time | None = described("End of the deletion.", None)
    stack_owner: str | None = described("Creating user.", "alice")
    parent: str | None = described("Parent stack.", None)
    stack_user_project_id: str | None = described("Project of the stack users.", None)


class StackListed(StackCommon):
    """A stack in a list."""

    description: str = described("Always empty in lists.", "")
    stack_status: State = described("Action and status.")
    stack_status_reason: str | None = described("Reason.", "Stack CREATE completed successfully")
    tags: list[str] | None = described("Tags; null if none.", ["blue"])
    project: str | None = optional("For administrators.", "demo")
    progress: Progress | None = optional(
        "Progress of a stack that is IN_PROGRESS, with `with_progress`. Extension."
    )
    drift: dict[str, int] | None = optional(
        "Drifted resources, stacks below included, by verdict; `with_drift`. Extension.", {"MISSING": 1}
    )


class StackList(Shape):
    """A page of stacks."""

    stacks: list[StackListed] = described("The stacks.")
    links: list[Link] | None = optional("`next`, if the page is full.")
    count: int | None = optional("Total number of results, with `with_count`.", 1)


class StackDetailed(StackListed):
    """A stack in a list, with further fields."""

    disable_rollback: bool = described("Whether created resources are kept after a failure.", True)
    timeout_mins: int | None = described("Timeout of an action in minutes.", None)
    capabilities: list[Any] = described("Always empty.", [])
    notification_topics: list[Any] = described("Always empty.", [])


class StackDetails(Shape):
    """All stacks of the project."""

    stacks: list[StackDetailed] = described("The stacks.")


class QueuedAction(Shape):
    """Action that starts when the stack is COMPLETE."""

    action: str = described("SUSPEND, RESUME or SNAPSHOT.", "SUSPEND")
    since: Time | None = described("Time of the request.", "2026-01-01T12:00:00Z")


class OutputListed(Shape):
    """An output without its value."""

    output_key: str = described("Name.", "it")
    description: str = described("Description in the template.", "The first string")
    secret: bool | None = optional("true if the value contains a secret; otherwise omitted.")


class Output(OutputListed):
    """An output."""

    output_value: Any = described("Value; null if it has none.", "web-one-x3f9")
    output_error: str | None = optional("Reason for a missing value.")


class OutputInList(OutputListed):
    """An output in a list."""

    output_value: Any = described("With `with_values`: the value; masked if it contains a secret.", "x3f9")
    output_error: str | None = optional("With `with_values`: reason for a missing value.")


class OutputQuery(Shape):
    """Query of the list of outputs."""

    with_values: bool | None = optional("Extension: adds the values, secret values masked.", False)


class StackDetail(StackCommon):
    """Fields of existing and previewed stacks."""

    description: str = described("Description in the template.", "Two random strings")
    template_description: str = described("Same value.", "Two random strings")
    parameters: dict[str, str] = described(
        "All parameters as texts, hidden values masked.", {"OS::stack_name": "web"}
    )
    disable_rollback: bool = described("Whether created resources are kept after a failure.", True)
    timeout_mins: int | None = described("Timeout of an action in minutes.", 60)
    tags: list[str] = described("Tags.", ["blue"])
    capabilities: list[str] = described("Always empty.", [])
    notification_topics: list[str] = described("Always empty.", [])
    outputs: list[Output] | None = optional("Omitted with `resolve_outputs=false` and for a deleted stack.")


class StackShown(StackDetail):
    """A stack."""

    stack_status: State = described("Action and status.")
    stack_status_reason: str | None = described("Reason.", "Stack CREATE completed successfully")
    keep_going: bool = described("Whether a failure stops only dependent resources. Extension.", False)
    resume: bool | None = optional("Whether it continues after an outage; null: rollbacks only. Extension.")
    progress: Progress | None = optional("Progress of the action. Extension.")
    observation_pause: Pause | None = optional(
        "Pause of repairs, or maintenance window, that is in force. Extension."
    )
    observation: Counts | None = optional(
        "Resources by verdict, if any is not in sync; without nested stacks. Extension."
    )
    queued_action: QueuedAction | None = optional("Action that starts when the stack is COMPLETE. Extension.")


class StackShow(Shape):
    """A stack."""

    stack: StackShown = described("The stack.")


class StackPreviewed(StackDetail):
    """Preview of a new stack."""

    id: str = described("Always `None`: the stack does not exist.", "None")
    resources: list[Any] = described(
        "Resources in the engine's format; a nested stack is the list of its resources."
    )


class StackPreview(Warned):
    """Preview of a new stack."""

    stack: StackPreviewed = described("The stack.")


class ResourceChange(Shape):
    """Effect on a resource, in the engine's format."""

    resource_name: str = described("Name.", "one")
    resource_type: str = described("Resource type.", "OS::Heat::RandomString")
    because: Any = optional("Reason of the change. Extension.")
    unchanged: bool | None = optional("For a nested stack: nothing inside changes. Extension.", True)
    certain: bool | None = optional(
        "Whether the forecast does not depend on unknown values. Extension.", True
    )
    restricted_action: Literal["update", "replace"] | None = optional(
        "Action that `restricted_actions` in the environment forbids; the update would fail. Extension.",
        "replace",
    )


class Changes(Shape):
    """Effects on all resources."""

    unchanged: list[ResourceChange] = described("Unchanged resources.")
    updated: list[ResourceChange] = described("Resources updated in place.")
    replaced: list[ResourceChange] = described(
        "Resources to be replaced; the old resource is deleted after the new one is created."
    )
    added: list[ResourceChange] = described("Created resources.")
    deleted: list[ResourceChange] = described("Deleted resources.")


class UpdatePreview(Warned):
    """Effects of an update."""

    resource_changes: Changes = described("All resources, by the effect of the update.")


class Action(Shape):
    """A single key names the action; its value is ignored, except for `converge`."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"minProperties": 1, "maxProperties": 1, "example": {"check": None}},
    )
    suspend: Any = optional("Suspend every resource.")
    resume: Any = optional("Resume every resource.")
    check: Any = optional("Check every resource.")
    cancel_update: Any = optional("Cancel the update and roll back.")
    cancel_without_rollback: Any = optional("Cancel without rollback.")
    converge: ConvergeOptions | None = optional(
        "Observe every resource now, and repair those that differ. Extension."
    )


Comma = Annotated[str, Field(description="Comma-separated list.", examples=["blue,green"])]


class StackQuery(Page):
    """Filter of stacks; unknown keys are ignored."""

    sort_keys: list[str] | None = optional(
        "stack_name, stack_status, creation_time or updated_time.", ["stack_name"]
    )
    sort_dir: Literal["asc", "desc"] | None = optional("Sort direction of all keys.", "asc")
    show_deleted: bool | None = optional("Include deleted stacks.", False)
    show_nested: bool | None = optional("Include nested stacks.", False)
    show_hidden: bool | None = optional("Include stacks with a hidden tag.", False)
    global_tenant: bool | None = optional("Include all projects; requires a policy that allows it.", False)
    with_count: bool | None = optional("Include the total number.", False)
    with_progress: bool | None = optional(
        "Include the progress of stacks that are IN_PROGRESS (right `stacks:progress`). Extension.",
        False,
    )
    with_drift: bool | None = optional("Include the drift (right `observations:index`). Extension.", False)
    search: str | None = optional("Stacks with this text in their name, in any case.", "web")
    tags: Comma | None = optional("Stacks with all of these tags.")
    tags_any: Comma | None = optional("Stacks with any of these tags.")
    not_tags: Comma | None = optional("Stacks that lack some of these tags.")
    not_tags_any: Comma | None = optional("Stacks with none of these tags.")
    id: list[str] | None = optional("Filter by id.", [UUID])
    name: list[str] | None = optional("Filter by name; alias `stack_name`.", ["web"])
    status: list[str] | None = optional(
        "Filter by status: `COMPLETE`, or with action `CREATE_COMPLETE`; alias `stack_status`.",
        ["CREATE_COMPLETE"],
    )
    action: list[str] | None = optional("Filter by action; alias `stack_action`.", ["CREATE"])
    tenant: list[str] | None = optional("Filter by project.", ["demo"])
    username: list[str] | None = optional("Filter by user; alias `stack_owner`.", ["alice"])
    owner_id: list[str] | None = optional("Filter by parent stack; alias `parent`.", [UUID])
    stack_status_reason: list[str] | None = optional("Filter by status reason.")
    disable_rollback: list[str] | None = optional("Filter by `disable_rollback`.", ["true"])
    timeout_mins: list[str] | None = optional("Filter by timeout.", ["60"])
    stack_user_project_id: list[str] | None = optional("Filter by the project of the stack users.")


class ShowQuery(Shape):
    """Options of a stack."""

    resolve_outputs: bool | None = optional("false omits the outputs.", True)
    with_diagnostics: bool | None = optional(
        "Include `diagnostics`: the causes of a failure. Extension.", False
    )


class QueueQuery(Shape):
    """Behaviour during another operation."""

    wait: bool | None = optional(
        "Queue a suspend, resume or snapshot until the operation in progress is complete. Extension.", True
    )


class NestedQuery(Shape):
    """Options of a preview."""

    show_nested: bool | None = optional("Include nested stacks.", False)


class OutputList(Shape):
    """Outputs of a stack."""

    outputs: list[OutputListed | OutputInList] = described("Outputs, without values unless requested.")


class OutputShow(Shape):
    """An output."""

    output: Output = described("The output.")


BUSY: Final = frozenset({409})
ACCEPTED: Final = no_content(202, "Accepted; processing continues. Warnings, if any, are a JSON body.")
STARTED: Final = ok("Started; the response is `null`, except to `converge`.", ConvergenceShow | NoneType)
PREVIEWED: Final = ok("The effect on each resource.", UpdatePreview)
REDIRECTED: Final = {
    302: Response(
        "Repeat the request at `Location`.",
        TypeMatch,
        headers={"Location": "The stack's canonical URL, such as "},
    )
}

OPERATIONS: Final[Operations] = {
    "stacks.index": Operation(TAG, ok("A page of stacks.", StackList), StackQuery),
    "stacks.detail": Operation(TAG, ok("All stacks.", StackDetails)),
    "stacks.create": Operation(
        TAG,
        {201: Response("Accepted.", StackMade, headers={"Location": "The stack's URL."})},
        body=StackCreate,
        refuses=BUSY,
        text="A 400 response lists every fault of the template.",
    ),
    "stacks.show": Operation(TAG, ok("The stack.", StackShow), ShowQuery),
    "PUT stacks.update": Operation(TAG, ACCEPTED, body=StackUpdate, refuses=BUSY),
    "PATCH stacks.update": Operation(TAG, ACCEPTED, body=StackPatch, refuses=BUSY),
    "stacks.delete": Operation(TAG, no_content(204, "Accepted; processing continues."), refuses=BUSY),
    "stacks.act": Operation(TAG, STARTED, QueueQuery, Action, refuses=BUSY),
    "previews.create": Operation(TAG, ok("The preview.", StackPreview), body=StackCreate, refuses=BUSY),
    "PUT previews.update": Operation(TAG, PREVIEWED, NestedQuery, StackUpdate, refuses=BUSY),
    "PATCH previews.update": Operation(TAG, PREVIEWED, NestedQuery, StackPatch, refuses=BUSY),
    "outputs.index": Operation(TAG, ok("The outputs.", OutputList), OutputQuery),
    "outputs.show": Operation(TAG, ok("The output.", OutputShow)),
    "lookup.by_name": Operation("lookup", REDIRECTED, text="By name or id; the query is kept."),
    "lookup.by_arn": Operation("lookup", REDIRECTED),
    **{
        f"lookup.below_{keyword}": Operation("lookup", REDIRECTED)
        for keyword in (
            "resources", "events", "template", "actions", "environment", "files", "revisions", "failures",
            "why", "progress", "hooks",
        )
    },
}  # fmt: skip
