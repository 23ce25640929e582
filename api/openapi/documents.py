"""Documents, snapshots, revisions and diagnosis of a stack."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.operation import Operation, Operations, no_content, ok
from api.openapi.shapes import Link, Page, Progress, State
from api.openapi.stacks import BUSY, TEMPLATE, QueuedAction, QueueQuery
from orchestrator.bodies.model import UUID, Id, Shape, Time, described, optional
from orchestrator.json_types import JsonObject

TAG: Final = "documents"
SNAPSHOTS: Final = "snapshots"
HISTORY: Final = "history"
WHY: Final = "why"

Files = dict[str, str]


class Template(Shape):
    """A template as stored, with its original keys."""

    heat_template_version: Any = optional("Template version of a HOT template.", "2021-04-16")
    resources: Any = optional("The resources.", TEMPLATE["resources"])


class Environment(Shape):
    """An environment, values of hidden parameters masked."""

    parameters: JsonObject = described("Parameter values.", {"length": 8})
    parameter_defaults: JsonObject = described(
        "Default values of parameters of this name in all templates.", {}
    )
    resource_registry: JsonObject = described("Replacements of resource types.", {"resources": {}})
    encrypted_param_names: list[str] | None = optional("Masked parameters.", [])
    event_sinks: list[Any] | None = optional("Additional event sinks.", [])


class Export(Shape):
    """A stack as a document for `adopt_stack_data`."""

    name: str = described("Name.", "web")
    id: Id
    action: str = described("Action.", "CREATE")
    status: str = described("Status.", "COMPLETE")
    template: JsonObject = described("The template.", TEMPLATE)
    environment: JsonObject = described("The environment.", {})
    files: Files = described("The files.", {})
    resources: JsonObject = described("Physical resources.", {})


class SnapshotHead(Shape):
    """A snapshot."""

    id: Id
    name: str | None = described("Name.", "before the upgrade")
    action: str | None = described("CREATE or DELETE.", "CREATE")
    status: str | None = described("Status.", "IN_PROGRESS")
    status_reason: str | None = described("Reason.", None)
    creation_time: Time
    data: Any = described("The stack in the format of an export.", None)


class SnapshotList(Shape):
    """A stack's snapshots."""

    snapshots: list[SnapshotHead] = described("Oldest first.")
    links: list[Link] | None = optional("`next`, if the page is full. Extension.")


class SnapshotShow(Shape):
    """A snapshot."""

    snapshot: SnapshotHead = described("The snapshot.")


class SnapshotCreate(Shape):
    """Options of a snapshot."""

    name: str | None = optional("Name.", "before the upgrade")


class Revision(Shape):
    """A revision of a stack."""

    number: int = described("Revision number, starting with 1.", 1)
    action: str = described("Requested action.", "CREATE")
    outcome: str | None = described("Result; null while in progress.", "complete")
    is_desired: bool = described("Whether this is the stack's desired revision.", True)
    is_last_good: bool = described("Whether this is the last successful revision.", True)
    copy_of: int | None = described("The revision that a rollback restored.", None)
    created_by: str | None = described("Requesting user.", "alice")
    creation_time: Time
    ended_time: Time | None = described("End time.", "2026-01-01T12:00:09Z")
    seconds: float | None = described("Duration in seconds.", 9.25)
    links: list[Link] = described("`self` and `stack`.")


class RevisionDetail(Revision):
    """A revision and its effects."""

    reason: str | None = described("Reason of the result.", "Stack CREATE completed successfully")
    resources: JsonObject | None = described(
        "Numbers of created, updated, replaced, deleted and failed resources.", {"created": 2}
    )
    failures: int = described("Number of causes of failure.", 0)
    description: str = described("Description in the template.", "Two random strings")
    parameters: dict[str, str] = described("All parameters as texts, hidden values masked.", {"length": "8"})
    files: list[str] = described("Names of its files.", [])


class RevisionList(Shape):
    """A page of revisions."""

    revisions: list[Revision] = described("Newest first.")


