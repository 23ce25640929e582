"""Verdicts of the continuous observation, and notifications."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from orchestrator.bodies.model import (
    UUID,
    Answer,
    Id,
    Refusal,
    Request,
    Shape,
    Time,
    described,
    optional,
    refused,
)

MAX_OBJECTS: Final = 1_000  # of a notification
MAX_ID: Final = 255  # characters
Verdict = Literal["IN_SYNC", "MODIFIED", "MISSING", "FAILED", "UNKNOWN"]


class Difference(Shape):
    """A property that differs; secret values are masked."""

    property: str = described("Path of the property.", "metadata.role")
    expected: Any = described("Value that the resource was built with.", "web")
    found: Any = described("Observed value.", "db")


class Observed(Answer):
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
    stack_id: Id = Field(validation_alias="stack_uuid")
    resource_name: str = described("Name in the template.", "server", validation_alias="name")
    resource_type: str = described("Type.", "OS::Nova::Server", validation_alias="type")
    physical_resource_id: str = described("Physical resource id.", UUID, validation_alias="physical_id")
    service: str = described("Service.", "nova")

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: Any) -> Any:
        differences = row.differences if row.verdict == "MODIFIED" else []
        return {**row._asdict(), "id": str(row.fault_id), "differences": differences}


class PastVerdict(Answer):
    """A verdict that has ended."""

    id: Id = described("Id of the fault.", "17", validation_alias="fault_id")
    stack_name: str = described("Stack.", "web")
    stack_id: Id = Field(validation_alias="stack_uuid")
    resource_name: str = described("Name in the template.", "server", validation_alias="name")
    resource_type: str = described("Type.", "OS::Nova::Server", validation_alias="type")
    physical_resource_id: str = described("Physical resource id.", UUID, validation_alias="physical_id")
    service: str = described("Service.", "nova")
    verdict: Verdict = described("Verdict.", "MISSING")
    reason: str = described("Reason.", "The object no longer exists.")
    differences: list[Difference] = described("Properties that differed.")
    first_seen: Time = described(
        "First observation.", "2026-01-01T12:00:00Z", validation_alias="first_seen_at"
    )
    last_seen: Time = described("Last observation.", "2026-01-01T12:05:00Z", validation_alias="last_seen_at")
    ended: Time = described(
        "Observation or operation that ended it.", "2026-01-01T12:06:00Z", validation_alias="ended_at"
    )


class Loss(Shape):
    """Many objects lost at once: nothing is repaired."""

    since: Time = described("Start.", "2026-01-01T12:00:00Z")
    lost: int = described("Lost objects.", 40)
    of: int = described("Observed objects before.", 100)


class ObservedService(Answer):
    """The observation of a service."""

    service: str = described("Service.", "nova")
    region: str = described("Region.", "RegionOne")
    kind: Literal["lists", "single"] = described("Observed with lists, or by single requests.", "lists")
    observed_at: Time | None = described("Start of the last complete round.", "2026-01-01T12:00:00Z")
    next_at: Time = described("Time of the next round.", "2026-01-01T12:01:00Z", validation_alias="due_at")
    interval_seconds: float = described("Present interval.", 60.0)
    objects: int = described("Resources in the last round.", 100)
    unknown_since: Time | None = described(
        "Since when the service gives no answer.", None, validation_alias="failing_since"
    )
    unknown_reason: str | None = described("Its last answer.", None, validation_alias="failing_reason")
    loss: Loss | None = described("Loss of many objects.", None)

    @model_validator(mode="before")
    @classmethod
    def _of_row(cls, row: Any) -> Any:
        lost = {"since": row.loss_since, "lost": row.lost, "of": row.lost_of}
        return {**row._asdict(), "loss": lost if row.loss_since is not None else None}


def _checked_id(value: Any) -> Any:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID:
        raise refused("invalid-object", f"Each of the objects must be a text of 1 to {MAX_ID} characters.")
    return value


class Notification(Request):
    """Objects that may have changed."""

    objects: Annotated[
        list[Annotated[str, BeforeValidator(_checked_id)]],
        Field(min_length=1, max_length=MAX_OBJECTS),
        Refusal("invalid-objects", f"objects must be a list of 1 to {MAX_OBJECTS} physical ids."),
    ] = described("Physical ids, at most 1,000.", [UUID])
