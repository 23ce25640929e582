"""The step of a visit to a resource."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.engine.check.decide import (
    Abandon,
    Adopt,
    Compare,
    Create,
    Delete,
    DropRow,
    InvalidState,
    Keep,
    Observe,
    OutcomeUnknown,
    Recreate,
    ReissueUpdate,
    RunAction,
    Step,
    decide,
)
from orchestrator.engine.check.visit import ResourceView
from tests.unit.engine.check.visit_samples import NEW, RESOURCE, External, Findable, Local, visit

LOST = "the create request was interrupted, and this type cannot look up whether it succeeded"
CREATING = NEW._replace(action="CREATE", status="IN_PROGRESS", op="CREATE", attempt=1)
DEPOSED = RESOURCE._replace(deposed=True)


@pytest.mark.parametrize(
    ("resource", "given", "step"),
    [
        # The traversal.
        (RESOURCE, {"traversal": 6}, Abandon("superseded")),
        (RESOURCE._replace(op="UPDATE"), {"traversal": 6}, Abandon("superseded")),
        (RESOURCE, {"halted_traversal": 7}, Abandon("halted")),
        (RESOURCE._replace(op="UPDATE"), {"halted_traversal": 7}, Observe()),
        # No open operation.
        (NEW, {}, Create()),
        (NEW._replace(physical_id="a-1"), {}, Adopt()),
        (NEW, {"action": "ADOPT"}, Adopt()),
        (RESOURCE._replace(action="ADOPT", status="FAILED"), {}, Adopt()),
        (RESOURCE._replace(action="ADOPT"), {}, Compare()),
        (RESOURCE, {}, Compare()),
        (RESOURCE._replace(status="FAILED"), {}, Compare()),
        (RESOURCE._replace(suspended=True), {}, RunAction("RESUME")),
        (RESOURCE._replace(suspended=True, status="FAILED"), {}, RunAction("RESUME")),
        (RESOURCE._replace(suspended=True, status="FAILED", marked_unhealthy=True), {}, Compare()),
        # The mark was removed, or ended by a check.
        (RESOURCE._replace(suspended=True, marked_unhealthy=True), {}, RunAction("RESUME")),
        # An open operation is completed first.
        (RESOURCE._replace(op="SUSPEND"), {}, RunAction("SUSPEND", request=False)),
        (RESOURCE._replace(op="SUSPEND", lost_seconds=-1.0), {}, RunAction("SUSPEND")),
        (
            RESOURCE._replace(op="SUSPEND", lost_seconds=-1.0, step="x"),
            {},
            RunAction("SUSPEND", request=False),
        ),
        (RESOURCE._replace(op="DISCARD"), {}, Recreate()),
        (RESOURCE._replace(op="DISCARD", requested_seconds=1.0), {}, Recreate(request=False)),
        (RESOURCE._replace(op="UPDATE"), {}, Observe()),
        (RESOURCE._replace(op="UPDATE", lost_seconds=-1.0), {}, ReissueUpdate()),
        (RESOURCE._replace(op="UPDATE", lost_seconds=-1.0, step="confirm"), {}, Observe()),
        (RESOURCE._replace(op="CREATE"), {}, Observe()),
        (CREATING, {}, Create()),
        (CREATING._replace(lost_seconds=5.0), {}, Create(wait_seconds=35.0)),
        (CREATING._replace(lost_seconds=-40.0), {}, Create()),
    ],
)
def test_an_update_node_takes_the_step_of_its_state(resource: ResourceView, given: Any, step: Step):
    assert decide(visit(resource, **given), Findable()) == step


def test_a_create_that_may_have_been_sent_is_repeated_only_if_it_can_be_found():
    assert decide(visit(CREATING._replace(lost_seconds=5.0)), External()) == OutcomeUnknown(LOST)
    assert decide(visit(CREATING._replace(lost_seconds=-100.0)), External()) == OutcomeUnknown(LOST)
    assert decide(visit(CREATING), External()) == Create()  # it was refused
    assert decide(visit(CREATING._replace(lost_seconds=5.0)), Local()) == Create()


@pytest.mark.parametrize(
    ("resource", "action", "step"),
    [
        (RESOURCE, "SUSPEND", RunAction("SUSPEND")),
        (RESOURCE, "CHECK", RunAction("CHECK")),
        (RESOURCE, "RESUME", Keep()),
        (RESOURCE._replace(action="SUSPEND"), "RESUME", RunAction("RESUME")),
        (RESOURCE._replace(suspended=True), "RESUME", RunAction("RESUME")),
        (RESOURCE._replace(action="RESUME", status="FAILED"), "RESUME", RunAction("RESUME")),
        (RESOURCE._replace(deposed=True), "SUSPEND", Keep()),
        (NEW, "SUSPEND", Keep()),
        (NEW, "CHECK", InvalidState("Can not check a, resource not created yet.")),
        (
            RESOURCE._replace(status="FAILED", value_digest=None),
            "CHECK",
            InvalidState("Can not check a, resource was not created."),
        ),
        (
            RESOURCE._replace(status="FAILED"),
            "SUSPEND",
            InvalidState("State ('CREATE', 'FAILED') invalid for suspend"),
        ),
        (RESOURCE._replace(action="CHECK", status="FAILED"), "SUSPEND", RunAction("SUSPEND")),
        (
            RESOURCE._replace(physical_id=None),
            "SNAPSHOT",
            InvalidState("State ('CREATE', 'COMPLETE') invalid for snapshot"),
        ),
    ],
)
def test_an_action_visits_existing_resources(resource: ResourceView, action: str, step: Step):
    assert decide(visit(resource, action=action), Findable()) == step


@pytest.mark.parametrize(
    ("resource", "given", "step"),
    [
        (RESOURCE, {}, Keep()),
        (DEPOSED, {}, Delete()),
        (DEPOSED._replace(op="DELETE"), {}, Delete()),
        (DEPOSED._replace(op="DELETE", requested_seconds=1.0, lost_seconds=-1.0), {}, Delete(request=False)),
        (DEPOSED._replace(op="DISCARD", requested_seconds=1.0), {}, Delete()),
        (DEPOSED._replace(attempt=0, physical_id=None), {}, DropRow()),
        (DEPOSED, {"body": {"deletion_policy": "Retain"}}, DropRow(retained=True)),
        (DEPOSED, {"body": {"deletion_policy": "Snapshot"}}, Delete()),
        (DEPOSED, {"body": {"external_id": "x", "deletion_policy": "Delete"}}, DropRow(retained=True)),
        (DEPOSED, {"retain": True}, DropRow(retained=True)),
        (DEPOSED._replace(physical_id=None), {}, Delete(find_first=True)),
        (
            DEPOSED._replace(physical_id=None, lost_seconds=5.0),
            {},
            Delete(find_first=True, wait_seconds=35.0),
        ),
    ],
)
def test_a_cleanup_deletes_deposed_resources(resource: ResourceView, given: Any, step: Step):
    assert decide(visit(resource, kind="cleanup", **given), Findable()) == step


def test_a_cleanup_without_an_id_depends_on_the_type():
    lost = DEPOSED._replace(physical_id=None)
    assert decide(visit(lost, kind="cleanup"), Local()) == DropRow()
    assert decide(visit(lost, kind="cleanup"), External()) == DropRow()  # its create was refused
    lost = lost._replace(lost_seconds=-100.0)
    assert decide(visit(lost, kind="cleanup"), External()) == OutcomeUnknown(LOST)