class RevisionShow(Shape):
    """A revision."""

    revision: RevisionDetail = described("The revision.")


class RevisionQuery(Shape):
    """Pagination of revisions."""

    limit: int | None = optional("Maximum number of results.", 100, ge=0)
    marker: int | None = optional("Return revisions below this number.", 7, ge=0)


class Differences(Shape):
    """Differences between two revisions."""

    before: int = described("First revision.", 1)
    after: int = described("Second revision.", 2)
    reached: bool = described("Whether the stack has reached its desired revision.", True)
    sections: JsonObject = described("Differences by section of the template.", {})


class DiffShow(Shape):
    """Differences between two revisions."""

    diff: Differences = described("The differences.")


class Failure(Shape):
    """A cause of failure."""

    id: int = described("Number, used as marker.", 12)
    resource_name: str | None = described("Failed resource.", "one")
    reason: str = described("Full reason.", "ResourceInError: resources.one: no space left")
    failure_time: Time
    revision: int | None = described("Revision of the action.", 2)
    resource_type: str | None = described("Resource type.", "OS::Heat::RandomString")
    physical_resource_id: str | None = described("Physical resource id, if any.", "web-one-x3f9")
    action: str | None = described("Action on the resource.", "CREATE")
    attempts: int | None = described("Number of attempts.", 1)
    error_type: str | None = described("Error type.", "ResourceInError")
    service: str | None = described("Service that reported the failure, if it is known.", "nova")
    request_id: str | None = described(
        "Request id of the service, if the reason contains one.", f"req-{UUID}"
    )
    next_step: str = described("Suggested next step.", "free storage space")
    path: list[str] = described("With `nested_depth`: path of resources.", ["one"], default=[])
    nested_stack: JsonObject | None = optional("With `nested_depth`: the failed nested stack.")
    causes: list[JsonObject] = described("With `nested_depth`: causes in the nested stack.", [], default=[])
    links: list[Link] = described("`resource` and `stack`.")


class FailureList(Shape):
    """Causes of failure of a stack."""

    failures: list[Failure] = described("In chronological order.")
    more: bool = described("With `nested_depth`: whether further causes exist.", False, default=False)


class FailureQuery(Shape):
    """Filter and pagination of failures."""

    revision: str | None = optional("Only failures of this revision.", "2")
    limit: int | None = optional("Maximum number of results.", 100, ge=0)
    marker: str | None = optional("Return failures after this number.", "12")
    nested_depth: int | None = optional("Include causes in nested stacks up to this depth.", 0, ge=0)


class Summary(Shape):
    """State of a stack."""

    stack_name: str = described("Name.", "web")
    stack_status: State
    stack_status_reason: str | None = described("Reason.", "Stack CREATE started")
    word: str = described("Stable identifier for programs.", "running")
    text: str = described("Explanation for users.", "1 of 2 resources is in progress.")
    since: Time | None = described("Start time.", "2026-01-01T12:00:00Z")
    timeout_at: Time | None = described("Time of the timeout.", "2026-01-01T13:00:00Z")


class ProgressDetail(Summary, Progress):
    """Progress of an action."""


class ProgressShow(Shape):
    """Progress of an action."""

    progress: ProgressDetail = described("Progress counts.")


class Cause(Shape):
    """A cause of failure."""

    resource_name: str | None = described("Failed resource.", "one")
    reason: str | None = described("Reason.", "no space left")
    at: Time | None = described("Time.", "2026-01-01T12:00:00Z")


class WaitingNode(Shape):
    """An unfinished resource."""

    resource_name: str | None = described("Name.", "one")
    resource_type: str | None = described("Resource type.", "OS::Heat::RandomString")
    visit: str = described("Purpose of the visit: update or cleanup.", "update")
    word: str = described("Stable identifier for programs.", "waits")
    text: str = described("Explanation for users.", "waits for two")
    since: Time | None = described("Start time.", "2026-01-01T12:00:00Z")


