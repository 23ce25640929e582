"""What a stack was made of, its snapshots, its history, why it is not done."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.operation import Operation, Operations, Shape, done, maybe, ok, told
from api.openapi.shapes import UUID, Id, JsonMap, Link, Page, State, Time
from api.openapi.stacks import BUSY, TEMPLATE, Progress

TAG: Final = "documents"
SNAPSHOTS: Final = "snapshots"
HISTORY: Final = "history"
WHY: Final = "why"

Files = dict[str, str]


class Template(Shape):
    """A template as it is stored, keys as they were written."""

    heat_template_version: Any = maybe("The version of the language, of a template in HOT.", "2021-04-16")
    resources: Any = maybe("The resources.", TEMPLATE["resources"])


class Environment(Shape):
    """An environment, values of hidden parameters masked."""

    parameters: JsonMap = told("Values.", {"length": 8})
    parameter_defaults: JsonMap = told("Values of parameters of that name, wherever.", {})
    resource_registry: JsonMap = told("Types put in the place of others.", {"resources": {}})
    encrypted_param_names: list[str] | None = maybe("Which are masked.", [])
    event_sinks: list[Any] | None = maybe("Where events go too.", [])


class Export(Shape):
    """A whole stack as a document, from which `adopt_stack_data` makes one again."""

    name: str = told("Its name.", "web")
    id: Id
    action: str = told("Its action.", "CREATE")
    status: str = told("How that ended.", "COMPLETE")
    template: JsonMap = told("The template.", TEMPLATE)
    environment: JsonMap = told("The environment.", {})
    files: Files = told("The files.", {})
    resources: JsonMap = told("What every resource is in the world.", {})


class SnapshotHead(Shape):
    """A snapshot."""

    id: Id
    name: str | None = told("Its name.", "before the upgrade")
    action: str | None = told("CREATE or DELETE.", "CREATE")
    status: str | None = told("How far it is.", "IN_PROGRESS")
    status_reason: str | None = told("Why.", None)
    creation_time: Time
    data: Any = told("The stack as it was, in the form of an export.", None)


class SnapshotList(Shape):
    """A stack's snapshots."""

    snapshots: list[SnapshotHead] = told("The oldest first.")
    links: list[Link] | None = maybe("`next`, when the page is full. Ours.")


class SnapshotShow(Shape):
    """One snapshot."""

    snapshot: SnapshotHead = told("The snapshot.")


class SnapshotCreate(Shape):
    """What to call it."""

    name: str | None = maybe("Its name.", "before the upgrade")


class Revision(Shape):
    """What a stack was once asked to be."""

    number: int = told("Counted from 1.", 1)
    action: str = told("What asked for it.", "CREATE")
    outcome: str | None = told("How it ended; null while it is carried out.", "complete")
    is_desired: bool = told("Whether the stack is to be this.", True)
    is_last_good: bool = told("Whether it was the last that was complete.", True)
    copy_of: int | None = told("The revision it goes back to.", None)
    created_by: str | None = told("Who asked.", "somebody")
    creation_time: Time
    ended_time: Time | None = told("When it ended.", "2026-01-01T12:00:09Z")
    seconds: float | None = told("How long it took.", 9.25)
    links: list[Link] = told("`self` and `stack`.")


class RevisionDetail(Revision):
    """A revision and what it did."""

    reason: str | None = told("Why it ended so.", "Stack CREATE completed successfully")
    resources: JsonMap | None = told(
        "How many it created, updated, replaced, deleted, and that failed.", {"created": 2}
    )
    failures: int = told("How many causes of failure there are.", 0)
    description: str = told("The template's.", "Two of them")
    parameters: dict[str, str] = told("Every parameter as a text; hidden ones masked.", {"length": "8"})
    files: list[str] = told("The names of its files.", [])


class RevisionList(Shape):
    """A page of revisions."""

    revisions: list[Revision] = told("The newest first.")


class RevisionShow(Shape):
    """One revision."""

    revision: RevisionDetail = told("The revision.")


class RevisionQuery(Shape):
    """How to page through revisions."""

    limit: int | None = maybe("At most so many.", 100, ge=0)
    marker: int | None = maybe("Go on below this number.", 7, ge=0)


class Differences(Shape):
    """What differs between two revisions."""

    before: int = told("The one.", 1)
    after: int = told("The other.", 2)
    sections: JsonMap = told("By section of the template.", {})


class DiffShow(Shape):
    """What differs between two revisions."""

    diff: Differences = told("The differences.")


class Failure(Shape):
    """A cause of failure."""

    id: int = told("Its number, as the marker.", 12)
    resource_name: str | None = told("Of which resource.", "one")
    reason: str = told("The whole reason.", "ResourceInError: resources.one: no space left")
    failure_time: Time
    revision: int | None = told("What was being made.", 2)
    resource_type: str | None = told("Of which type.", "OS::Heat::RandomString")
    physical_resource_id: str | None = told("The id of the thing, if there was one.", "web-one-x3f9")
    action: str | None = told("What was being done to it.", "CREATE")
    attempts: int | None = told("How often it was tried.", 1)
    error_type: str | None = told("The error's own name.", "ResourceInError")
    request_id: str | None = told("The service's, when the reason names one.", f"req-{UUID}")
    next_step: str = told("What may be done about it.", "free what is not needed")
    path: list[str] = told("With `nested_depth`: the resources that lead there.", ["one"], default=[])
    nested_stack: JsonMap | None = maybe("With `nested_depth`: the stack that failed in its place.")
    causes: list[JsonMap] = told("With `nested_depth`: why, in that stack.", [], default=[])
    links: list[Link] = told("`resource` and `stack`.")


