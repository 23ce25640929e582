"""Stacks, their previews, and the lookup by name."""

from __future__ import annotations

from types import NoneType
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from api.openapi.operation import Answer, Operation, Operations, Shape, done, maybe, ok, told
from api.openapi.shapes import STACK, UUID, Found, Id, JsonMap, Link, Page, State, Time

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


class Made(Shape):
    """What a request makes a stack of."""

    template: JsonMap | str | None = maybe(
        "The template: an object, or a text in YAML or JSON. This or `template_url`.", TEMPLATE
    )
    template_url: str | None = maybe(
        "Where the server fetches the template: http or https, public addresses."
    )
    files: dict[str, str] | None = maybe("What `get_file` and types named by a file refer to.", {})
    files_container: str | None = maybe("A container of the object store with more files.")
    environment: JsonMap | str | None = maybe(
        "The environment: an object, or a text in YAML or JSON. Not read when there are `environment_files`.",
        {"parameters": {}},
    )
    environment_files: list[str] | None = maybe("Names among `files`, merged in this order.", [])
    parameters: JsonMap | None = maybe(
        "Values of parameters; they win over the environment's.", {"length": 8}
    )
    disable_rollback: Flag | None = maybe("Keep what was made when it fails; true unless said.", True)
    timeout_mins: int | None = maybe("Minutes for the whole action; 0 or null: the server's.", 60, ge=0)
    tags: str | None = maybe("One text, commas between the tags, each up to 80 characters.", "blue,green")
    keep_going: Flag | None = maybe("A failure stops only what requires it. Ours.", False)
    parameters_win: Flag | None = maybe("`parameters` win over `environment_files` too. Ours.", False)


class StackCreate(Made):
    """A new stack."""

    stack_name: str = told(
        "Unique among the project's live stacks.", "web", pattern=r"^[a-zA-Z][a-zA-Z0-9_.\-]{0,254}$"
    )
    delete_on_failure: Flag | None = maybe("Delete the stack when its create fails. Ours.", False)
    adopt_stack_data: str | None = maybe("A stack as export gives it, as a text: its things are taken over.")


class StackUpdate(Made):
    """A whole new definition: what is left out is gone."""

    converge: Flag | None = maybe("Look at what is there before comparing.", False)
    existing: Flag | None = maybe("As PATCH does it.", False)


class StackPatch(StackUpdate):
    """Changes to the definition there is: what is left out stays. An empty one runs the update again."""

    clear_parameters: list[str] | None = maybe("Parameters that fall back to their defaults.", [])


class StackPlace(Shape):
    """A stack's id and place."""

    id: Id
    links: list[Link] = told("`self`.")


class StackMade(Shape):
    """A stack that was taken on."""

    stack: StackPlace = told("The stack.")


class StackCommon(StackPlace):
    """What lists and shows have in common."""

    stack_name: str = told("Its name.", "web")
    creation_time: Time
    updated_time: Time | None = told(
        "When the last action but the create was asked for.", "2026-01-01T12:00:00Z"
    )
    deletion_time: Time | None = told("When it was gone.", None)
    stack_owner: str | None = told("Who made it.", "somebody")
    parent: str | None = told("The stack it is nested in.", None)
    stack_user_project_id: str | None = told("The project of its users.", None)


class StackListed(StackCommon):
    """A stack in a list."""

    description: str = told("Always empty here.", "")
    stack_status: State = told("Action and status.")
    stack_status_reason: str | None = told("Why.", "Stack CREATE completed successfully")
    tags: list[str] | None = told("Null when there are none.", ["blue"])
    project: str | None = maybe("For administrators.", "demo")


class StackList(Shape):
    """A page of stacks."""

    stacks: list[StackListed] = told("The stacks.")
    links: list[Link] | None = maybe("`next`, when the page is full.")
    count: int | None = maybe("How many there are on all pages, when asked.", 1)


class StackDetailed(StackListed):
    """A stack in a list, with more of it."""

    disable_rollback: bool = told("Whether what was made stays when making it fails.", True)
    timeout_mins: int | None = told("Minutes an action may take.", None)
    capabilities: list[Any] = told("Always empty.", [])
    notification_topics: list[Any] = told("Always empty.", [])


class StackDetails(Shape):
    """All stacks of the project."""

    stacks: list[StackDetailed] = told("The stacks.")