class DesiredRevision(Shape):
    """The desired revision and the last revision that the stack reached."""

    number: int | None = described("Number of the desired revision.", 2)
    reached: bool = described("Whether the stack has reached it.", False)
    last_reached: int | None = described("Number of the last revision that the stack reached.", 1)


class Unrepaired(Shape):
    """A fault that the observation found, and that is not repaired."""

    id: Id
    resource_name: str = described("Resource.", "web")
    verdict: str = described("MODIFIED, MISSING or FAILED.", "MISSING")
    action: str | None = described("The repair: update, recreate or replace.", "recreate")
    status: str = described("Status of the repair.", "waiting")
    reason: str = described("Reason of the status.", "repairs are paused: maintenance")
    next_decision_at: Time | None = described("Next decision.")


class Why(Summary):
    """Explanation of an unfinished stack."""

    progress: Progress = described("Status.")
    running: Any = optional("Number of resources in progress.", 1)
    causes: list[Cause] = described("Causes of failure.")
    causes_count: int = described("Number of causes.", 0)
    accepts: list[str] = described("Actions that are accepted now.", ["update", "delete"])
    desired_revision: DesiredRevision = described("Whether the stack has reached its desired revision.")
    queued_action: QueuedAction | None = described("Action that starts when the stack is COMPLETE.", None)
    waiting: list[WaitingNode] = described("Nodes that block further nodes first.")
    repairs: list[Unrepaired] | None = optional("Faults that are not repaired; not for a single resource.")


class WhyShow(Shape):
    """Explanation of an unfinished stack."""

    why: Why = described("The explanation.")
    links: list[Link] | None = optional("`next`, if further nodes exist.")


class WhyQuery(Shape):
    """Pagination."""

    limit: int | None = optional("Maximum number of results, at most 200.", 50, ge=0)
    marker: str | None = optional("Marker from the link of the previous page.", "update.7.12")


EXPORTED: Final = "Requires permission of the operator."
OPERATIONS: Final[Operations] = {
    "documents.template": Operation(TAG, ok("The template.", Template)),
    "documents.environment": Operation(TAG, ok("The environment.", Environment)),
    "documents.files": Operation(TAG, ok("Content by name.", Files)),
    "adoption.export": Operation(TAG, ok("The stack as a document.", Export), text=EXPORTED, refuses=BUSY),
    "adoption.abandon": Operation(TAG, ok("The stack as a document.", Export), text=EXPORTED, refuses=BUSY),
    "snapshots.create": Operation(
        SNAPSHOTS, ok("Started or queued.", SnapshotHead), QueueQuery, SnapshotCreate, refuses=BUSY
    ),
    "snapshots.index": Operation(SNAPSHOTS, ok("A page of snapshots.", SnapshotList), Page),
    "snapshots.show": Operation(SNAPSHOTS, ok("The snapshot.", SnapshotShow)),
    "snapshots.delete": Operation(SNAPSHOTS, no_content(204, "Accepted."), refuses=BUSY),
    "snapshots.restore": Operation(
        SNAPSHOTS, no_content(202, "Accepted; processing continues."), refuses=BUSY
    ),
    "revisions.index": Operation(HISTORY, ok("The revisions.", RevisionList), RevisionQuery),
    "revisions.show": Operation(HISTORY, ok("The revision.", RevisionShow)),
    "revisions.template": Operation(HISTORY, ok("The template.", Template)),
    "revisions.environment": Operation(HISTORY, ok("The environment.", Environment)),
    "revisions.files": Operation(HISTORY, ok("Content by name.", Files)),
    "revisions.diff": Operation(HISTORY, ok("The differences.", DiffShow)),
    "revisions.rollback": Operation(
        HISTORY, no_content(202, "Accepted; processing continues."), refuses=BUSY
    ),
    "revisions.failures": Operation(HISTORY, ok("The causes.", FailureList), FailureQuery),
    "why.of_stack": Operation(WHY, ok("The explanation.", WhyShow), WhyQuery),
    "why.of_resource": Operation(WHY, ok("The explanation.", WhyShow)),
    "why.progress": Operation(WHY, ok("Progress counts.", ProgressShow)),
}