class FailureList(Shape):
    """Why a stack failed."""

    failures: list[Failure] = told("In the order they happened.")
    more: bool = told("With `nested_depth`: whether there are more.", False, default=False)


class FailureQuery(Shape):
    """Whose failures, and how to page."""

    revision: str | None = maybe("Those of this revision.", "2")
    limit: int | None = maybe("At most so many.", 100, ge=0)
    marker: str | None = maybe("Go on after this one.", "12")
    nested_depth: int | None = maybe("With the causes so many levels of nested stacks down.", 0, ge=0)


class Summary(Shape):
    """A stack's state in a word and a sentence."""

    stack_name: str = told("Its name.", "web")
    stack_status: State
    stack_status_reason: str | None = told("Why.", "Stack CREATE started")
    word: str = told("Stable: for programs.", "running")
    text: str = told("For people.", "1 of 2 resources is being worked at.")
    since: Time | None = told("Since when.", "2026-01-01T12:00:00Z")
    timeout_at: Time | None = told("When it is given up.", "2026-01-01T13:00:00Z")


class ProgressDetail(Summary, Progress):
    """How far an action is."""


class ProgressShow(Shape):
    """How far an action is."""

    progress: ProgressDetail = told("The counts.")


class Cause(Shape):
    """What failed first."""

    resource_name: str | None = told("Of which resource.", "one")
    reason: str | None = told("Why.", "no space left")
    at: Time | None = told("When.", "2026-01-01T12:00:00Z")


class WaitingNode(Shape):
    """A resource that is not done."""

    resource_name: str | None = told("Its name.", "one")
    resource_type: str | None = told("Its type.", "OS::Heat::RandomString")
    visit: str = told("What for: update or cleanup.", "update")
    word: str = told("Stable: for programs.", "waits")
    text: str = told("For people.", "waits for two")
    since: Time | None = told("Since when.", "2026-01-01T12:00:00Z")


class Why(Summary):
    """What a stack waits for."""

    progress: Progress = told("How far it is.")
    running: Any = maybe("How many are worked at.", 1)
    causes: list[Cause] = told("What failed.")
    causes_count: int = told("How many causes there are.", 0)
    accepts: list[str] = told("What may be asked of it now.", ["update", "delete"])
    waiting: list[WaitingNode] = told("Who holds others up first.")


class WhyShow(Shape):
    """What a stack waits for."""

    why: Why = told("The answer.")
    links: list[Link] | None = maybe("`next`, when there is more.")


class WhyQuery(Shape):
    """How to page."""

    limit: int | None = maybe("At most so many, up to 200.", 50, ge=0)
    marker: str | None = maybe("From the link of the page before.", "update.7.12")


EXPORTED: Final = "Only where the operator allows it."
OPERATIONS: Final[Operations] = {
    "documents.template": Operation(TAG, ok("The template.", Template)),
    "documents.environment": Operation(TAG, ok("The environment.", Environment)),
    "documents.files": Operation(TAG, ok("Name to content.", Files)),
    "adoption.export": Operation(TAG, ok("The stack as a document.", Export), text=EXPORTED, refuses=BUSY),
    "adoption.abandon": Operation(TAG, ok("The stack as a document.", Export), text=EXPORTED, refuses=BUSY),
    "snapshots.create": Operation(SNAPSHOTS, ok("Begun.", SnapshotHead), body=SnapshotCreate, refuses=BUSY),
    "snapshots.index": Operation(SNAPSHOTS, ok("A page of snapshots.", SnapshotList), Page),
    "snapshots.show": Operation(SNAPSHOTS, ok("The snapshot.", SnapshotShow)),
    "snapshots.delete": Operation(SNAPSHOTS, done(204, "Taken on."), refuses=BUSY),
    "snapshots.restore": Operation(SNAPSHOTS, done(202, "Taken on; the work goes on."), refuses=BUSY),
    "revisions.index": Operation(HISTORY, ok("The revisions.", RevisionList), RevisionQuery),
    "revisions.show": Operation(HISTORY, ok("The revision.", RevisionShow)),
    "revisions.template": Operation(HISTORY, ok("The template.", Template)),
    "revisions.environment": Operation(HISTORY, ok("The environment.", Environment)),
    "revisions.files": Operation(HISTORY, ok("Name to content.", Files)),
    "revisions.diff": Operation(HISTORY, ok("The differences.", DiffShow)),
    "revisions.rollback": Operation(HISTORY, done(202, "Taken on; the work goes on."), refuses=BUSY),
    "revisions.failures": Operation(HISTORY, ok("The causes.", FailureList), FailureQuery),
    "why.of_stack": Operation(WHY, ok("What it waits for.", WhyShow), WhyQuery),
    "why.of_resource": Operation(WHY, ok("What it waits for.", WhyShow)),
    "why.progress": Operation(WHY, ok("The counts.", ProgressShow)),
}
