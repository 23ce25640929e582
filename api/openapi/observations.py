"""Verdicts of the continuous observation."""

from __future__ import annotations

from typing import Any, Final, Literal

from api.openapi.operation import Operation, Operations, no_content, ok
from api.openapi.shapes import Link
from orchestrator.bodies.model import UUID, Id, Shape, Time, described, optional

TAG: Final = "observations"

Verdict = Literal["IN_SYNC", "MODIFIED", "MISSING", "FAILED", "UNKNOWN"]


class Difference(Shape):
    """A property that differs; secret values are masked."""

    property: str = described("Path of the property.", "metadata.role")
    expected: Any = described("Value that the resource was built with.", "web")
    found: Any = described("Observed value.", "db")


class Observed(Shape):
    """The verdict on a resource."""

    verdict: Verdict = described("Verdict.", "MODIFIED")
    reason: str = described("Message of the provider, or the reason why nothing is known.", "")
    since: Time | None = described("Start.", "2026-01-01T12:00:00Z")
    observed_at: Time | None = described("Time of the last observation.", "2026-01-01T12:00:00Z")
    id: str | None = optional("Id of the fault; it stays until the fault ends.", "17")
    differences: list[Difference] | None = optional("Properties that differ, if changed.")


class Deviation(Observed):
    """A resource that is not in sync."""

    stack_name: str = described("Stack.", "web")
    stack_id: Id
    resource_name: str = described("Name in the template.", "server")
    resource_type: str = described("Type.", "OS::Nova::Server")
    physical_resource_id: str = described("Physical resource id.", UUID)
    service: str = described("Service.", "nova")


class PastVerdict(Shape):
    """A verdict that has ended."""

    id: str = described("Id of the fault.", "17")
    stack_name: str = described("Stack.", "web")
    stack_id: Id
    resource_name: str = described("Name in the template.", "server")
    resource_type: str = described("Type.", "OS::Nova::Server")
    physical_resource_id: str = described("Physical resource id.", UUID)
    service: str = described("Service.", "nova")
    verdict: Verdict = described("Verdict.", "MISSING")
    reason: str = described("Reason.", "The object no longer exists.")
    differences: list[Difference] = described("Properties that differed.")
    first_seen: Time = described("First observation.", "2026-01-01T12:00:00Z")
    last_seen: Time = described("Last observation.", "2026-01-01T12:05:00Z")
    ended: Time = described("Observation or operation that ended it.", "2026-01-01T12:06:00Z")


class Pause(Shape):
    """A pause of repairs."""

    id: Id
    reason: str = described("Reason.", "storage migration")
    until: Time = described("End.", "2026-01-01T16:00:00Z")
    repeats: Literal["daily", "weekly"] | None = described("It is a maintenance window.", None)
    created_by: str = described("User.", "alice")


class Loss(Shape):
    """Many objects lost at once: nothing is repaired."""

    since: Time = described("Start.", "2026-01-01T12:00:00Z")
    lost: int = described("Lost objects.", 40)
    of: int = described("Observed objects before.", 100)


class ObservedService(Shape):
    """The observation of a service."""

    service: str = described("Service.", "nova")
    region: str = described("Region.", "RegionOne")
    kind: Literal["lists", "single"] = described("Observed with lists, or by single requests.", "lists")
    observed_at: Time | None = described("Start of the last complete round.", "2026-01-01T12:00:00Z")
    next_at: Time = described("Time of the next round.", "2026-01-01T12:01:00Z")
    interval_seconds: float = described("Present interval.", 60.0)
    objects: int = described("Resources in the last round.", 100)
    unknown_since: Time | None = described("Since when the service gives no answer.", None)
    unknown_reason: str | None = described("Its last answer.", None)
    loss: Loss | None = described("Loss of many objects.", None)


class Counts(Shape):
    """Resources of the stack and the stacks below it, by verdict."""

    IN_SYNC: int = described("In sync, or without a provider.", 10)
    MODIFIED: int = described("Changed.", 1)
    MISSING: int = described("Missing.", 0)
    FAILED: int = described("Failed.", 0)
    UNKNOWN: int = described("Unknown.", 0)


class Observations(Shape):
    """Resources that are not in sync."""

    observations: list[Deviation] = described("In the order of their creation.")
    services: list[ObservedService] = described("Observed services of the project.")
    counts: Counts | None = optional("Of a stack only.")
    links: list[Link] | None = optional("`next`, if the page is full.")


class History(Shape):
    """Ended verdicts, of a stack with the stacks below it."""

    history: list[PastVerdict] = described("The latest first.")
    links: list[Link] | None = optional("`next`, if the page is full.")


class Notification(Shape):
    """Objects that may have changed."""

    objects: list[str] = described("Physical ids, at most 1,000.", [UUID])


class ObservationQuery(Shape):
    """Filters and pagination."""

    verdict: list[Verdict] | None = optional("Filter by verdict.", ["MISSING"])
    type: list[str] | None = optional("Filter by type.", ["OS::Nova::Server"])
    service: list[str] | None = optional("Filter by service.", ["nova"])
    resource: list[str] | None = optional("Filter by name of the resource.", ["server"])
    limit: int | None = optional("Page size, at most 1000.", 100, ge=0)
    marker: str | None = optional("Marker from the link to the next page.", "17")


OPERATIONS: Final[Operations] = {
    "observations.index": Operation(
        TAG, ok("Resources that are not in sync.", Observations), query=ObservationQuery
    ),
    "observations.notify": Operation(
        TAG,
        no_content(202, "Those of the objects that belong to the project are observed next."),
        body=Notification,
        refuses=frozenset({409}),
        text="Instead of a token, the secret of a webhook of the project can sign the request "
        "(`webhook-id`, `webhook-timestamp`, `webhook-signature`).",
    ),
    "observations.history": Operation(TAG, ok("Ended verdicts.", History), query=ObservationQuery),
    "observations.of_stack": Operation(
        TAG, ok("Resources that are not in sync.", Observations), query=ObservationQuery
    ),
    "observations.history_of_stack": Operation(TAG, ok("Ended verdicts.", History), query=ObservationQuery),
}
