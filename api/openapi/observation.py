"""Policies, pauses and accepted differences of the observation, and repairs."""

from __future__ import annotations

from typing import Final

from api.openapi.operation import Operation, Operations, Response, ok
from api.openapi.shapes import Page
from orchestrator.bodies.model import Shape, described, optional
from orchestrator.bodies.observation_policies import Kind, Mode, ObservationPolicy, ObservationPolicyCreate
from orchestrator.bodies.repairs import Repair, RepairAnswer
from orchestrator.engine.observation.repairs import RepairStatus

OBSERVATION: Final = "observation"


class ObservationPolicyList(Shape):
    """Policies, pauses and acceptances."""

    observation_policies: list[ObservationPolicy] = described("Oldest first.")


class ObservationPolicyShow(Shape):
    """A policy, a pause or an acceptance."""

    observation_policy: ObservationPolicy = described("The policy.")


class ObservationPolicyQuery(Page):
    """Filter."""

    kind: Kind | None = optional("Filter by kind.", "pause")
    stack: str | None = optional("Only those of a stack, by name or id.", "web")
    history: bool | None = optional("Include policies that were removed, replaced or have expired.", True)


class EffectiveQuery(Shape):
    """The object."""

    stack: str = described("Stack, by name or id.", "web")
    resource: str | None = optional("Path of a resource in the stack.", "one")


class Effective(Shape):
    """What applies to an object."""

    mode: Mode = described("Mode of the most specific policy; without a policy `report`.", "report")
    policy: ObservationPolicy | None = described("This policy.")
    pause: ObservationPolicy | None = described("The pause or the maintenance window in progress.")


class EffectiveShow(Shape):
    """What applies to an object."""

    effective: Effective = described("Policy and pause.")


class RepairList(Shape):
    """Repairs."""

    repairs: list[Repair] = described("Oldest first.")


class RepairShow(Shape):
    """A repair."""

    repair: Repair = described("The repair.")


class RepairQuery(Page):
    """Filter of repairs."""

    status: RepairStatus | None = optional("Filter by status.", "pending")
    stack: str | None = optional("Only those of a stack and its nested stacks, by name or id.", "web")


OPERATIONS: Final[Operations] = {
    "observation_policies.index": Operation(
        OBSERVATION, ok("The policies.", ObservationPolicyList), ObservationPolicyQuery
    ),
    "observation_policies.create": Operation(
        OBSERVATION,
        {201: Response("Created.", ObservationPolicyShow, headers={"Location": "The policy's URL."})},
        body=ObservationPolicyCreate,
    ),
    "observation_policies.effective": Operation(
        OBSERVATION, ok("Policy and pause of the object.", EffectiveShow), EffectiveQuery
    ),
    "observation_policies.show": Operation(OBSERVATION, ok("The policy.", ObservationPolicyShow)),
    "observation_policies.delete": Operation(OBSERVATION, {204: Response("Ended.")}),
    "repairs.index": Operation(OBSERVATION, ok("The repairs.", RepairList), RepairQuery),
    "repairs.show": Operation(OBSERVATION, ok("The repair.", RepairShow)),
    "repairs.approve": Operation(
        OBSERVATION,
        ok("The repair.", RepairShow),
        body=RepairAnswer,
        body_required=False,
        refuses=frozenset({409}),
    ),
    "repairs.decline": Operation(
        OBSERVATION,
        ok("The repair.", RepairShow),
        body=RepairAnswer,
        body_required=False,
        refuses=frozenset({409}),
    ),
}
