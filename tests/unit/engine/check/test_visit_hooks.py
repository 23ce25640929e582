"""The hooks at which a visit pauses."""

from __future__ import annotations

import pytest

from orchestrator.engine.check import hooks
from orchestrator.engine.check.decide import Compare, Create, Delete, DropRow, Keep, Observe, Step
from orchestrator.engine.check.outcome import Deleted, Outcome, PreviousOperationEnded, Ready, Unchanged, Wait
from orchestrator.resources.base import Observation
from orchestrator.template.resource_registry_entries import HOOKS
from tests.unit.engine.check.visit_samples import RESOURCE, visit

READY = Ready(Observation(True))


@pytest.mark.parametrize(
    ("step", "hook"),
    [
        (Create(), "pre-create"),
        (Compare(), "pre-update"),
        (Delete(), "pre-delete"),
        (DropRow(retained=True), "pre-delete"),
        (DropRow(), None),
        (Observe(), None),
        (Keep(), None),
    ],
)
def test_a_visit_pauses_before_its_step(step: Step, hook: str | None):
    assert hooks.before(visit(hooks=HOOKS), step) == hook
    assert hooks.before(visit(), step) is None
    is_open = RESOURCE._replace(op="CREATE")
    assert hooks.before(visit(is_open, hooks=HOOKS), step) is None


@pytest.mark.parametrize(
    ("outcome", "action", "hook"),
    [
        (READY, "CREATE", "post-create"),
        (READY, "UPDATE", "post-update"),
        (READY, "CHECK", None),
        (Deleted(), "DELETE", "post-delete"),
        (Deleted(silent=True), "DELETE", None),
        (Unchanged(), "UPDATE", None),
        (Wait(1.0), "CREATE", None),
    ],
)
def test_a_visit_pauses_after_its_operation(outcome: Outcome, action: str, hook: str | None):
    assert hooks.after(visit(hooks=HOOKS), outcome, action) == hook
    assert hooks.after(visit(), outcome, action) is None


def test_an_earlier_operation_that_ends_leads_to_the_hook_before_the_update():
    observation = Observation(True)
    pending = visit(RESOURCE._replace(op="CREATE"), hooks=("pre-update",))
    assert hooks.outcome_after_hooks(pending, Ready(observation)) == PreviousOperationEnded(observation)
    for other in (
        visit(hooks=("pre-update",)),
        visit(RESOURCE._replace(op="CREATE"), hooks=("post-update",)),
    ):
        assert hooks.outcome_after_hooks(other, Ready(observation)) == Ready(observation)
    assert hooks.outcome_after_hooks(pending, Unchanged()) == Unchanged()


def test_restrictions_are_stored_with_the_hooks():
    assert hooks.restricted(visit()) == frozenset()
    assert hooks.restricted(visit(hooks=("pre-update", "no-replace"))) == {"replace"}
    assert hooks.restricted(visit(hooks=("no-update", "no-replace"))) == {"update", "replace"}


def test_the_texts_of_a_hook_name_it():
    assert hooks.pause_reason("pre-create") == "CREATE paused until Hook pre-create is cleared"
    assert hooks.cleared_reason("pre-create") == "Hook pre-create is cleared"
