"""The processing of signals, and the metadata they change (docs/internals/engine-semantics.md §12)."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from orchestrator.errors import ProviderBusy
from orchestrator.operations.signals.process import MAX_CLAIMS, process_signals
from tests.scenarios.fake_cloud import Crash
from tests.scenarios.signals.bells import bell, data, pending, signals_told, with_bell, world
from tests.scenarios.world import test_resource

__all__ = ["world"]  # fixtures


def test_a_resource_waits_for_its_signals_and_its_dependents_for_it(world):
    resources = {"b": bell(2), "c": test_resource({"get_attr": ["b", "said", 1, "two"]})}
    uuid = world.create("s", resources)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal("s", "b", {"one": 1})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal("s", "b", {"two": "dong"})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert data(world, "c").attributes["output"] == "dong"
    assert signals_told(world, uuid) == ["SIGNAL_IN_PROGRESS Unknown"] * 2
    assert pending(world) == []


def test_signals_are_processed_in_order_even_if_messages_are_lost(world):
    with_bell(world)
    for number in range(10):
        world.signal("s", "b", {"n": number})
    world.deliver_all(shuffle=True, repeat=0.5, lose=0.5)
    assert data(world).data["said"] == [{"n": number} for number in range(10)]
    assert data(world).attributes["said"] == data(world).data["said"]
    assert list(data(world).metadata) == [str(number) for number in range(1, 11)]


def test_signals_beyond_a_batch_are_left_to_the_next_task(world):
    with_bell(world)
    for number in range(MAX_CLAIMS + 3):
        world.signal("s", "b", {"n": number})
    first = world.messages.pop()
    world.messages.clear()  # only the first message arrives
    world.deliver_one(first)
    assert len(pending(world)) == 3
    assert len(world.messages) == 1
    world.deliver()
    assert pending(world) == []


def test_events_report_the_effect_of_a_signal_or_its_data(world):
    uuid = with_bell(world)
    for details in (
        None,
        {},
        {"say": 1},
        {"previous": "ok", "current": "alarm", "reason": "hot"},
    ):
        world.signal("s", "b", details)
    world.deliver_all()
    assert signals_told(world, uuid) == [
        "SIGNAL_COMPLETE No signal details provided",
        "SIGNAL_COMPLETE Unknown",
        "SIGNAL_COMPLETE Signal: 3 so far",
        "SIGNAL_COMPLETE alarm state changed from ok to alarm (hot)",
    ]


def test_an_exception_of_a_type_ends_only_its_signal(world):
    uuid = with_bell(world)
    world.signal("s", "b", {"wrong": True})
    world.signal("s", "b", {"right": True})
    world.deliver_all()
    assert data(world).data["said"] == [{"right": True}]
    assert signals_told(world, uuid) == [
        "SIGNAL_FAILED Signal failed: ValueError: resources.b: nobody understands that",
        "SIGNAL_COMPLETE Unknown",
    ]
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_busy_provider_is_tried_again_and_later_signals_wait_their_turn(world, cloud):
    uuid = with_bell(world)
    cloud.busy = True
    world.signal("s", "b", {"n": 1})
    world.signal("s", "b", {"n": 2})
    world.deliver(2)
    assert [row.tries for row in pending(world)] == [1, 0]
    cloud.busy = False
    world.deliver_all()
    assert data(world).data["said"] == [{"n": 1}, {"n": 2}]
    cloud.busy = True
    world.signal("s", "b", {"n": 3})
    world.deliver_all()
    assert pending(world) == []
    assert (
        signals_told(world, uuid)[-1]
        == "SIGNAL_FAILED Signal failed: ProviderError: resources.b: nobody answers"
    )


def test_a_worker_that_dies_with_a_signal_leaves_it_to_the_next(world, cloud):
    with_bell(world)

    def die(ctx):
        raise Crash

    cloud.on["signal"] = die
    world.signal("s", "b", {"n": 1})
    with pytest.raises(Crash):
        world.deliver()
    del cloud.on["signal"]
    world.sweep_once()
    world.deliver()
    assert len(pending(world)) == 1  # held by the dead
    world.forget_leases()
    world.deliver_all()
    assert data(world).data["said"] == [{"n": 1}]
    assert pending(world) == []


def test_a_resource_is_released_if_another_worker_was_faster(world):
    """A process that waits for the lock of the resource sees the signals from before its wait."""
    with_bell(world)

    def delete_all() -> None:
        with world.database.connect() as db:
            db.execute("DELETE FROM signal")

    world.signal("s", "b", {"n": 1})
    world.after("claim_signals", delete_all)
    world.deliver()
    assert pending(world) == []
    assert not data(world).data.get("said")  # and no lease: `data` looks


def test_a_worker_whose_lease_was_taken_over_writes_nothing(world, cloud):
    with_bell(world)
    [bell_row] = world.rows("SELECT id FROM resource WHERE name = 'b'")

    def overtaken(ctx):
        del cloud.on["signal"]
        world.forget_leases()
        world.signal("s", "b", {"n": 2})
        world.messages.clear()
        process_signals(world.new_engine(), bell_row.id)

    cloud.on["signal"] = overtaken
    world.signal("s", "b", {"n": 1})
    world.deliver_all()
    assert data(world).data["said"] == [{"n": 1}, {"n": 2}]


def test_a_signal_waits_while_the_resource_is_operated_on_and_nothing_is_lost(world, cloud):
    uuid = world.create("s", {"b": bell(1)})
    world.deliver_all()

    def meanwhile(ctx):
        del cloud.on["observe"]
        world.signal("s", "b", {"early": True})
        world.deliver_one(world.messages.pop())
        assert len(pending(world)) == 1

    cloud.on["observe"] = meanwhile
    [node] = world.rows("SELECT id, traversal, queue FROM graph_node WHERE kind = 'update'")
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE graph_node SET due_at = now() WHERE state = 'waiting'"))
    world.deliver_all()
    assert "observe" not in cloud.on
    assert node.queue == "provider"
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert data(world).data["said"] == [{"early": True}]


def test_a_signal_does_not_take_the_resource_of_a_check_that_is_only_slow(world, cloud):
    uuid = world.create("s", {"b": bell(0), "c": test_resource(requires=["b"])})
    world.deliver_all()
    world.update("s", {"b": bell(5), "c": test_resource(requires=["b"])})
    world.deliver(1)

    def slow(ctx):
        del cloud.on["update"]
        world.forget_leases()  # the expiry is not noticed yet
        world.signal("s", "b", {"n": 1})
        world.deliver_one(world.messages.pop())
        assert len(pending(world)) == 1

    cloud.on["update"] = slow
    world.deliver_all()
    assert "update" not in cloud.on
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert data(world).data["said"] == [{"n": 1}]


def test_a_check_does_not_overwrite_the_effect_of_an_earlier_signal(world, cloud):
    """A local type that accepts signals is claimed: its row must not change during the visit."""
    uuid = world.create("s", {"b": bell(type="Cloud::Quiet")})
    world.deliver_all()
    changed = bell(1, type="Cloud::Quiet")
    world.update("s", {"b": changed})
    world.deliver()  # the plan
    [check] = world.messages

    def meanwhile(ctx):
        del cloud.on["update"]
        world.signal("s", "b", {"n": 1})
        world.deliver_one(world.messages.pop())

    cloud.on["update"] = meanwhile
    world.messages.clear()
    world.deliver_one(check)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert data(world).data["said"] == [{"n": 1}]
    assert data(world).metadata == {"1": {"n": 1}}


def test_metadata_set_by_a_signal_outlives_updates_until_the_template_says_otherwise(world):
    uuid = with_bell(world, metadata={"from": "template"})
    assert data(world).metadata == {"from": "template"}
    world.signal("s", "b", {"n": 1})
    world.deliver_all()
    kept = {"from": "template", "1": {"n": 1}}
    assert data(world).metadata == kept
    world.update("s", {"b": bell(3, metadata={"from": "template"})})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert data(world).metadata == kept
    world.signal("s", "b", {"n": 2})
    world.deliver_all()
    world.update("s", {"b": bell(3, metadata={"from": "another"})})
    world.deliver_all()
    assert data(world).metadata == {"from": "another"}


@pytest.mark.parametrize("kind", ["Cloud::Bell", "Cloud::Quiet"])
def test_the_templates_metadata_is_there_when_the_resource_had_to_be_waited_for(world, kind):
    uuid = world.create("s", {"b": bell(1, metadata={"from": "template"}, type=kind)})
    world.deliver_all()
    world.signal("s", "b", {"n": 1})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert data(world).metadata == {"from": "template", "1": {"n": 1}}


def test_a_signal_that_the_deletion_overtakes_does_nothing(world, cloud):
    uuid = with_bell(world)
    world.signal("s", "b", {"n": 1})
    [message] = world.messages
    world.messages.clear()
    cloud.on["delete"] = lambda ctx: world.deliver_one(message)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert "signal b" not in cloud.calls
    assert pending(world) == []


def test_a_signal_during_a_waiting_delete_has_an_event_and_no_effect(world, cloud):
    uuid = with_bell(world)
    world.signal("s", "b", {"n": 1})
    [message] = world.messages
    world.messages.clear()

    def busy(ctx):
        del cloud.on["delete"]
        raise ProviderBusy("not now")

    cloud.on["delete"] = busy
    world.delete("s")
    world.deliver(2)
    world.deliver_one(message)
    assert pending(world) == []
    assert signals_told(world, uuid) == ["SIGNAL_IN_PROGRESS Cannot signal resource during DELETE"]
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert "signal b" not in cloud.calls