class Progress(Shape):
    """How far an action is, counted in resources."""

    total: int = told("All that are to be visited.", 2)
    ready: int = told("Done.", 1)
    failed: int = told("Failed.", 0)
    running: int = told("Worked at.", 1)
    waiting: int = told("About to be worked at.", 0)
    blocked: int = told("Waiting for others.", 0)
    counted_at: Time | None = told("When this was counted.", "2026-01-01T12:00:00Z")


class OutputListed(Shape):
    """An output without its value."""

    output_key: str = told("Its name.", "it")
    description: str = told("What the template says of it.", "That one")


class Output(OutputListed):
    """An output."""

    output_value: Any = told("Its value, null when it has none.", "web-one-x3f9")
    output_error: str | None = maybe("Why it has none.")


class StackDetail(StackCommon):
    """All that is known of a stack, whether it exists or is previewed."""

    description: str = told("The template's.", "Two of them")
    template_description: str = told("The same.", "Two of them")
    parameters: dict[str, str] = told(
        "Every parameter as a text; hidden ones masked.", {"OS::stack_name": "web"}
    )
    disable_rollback: bool = told("Whether what was made is kept when it fails.", True)
    timeout_mins: int | None = told("Minutes for an action.", 60)
    tags: list[str] = told("Its tags.", ["blue"])
    capabilities: list[str] = told("Always empty.", [])
    notification_topics: list[str] = told("Always empty.", [])
    outputs: list[Output] | None = maybe("Left out when not wanted, and of a deleted stack.")


class StackShown(StackDetail):
    """A stack."""

    stack_status: State = told("Action and status.")
    stack_status_reason: str | None = told("Why.", "Stack CREATE completed successfully")
    keep_going: bool = told("Whether a failure stops only what requires it. Ours.", False)
    progress: Progress | None = maybe("How far the action is. Ours.")


class StackShow(Shape):
    """A stack."""

    stack: StackShown = told("The stack.")


class StackPreviewed(StackDetail):
    """The stack that a create would make."""

    id: str = told("No id: it does not exist.", "None")
    resources: list[Any] = told("In the engine's form; what stands for a stack is a list of what is in that.")


class StackPreview(Shape):
    """The stack that a create would make."""

    stack: StackPreviewed = told("The stack.")


class ResourceChange(Shape):
    """What would become of one resource, in the engine's form."""

    resource_name: str = told("Its name.", "one")
    resource_type: str = told("Its type.", "OS::Heat::RandomString")
    because: Any = maybe("Why. Ours.")
    unchanged: bool | None = maybe("Of one that stands for a stack: nothing in it changes. Ours.", True)
    certain: bool | None = maybe("Whether nothing that is not known yet decides it. Ours.", True)
    restricted_action: Literal["update", "replace"] | None = maybe(
        "What the environment's restricted_actions forbid: for that the update would fail. Ours.", "replace"
    )


class Changes(Shape):
    """What would become of every resource."""

    unchanged: list[ResourceChange] = told("Stay as they are.")
    updated: list[ResourceChange] = told("Changed in place.")
    replaced: list[ResourceChange] = told("Made anew, then the old one removed.")
    added: list[ResourceChange] = told("Made.")
    deleted: list[ResourceChange] = told("Removed.")


class UpdatePreview(Shape):
    """What an update would do."""

    resource_changes: Changes = told("Every resource, by what would become of it.")


