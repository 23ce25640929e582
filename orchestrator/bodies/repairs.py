"""Repairs, and answers to them (operations/adr/0019)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from orchestrator.bodies.model import UUID, Answer, Id, Refusal, Request, Text, Time, described, optional
from orchestrator.engine.observation.repairs import RepairStatus

MAX_TEXT: Final = 1_000  # characters
MAX: Final = Field(max_length=MAX_TEXT)
LONG: Final = f"{{}} must be a text of at most {MAX_TEXT} characters."


class Repair(Answer):
    """A repair of a fault."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    id: Id = Field(validation_alias="uuid")
    stack_id: Id = described("Stack of the resource.", UUID, validation_alias="stack_uuid")
    stack_name: str = described("Its name.", "web")
    root_stack_id: Id = described("Stack that is updated.", UUID, validation_alias="root_uuid")
    root_stack_name: str = described("Its name.", "web", validation_alias="root_name")
    resource_name: str = described("Resource.", "server", validation_alias="name")
    resource_type: str = described("Type.", "OS::Nova::Server", validation_alias="type")
    physical_resource_id: str = described("Object.", UUID, validation_alias="physical_id")
    verdict: Literal["MODIFIED", "MISSING", "FAILED"] = described("Fault.", "MISSING")
    verdict_reason: Text = described(
        "Reason of the fault.", "The object no longer exists.", validation_alias="fault_reason"
    )
    differences: list[Any] = described("Properties with their expected and found values.", [])
    action: Literal["update", "recover", "recreate", "replace"] | None = described(
        "Action; null: none helps.", "recreate"
    )
    status: RepairStatus = described("Status.", "pending")
    status_reason: Text = described("Reason of the status.", "the policy is ask", validation_alias="reason")
    effect: str = described(
        "Digest of fault and action, for an approval.", "0f343b0931126a20f133d67c2b018a3b"
    )
    automatic: bool = described("Always true.", True, default=True)
    next_decision_at: Time | None = described("Next decision.", validation_alias="due_at")
    creation_time: Time = described("Creation.", validation_alias="created_at")
    started_at: Time | None = described("Start of the update.")
    ended_at: Time | None = described("End of the update.")
    decided_by: str | None = described("User who approved or declined.", None)
    decided_at: Time | None = described("Time of this answer.")
    decision_reason: str | None = described("Its reason.", None, validation_alias="comment")


class RepairAnswer(Request):
    """An approval or a refusal."""

    effect: Annotated[str | None, MAX, Refusal("invalid-effect", LONG.format("effect"))] = optional(
        "The `effect` that was shown; another one is refused."
    )
    reason: Annotated[str | None, MAX, Refusal("invalid-reason", LONG.format("reason"))] = optional(
        "Reason.", "the data is backed up"
    )
