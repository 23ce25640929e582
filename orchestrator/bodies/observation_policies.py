"""Policies, pauses and accepted differences of the observation (operations/adr/0018)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from orchestrator.bodies.model import (
    UUID,
    Answer,
    Id,
    Refusal,
    Request,
    Text,
    Time,
    described,
    fault,
    optional,
    refused,
)
from orchestrator.engine.observation import policies
from orchestrator.engine.observation.policies import PERIODS, PROPERTIES, RULE_KINDS
from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.schema.constraint_checks import parse_time

NAME: Final = r"[A-Za-z0-9_.-]{1,64}"  # of a policy
MAX_TEXT: Final = 1_000  # characters
LONGEST_INTERVAL: Final = 86_400.0  # seconds
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "policy": ("kind", "name", "stack", "type", "resource", "mode", "interval", "reason"),
    "pause": ("kind", "stack", "type", "resource", "reason", "starts_at", "until", "repeats"),
    "accept": ("kind", "stack", "path", "reason", "until", "all"),
}
KINDS_ONLY: Final = f"kind must be one of: {', '.join(RULE_KINDS)}"
MODES_ONLY: Final = f"mode must be one of: {', '.join(policies.MODES)}"
Kind = Literal["policy", "pause", "accept"]
Mode = Literal["off", "report", "heal", "ask"]
Repeats = Literal["daily", "weekly"]


class PolicyChecks(NamedTuple):
    """The facts that a new policy is checked with."""

    types: Mapping[str, object]  # the resource types by name
    min_interval: float  # seconds
    now: dt.datetime


def _text(value: Any, info: ValidationInfo) -> Any:
    if value is not None and not (isinstance(value, str) and 1 <= len(value) <= MAX_TEXT):
        raise refused("invalid-text", f"{info.field_name} must be a text of 1 to {MAX_TEXT} characters")
    return value


def _moment(value: Any, info: ValidationInfo) -> Any:
    text = _text(value, info)
    if text is None:
        return None
    try:
        found = parse_time(text)
    except ValueError:
        example = "2026-01-31T12:00:00Z"
        raise refused("invalid-time", f"{info.field_name} must be a time such as {example}") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


CheckedText = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[dt.datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string"})]


class ObservationPolicyCreate(Request):
    """A new policy, pause or acceptance."""

    kind: Annotated[Kind, Refusal("invalid-kind", f"kind must be one of: {', '.join(RULE_KINDS)}")] = (
        described("What to create: a policy, a pause, or an accepted difference.", "policy")
    )
    name: CheckedText | None = optional(
        "Of a policy without another object: environments refer to it (`observation_policy`).", "gold"
    )
    stack: CheckedText | None = optional("Stack, by name or id. Default: the whole project.", "web")
    type: CheckedText | None = optional("Only resources of this type.", "OS::Nova::Server")
    resource: CheckedText | None = optional(
        "Only this resource: its path in the stack, with dots.", "group.0.server"
    )
    mode: Annotated[
        Mode | None,
        BeforeValidator(_text),
        Refusal("invalid-mode", MODES_ONLY),
    ] = optional(
        "Of a policy. `off`: nothing; `report`: verdicts only; `heal`: repair; `ask`: repair after approval.",
        "heal",
    )
    interval: Annotated[float | None, Refusal("invalid-interval", "interval must be a number of seconds")] = (
        optional(
            "Of a policy: longest time between two observations, in seconds, if the resources are to be "
            "observed more often than others (of the project: or more rarely).",
            30.0,
        )
    )
    path: CheckedText | None = optional(
        "Of an acceptance: a pattern for paths of properties in the stack.", "web.properties.metadata.*"
    )
    reason: CheckedText | None = optional(
        "Reason; required for pauses and acceptances.", "planned work on the network"
    )
    starts_at: Moment | None = optional("Start of a pause. Default: now.", "2026-01-01T22:00:00Z")
    until: Moment | None = optional(
        "End of a pause (required) or an acceptance; with `repeats` of the first window.",
        "2026-01-02T02:00:00Z",
    )
    repeats: Annotated[
        Repeats | None,
        BeforeValidator(_text),
        Refusal("invalid-repetition", "repeats must be one of: daily, weekly"),
    ] = optional("The pause is a maintenance window that repeats.", "weekly")
    all: Annotated[bool | None, Refusal("invalid-boolean", "all must be a boolean")] = optional(
        "Required for a path that accepts everything.", False
    )

    @field_validator("interval")
    @classmethod
    def _check_interval(cls, interval: float | None, info: ValidationInfo[PolicyChecks]) -> float | None:
        least = info.context.min_interval
        if interval is not None and not least <= interval <= LONGEST_INTERVAL:
            text = f"interval must be a number of seconds from {least:g} to {LONGEST_INTERVAL:g}"
            raise refused("invalid-interval", text)
        return interval

    @field_validator("type")
    @classmethod
    def _check_type(cls, type_: str | None, info: ValidationInfo[PolicyChecks]) -> str | None:
        types = info.context.types
        if type_ is not None and type_ not in types:
            raise refused(
                "unknown-type", f"The resource type ({type_}) is unknown", hint=did_you_mean(type_, types)
            )
        return type_

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str | None) -> str | None:
        if name is not None and not re.fullmatch(NAME, name):
            raise refused("invalid-name", "name must have 1 to 64 letters, digits, dots, - and _")
        return name

    def contradictions(self, checks: PolicyChecks) -> Iterator[Diagnostic]:
        """Yield the faults of fields that do not fit each other."""
        for key in sorted(self.model_fields_set - set(KEYS[self.kind])):
            known = ", ".join(KEYS[self.kind])
            yield fault(
                "unknown-key", f"Unknown key {key!r} for the kind {self.kind}, must be one of: {known}", key
            )
        if self.kind != "policy" and not (self.reason or "").strip():
            yield fault("missing-reason", "a reason is required", "reason")
        match self.kind:
            case "policy" if self.mode is None:
                yield fault("invalid-mode", MODES_ONLY, "mode")
            case "pause":
                yield from self._faults_of_pause(checks.now)
            case "accept":
                yield from self._faults_of_acceptance(checks.now)
        if self.resource is not None and self.stack is None:
            yield fault("missing-stack", "a resource needs the stack that it belongs to", "stack")
        if self.resource is not None and self.type is not None:
            text = "name a resource or a type, not both: a policy has a single object"
            yield fault("contradiction", text, "type")
        if self.name is not None and (self.stack or self.type or self.resource):
            text = "a policy with a name has no other object: environments refer to it"
            yield fault("contradiction", text, "name")

    def _faults_of_pause(self, now: dt.datetime) -> Iterator[Diagnostic]:
        if self.until is None:
            yield fault("missing-end", "until is required: every pause ends", "until")
        elif self.repeats is None and self.until <= now:
            yield fault("past-time", "until lies in the past", "until")
        elif self.until <= (start := self.starts_at or now):
            yield fault("invalid-time", "until must be after starts_at", "until")
        elif self.repeats is not None and self.until - start >= PERIODS[self.repeats]:
            yield fault("invalid-time", f"a {self.repeats} window must be shorter than its period", "until")

    def _faults_of_acceptance(self, now: dt.datetime) -> Iterator[Diagnostic]:
        if self.until is not None and self.until <= now:
            yield fault("past-time", "until lies in the past", "until")
        if self.stack is None:
            yield fault("missing-stack", "stack is required: paths begin in a stack", "stack")
        path = self.path
        if path is None:
            yield fault("missing-path", "path is required, such as web.properties.metadata.*", "path")
        elif policies.matches_everything(path):
            if self.all is not True:
                text = f"{path!r} accepts every difference; this requires all"
                yield fault("accepts-everything", text, "path")
        elif PROPERTIES not in path:
            text = f"{path!r} must name properties of a resource, such as web.properties.metadata.*"
            yield fault("invalid-path", text, "path")


class ObservationPolicy(Answer):
    """A policy, a pause or an acceptance."""

    id: Id = Field(validation_alias="uuid")
    kind: Kind = described("Kind.", "policy")
    stack_id: Id | None = described("Stack; null: the whole project.", UUID, validation_alias="stack_uuid")
    stack_name: str | None = described("Name.", "web")
    type: Text = described("Only resources of this type.", "OS::Nova::Server")
    resource: Text = described("Only this resource.", None)
    name: Text = described("Of a policy to which environments refer.", None)
    mode: Mode | None = described("Of a policy.", "heal")
    interval: float | None = described(
        "Of a policy: longest time between two observations.", None, validation_alias="interval_seconds"
    )
    path: Text = described("Of an acceptance.", None)
    reason: Text = described("Reason.", None)
    starts_at: Time = described("Start.")
    until: Time | None = described("End, or the end of the first window.", validation_alias="ends_at")
    repeats: Annotated[Repeats | None, BeforeValidator(lambda value: value or None)] = described(
        "Repetition of a maintenance window.", None
    )
    created_by: Text = described("User.", "alice")
    creation_time: Time = described("Creation.", validation_alias="created_at")
    ended_at: Time | None = described("Removal or replacement.")
    ended_by: Text = described("User.", None)
