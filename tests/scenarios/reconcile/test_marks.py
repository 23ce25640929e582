"""Marks on a resource's health (docs/internals/engine-semantics.md §12)."""

from __future__ import annotations

import pytest

from orchestrator.errors import ActionInProgress, InvalidRequest, ResourceNotFound
from orchestrator.operations.signals import health_marks
from tests.scenarios.signals.bells import bell, with_bell


def test_a_marked_resource_is_replaced_by_the_next_update(world, cloud):
    uuid = with_bell(world)
    [before] = world.rows("SELECT physical_id FROM resource")
    world.mark("s", before.physical_id, resource_status_reason="it smells")
    assert world.event_reasons(uuid, "b")[-1] == "CHECK_FAILED it smells"
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [after] = world.rows("SELECT physical_id FROM resource")
    assert after.physical_id != before.physical_id
    assert list(cloud.things) == [after.physical_id]


def test_a_mark_can_be_taken_back_and_says_nothing_else(world):
    uuid = with_bell(world)
    reported = len(world.event_reasons(uuid, "b"))
    world.mark("s", "b", unhealthy=False)
    assert len(world.event_reasons(uuid, "b")) == reported
    world.mark("s", "b")
    world.mark("s", "b", unhealthy=False, resource_status_reason="fine again")
    world.mark("s", "b", unhealthy=False)
    assert world.event_reasons(uuid, "b")[reported:] == [
        "CHECK_FAILED state changed by resource_mark_unhealthy api",
        "CHECK_COMPLETE fine again",
    ]
    world.patch("s")
    world.deliver_all()
    assert world.rows("SELECT 1 FROM resource WHERE deposed") == []


def test_a_resource_cannot_be_marked_while_a_worker_is_calling_its_provider(world, cloud, monkeypatch):
    monkeypatch.setattr(health_marks, "MARK_SECONDS", 0.0)
    uuid = world.create("s", {"b": bell(1)})

    def meanwhile(ctx):
        with pytest.raises(
            ActionInProgress, match=r"^Stack s already has an action \(CREATE\) in progress.$"
        ):
            world.mark("s", "b")

    cloud.on["create"] = meanwhile
    world.deliver_all()
    assert "create b" in cloud.calls
    cloud.on["signal"] = meanwhile
    world.signal("s", "b", {})
    world.deliver_all()
    assert "signal b" in cloud.calls
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.signal("s", "b", {})
    world.deliver_all()  # now with no operation open
    assert not [item for item in world.event_reasons(uuid, "b") if "CHECK" in item]


def test_a_mark_that_makes_no_sense_is_refused(world):
    with_bell(world)
    for additional, message in (
        ({"zz": 1}, "Invalid keys in resource mark unhealthy {'zz'}"),
        (
            {"unhealthy": "maybe"},
            'Unrecognized value "maybe" for "mark_unhealthy", acceptable values are: true, false.',
        ),
        (
            {"resource_status_reason": 5},
            "Data supplied was not valid: resource_status_reason is not a string",
        ),
    ):
        with pytest.raises(InvalidRequest) as refused:
            world.mark("s", "b", **additional)
        assert str(refused.value) == message
    with pytest.raises(ResourceNotFound, match=r"^The Resource \(zz\) could not be found in Stack s.$"):
        world.mark("s", "zz")
