"""The action `converge` of a stack: its options and its answer."""

from __future__ import annotations

from typing import Any, Literal

from orchestrator.bodies.model import UUID, Id, Shape, described, optional
from orchestrator.bodies.observations import Difference, Verdict
from orchestrator.json_types import JsonObject


class ConvergeOptions(Shape):
    """What is observed and repaired."""

    plan: bool | None = optional("Only observe, and answer what would be done.", True)
    adopt: bool | None = optional(
        "Only plan how the template adopts the observed state; nothing is changed.", False
    )
    resources: list[str] | None = optional(
        "Only these resources: paths in the stack, with dots.", ["group.0.server"]
    )


class PlannedRepair(Shape):
    """A resource that differs, or could not be observed."""

    path: str = described("Path in the stack, with dots.", "group.0.server")
    stack_id: Id
    stack_name: str = described("Stack of the resource.", "web")
    resource_name: str = described("Name in the template.", "server")
    resource_type: str = described("Type.", "OS::Nova::Server")
    physical_resource_id: str = described("Object.", UUID)
    verdict: Verdict = described("Verdict.", "MODIFIED")
    reason: str = described("Message of the provider, or the reason why nothing is known.", "")
    differences: list[Difference] = described("Properties that differ, if changed; none is accepted.")
    action: Literal["update", "recover", "recreate", "replace"] | None = described(
        "Action; null: none helps.", "update"
    )
    obstacle: str | None = described("Why the action is not carried out.", None)
    restricted: bool = described("The environment forbids the action: the convergence is refused.", False)
    holds_data: bool = described("The object holds data that its replacement will not have.", False)


class PatchOperation(Shape):
    """An operation of a JSON Patch (RFC 6902)."""

    op: Literal["add", "replace", "remove"] = described("Operation.", "replace")
    path: str = described("JSON Pointer in the template.", "/resources/server/properties/name")
    value: Any = optional("Value; not of a removal.", "web-2")


class LeftDifference(Shape):
    """A difference that no change of the template adopts."""

    path: str = described("Path in the stack.", "group.0.server")
    reason: str = described("Reason.", "an object in error is no desired state: repair it")


class Adoption(Shape):
    """The change of the template that makes the observed state the desired state."""

    patch: list[PatchOperation] = described("Change of the template.")
    template: JsonObject = described("The changed template: update the stack with it.", {})
    left: list[LeftDifference] = described("What the change leaves.")
    recorded: bool = described(
        "The differences are recorded: an update with the template touches no object. Otherwise, as nothing "
        "is observed continuously, request it with `converge`.",
        True,
    )


class Convergence(Shape):
    """Findings and actions."""

    stack_id: Id
    stack_name: str = described("Stack.", "web")
    observed: int = described("Resources that were observed.", 12)
    resources: list[PlannedRepair] = described("Resources that differ, or could not be observed, by path.")
    started: bool = described("An UPDATE of the stack was started.", True)
    warnings: list[str] = described(
        "What speaks against a repair.",
        ["12 of 12 objects of nova do not exist: the fault may be the provider's."],
    )
    adoption: Adoption | None = optional("With `adopt`.")


class ConvergenceShow(Shape):
    """The answer to `converge`."""

    converge: Convergence = described("What was found, and what is done.")
