"""Verdicts of the continuous observation."""

from __future__ import annotations

from typing import Final, Literal

from api.openapi.operation import Operation, Operations, no_content, ok
from api.openapi.shapes import Link
from orchestrator.bodies.model import Id, Shape, Time, described, optional
from orchestrator.bodies.observations import Deviation, Notification, ObservedService, PastVerdict, Verdict

TAG: Final = "observations"


class Pause(Shape):
    """A pause of repairs."""

    id: Id
    reason: str = described("Reason.", "storage migration")
    until: Time = described("End.", "2026-01-01T16:00:00Z")
    repeats: Literal["daily", "weekly"] | None = described("It is a maintenance window.", None)
    created_by: str = described("User.", "alice")


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
