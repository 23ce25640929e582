"""Webhooks."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from orchestrator.bodies.model import (
    UUID,
    Answer,
    Id,
    Refusal,
    Request,
    Text,
    Time,
    described,
    optional,
    refused,
)
from orchestrator.clients.webhook_sender import secret_fault, url_fault
from orchestrator.config import Settings
from orchestrator.store.events.events import read_sequence

MASK: Final = "******"
Events = Literal["all", "stack"]


def checked_position(after: str | None) -> str | None:
    """Return a position in the events.

    Raises:
        PydanticCustomError: it is none.
    """
    if after is not None and after != "now" and read_sequence(after) is None:
        text = f"Invalid sequence '{after}' for 'after': must be the sequence of an event, 0.0 or now."
        raise refused("invalid-sequence", text)
    return after


class WebhookCreate(Request):
    """A new webhook."""

    url: Annotated[str, Refusal("missing-url", "url is required and must be a string")] = described(
        "URL, http or https, with a public address.", "https://example.org/hook"
    )
    secret: Annotated[str | None, Refusal("invalid-secret", "secret must be a string")] = optional(
        "Signing secret: `whsec_` and 24 to 64 bytes in base64. Default: generated."
    )
    stack: Annotated[str | None, Refusal("invalid-stack", "stack must be the name or id of a stack")] = (
        optional("Only events of this stack, by name or id.", "web")
    )
    nested_depth: Annotated[
        int | None, Field(ge=0), Refusal("invalid-depth", "nested_depth must be an integer of 0 or more")
    ] = optional("Include nested stacks up to this depth.", 0)
    events: Annotated[Events | None, Refusal("invalid-events", "events must be one of: all, stack")] = (
        optional("All events, or only events of stacks themselves.", "stack")
    )
    after: Annotated[str | None, Refusal("invalid-sequence", "after must be a string")] = optional(
        "Start after this `sequence`; default: new events only.", "now"
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str, info: ValidationInfo[Settings]) -> str:
        if fault := url_fault(url, private=info.context.webhook_allow_private):
            raise refused("invalid-url", fault)
        return url

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: str | None) -> str | None:
        if secret is not None and (fault := secret_fault(secret)):
            raise refused("invalid-secret", fault)
        return secret

    _check_after = field_validator("after")(checked_position)


def _kind_of(only_stacks: bool) -> Events:
    return "stack" if only_stacks else "all"


class Webhook(Answer):
    """A webhook."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    id: Id = described("A UUID.", UUID, validation_alias="uuid")
    url: str = described(
        "URL with masked query.", "https://example.org/hook?******", validation_alias="shown_url"
    )
    secret: str = described("Secret; unmasked only in the response to its creation.", MASK, default=MASK)
    stack_id: Id | None = described("Only events of this stack.", UUID, validation_alias="stack_uuid")
    stack_name: str | None = described("Name.", "web")
    nested_depth: int = described("Depth of included nested stacks.", 0)
    events: Annotated[Events, BeforeValidator(_kind_of)] = described(
        "All events, or only events of stacks themselves.", "all", validation_alias="only_stacks"
    )
    state: Literal["active", "dead"] = described("`dead` after too many failed deliveries.", "active")
    sequence: str = described("Position of the last delivered event.", "812.41")
    tries: int = described("Consecutive failed deliveries.", 0)
    failing_since: Time | None = described("Start of the failures.", "2026-01-01T12:00:00Z")
    last_error: str | None = described("Last error.", "it answered 500")
    next_attempt_at: Time | None = described(
        "Time of the next attempt.", "2026-01-01T12:00:00Z", validation_alias="due_at"
    )
    delivered: int = described("Number of delivered events.", 12)
    delivered_at: Time | None = described("Time of the last successful delivery.", "2026-01-01T12:00:00Z")
    event_sink: bool = described(
        "Whether it is an event sink of an environment.", False, validation_alias="of_environment"
    )
    created_by: Text = described("Creating user.", "alice")
    creation_time: Time = Field(validation_alias="created_at")

    @model_validator(mode="after")
    def _omit_other_attempts(self) -> Self:
        if not (self.tries and self.state == "active"):
            self.next_attempt_at = None
        return self


class Rearm(Request):
    """Start position."""

    model_config = ConfigDict(extra="ignore")

    after: Annotated[str | None, Refusal("invalid-sequence", "after must be a string")] = optional(
        "Start after this `sequence`; default: resume at its position.", "now"
    )

    _check_after = field_validator("after")(checked_position)


class Delivery(Answer):
    """Result of a delivery."""

    delivered: bool = described("Whether the receiver accepted it.", True)
    status: int | None = described("Status code of the receiver.", 204)
    error: str | None = described("Error.", "it answered 500")