class Action(Shape):
    """Exactly one key names the action; its value is not read."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"minProperties": 1, "maxProperties": 1, "example": {"check": None}},
    )
    suspend: Any = maybe("Suspend every resource.")
    resume: Any = maybe("Resume every resource.")
    check: Any = maybe("Look at every resource.")
    cancel_update: Any = maybe("Stop the update and go back.")
    cancel_without_rollback: Any = maybe("Stop, and stay where it is.")


Comma = Annotated[str, Field(description="Commas between them.", examples=["blue,green"])]


class StackQuery(Page):
    """Which stacks are listed; keys that are not known are not read."""

    sort_keys: list[str] | None = maybe(
        "stack_name, stack_status, creation_time or updated_time.", ["stack_name"]
    )
    sort_dir: Literal["asc", "desc"] | None = maybe("For all keys.", "asc")
    show_deleted: bool | None = maybe("Deleted ones too.", False)
    show_nested: bool | None = maybe("Nested ones too.", False)
    show_hidden: bool | None = maybe("Those with a hidden tag too.", False)
    global_tenant: bool | None = maybe("Those of all projects: for nobody unless a policy says so.", False)
    with_count: bool | None = maybe("With their number.", False)
    tags: Comma | None = maybe("That have all of these tags.")
    tags_any: Comma | None = maybe("That have one of these tags.")
    not_tags: Comma | None = maybe("That do not have all of these tags.")
    not_tags_any: Comma | None = maybe("That have none of these tags.")
    id: list[str] | None = maybe("One of these ids.", [UUID])
    name: list[str] | None = maybe("One of these names; also `stack_name`.", ["web"])
    status: list[str] | None = maybe(
        "`COMPLETE`, or with the action `CREATE_COMPLETE`; also `stack_status`.", ["CREATE_COMPLETE"]
    )
    action: list[str] | None = maybe("One of these actions; also `stack_action`.", ["CREATE"])
    tenant: list[str] | None = maybe("One of these projects.", ["demo"])
    username: list[str] | None = maybe("Made by one of these; also `stack_owner`.", ["somebody"])
    owner_id: list[str] | None = maybe("Nested in one of these; also `parent`.", [UUID])
    stack_status_reason: list[str] | None = maybe("With one of these reasons.")
    disable_rollback: list[str] | None = maybe("That keep what was made.", ["true"])
    timeout_mins: list[str] | None = maybe("With one of these limits.", ["60"])
    stack_user_project_id: list[str] | None = maybe("Whose users are in one of these projects.")


class ShowQuery(Shape):
    """How a stack is shown."""

    resolve_outputs: bool | None = maybe("false leaves the outputs out.", True)
    with_diagnostics: bool | None = maybe("`diagnostics`: why it failed, the causes alone. Ours.", False)


class NestedQuery(Shape):
    """How deep to look."""

    show_nested: bool | None = maybe("What is inside nested stacks too.", False)


class OutputList(Shape):
    """What a stack tells its author."""

    outputs: list[OutputListed] = told("The outputs, without their values.")


class OutputShow(Shape):
    """One output."""

    output: Output = told("The output.")


BUSY: Final = frozenset({409})
ACCEPTED: Final = done(202, "Taken on; the work goes on.")
BEGUN: Final = ok("Begun; the answer is `null`.", NoneType)
PREVIEWED: Final = ok("What would become of each resource.", UpdatePreview)
MOVED: Final = {
    302: Answer("Repeat the request there.", Found, headers={"Location": f"The stack's place, as {STACK}."})
}

OPERATIONS: Final[Operations] = {
    "stacks.index": Operation(TAG, ok("A page of stacks.", StackList), StackQuery),
    "stacks.detail": Operation(TAG, ok("All stacks.", StackDetails)),
    "stacks.create": Operation(
        TAG,
        {201: Answer("Taken on; the work goes on.", StackMade, headers={"Location": "The stack's place."})},
        body=StackCreate,
        refuses=BUSY,
        text="Every fault of the template is in the one answer 400.",
    ),
    "stacks.show": Operation(TAG, ok("The stack.", StackShow), ShowQuery),
    "PUT stacks.update": Operation(TAG, ACCEPTED, body=StackUpdate, refuses=BUSY),
    "PATCH stacks.update": Operation(TAG, ACCEPTED, body=StackPatch, refuses=BUSY),
    "stacks.delete": Operation(TAG, done(204, "Taken on; the work goes on."), refuses=BUSY),
    "stacks.act": Operation(TAG, BEGUN, body=Action, refuses=BUSY),
    "previews.create": Operation(TAG, ok("Not made.", StackPreview), body=StackCreate, refuses=BUSY),
    "PUT previews.update": Operation(TAG, PREVIEWED, NestedQuery, StackUpdate, refuses=BUSY),
    "PATCH previews.update": Operation(TAG, PREVIEWED, NestedQuery, StackPatch, refuses=BUSY),
    "outputs.index": Operation(TAG, ok("The outputs.", OutputList)),
    "outputs.show": Operation(TAG, ok("The output.", OutputShow)),
    "lookup.by_name": Operation("lookup", MOVED, text="By its name or its id; the query is kept."),
    "lookup.by_arn": Operation("lookup", MOVED),
    **{
        f"lookup.below_{word}": Operation("lookup", MOVED)
        for word in (
            "resources", "events", "template", "actions", "environment", "files", "revisions", "failures",
            "why", "progress", "hooks",
        )
    },
}  # fmt: skip
