"""Signals, and the metadata they change (docs/internals/engine-semantics.md §12)."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from orchestrator.errors import (
    ActionNotSupported,
    AmbiguousPhysicalId,
    InvalidRequest,
    NotSupported,
    ProviderBusy,
    ResourceNotAvailable,
    ResourceNotFound,
)
from orchestrator.operations.context import Body
from orchestrator.operations.maintenance.rotate_keys import rotate_keys
from orchestrator.operations.signals.accept import signal
from orchestrator.operations.signals.process import MAX_CLAIMS, process_signals
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.signals import ingest, queue
from tests.scenarios.fake_cloud import Bell, Cloud, Crash, cloud_thing
from tests.scenarios.world import World, test_resource


@pytest.fixture
def cloud():
    return Cloud()


@pytest.fixture
def world(postgres_url, cloud):
    quiet = type("Quiet", (Bell,), {"name": "Cloud::Quiet", "calls_out": False})  # a local type
    made = World(postgres_url, types={**cloud.types(), "Cloud::Quiet": quiet(cloud)})
    yield made
    made.close()


def bell(rings=0, metadata=None, type="Cloud::Bell", **properties):
    made = cloud_thing(type=type, rings=rings, **properties)
    return made if metadata is None else {**made, "metadata": metadata}


def with_bell(world, **options):
    uuid = world.create("s", {"b": bell(**options)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def data(world, name="b"):
    [row] = world.rows("SELECT data, metadata, attributes, lease FROM resource WHERE name = :n", n=name)
    assert row.lease is None
    return row


def pending(world):
    return world.rows("SELECT id, tries FROM signal ORDER BY id")


def signals_told(world, uuid):
    return [item for item in world.event_reasons(uuid, "b") if item.startswith("SIGNAL")]


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


def test_a_sealed_resource_stays_sealed_and_details_are_never_in_the_open(world, cloud):
    uuid = with_bell(world, value="secret")
    [row] = world.rows("SELECT sealed FROM resource")
    assert row.sealed is not None
    world.signal("s", "b", {"password": "hunter2"})
    [signal] = world.rows("SELECT details FROM signal")
    assert b"hunter2" not in bytes(signal.details)
    world.deliver_all()
    [row] = world.rows("SELECT * FROM resource")
    assert row.data is row.metadata is row.attributes is None
    opened = world.cipher.open(row.sealed)
    assert opened["data"]["said"] == [{"password": "hunter2"}]
    assert opened["metadata"] == {"1": {"password": "hunter2"}}
    assert not [item for item in world.event_reasons(uuid, "b") if "hunter2" in item]


def test_the_keys_of_signals_on_their_way_are_rotated(world):
    with_bell(world)
    world.signal("s", "b", {"n": 1})
    old, new = new_key(), new_key()
    sealed = Cipher([old]).seal({"n": 1})
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE signal SET details = :d"), {"d": sealed})
    assert ("signal.details", 1, 0) in list(rotate_keys(world.database, Cipher([new, old])))
    [row] = world.rows("SELECT details FROM signal")
    assert Cipher([new]).open(row.details) == {"n": 1}


def test_types_without_signals_refuse_them_with_heats_message_and_store_nothing(world):
    uuid = world.create("s", {"a": test_resource(), "b": bell(0), "c": test_resource(requires=["b"])})
    with pytest.raises(ResourceNotAvailable, match=r"^The Resource \(b\) is not available.$"):
        world.signal("s", "b", {})
    world.deliver(1)
    with pytest.raises(ResourceNotAvailable, match=r"^The Resource \(b\) is not available.$"):
        world.signal("s", "b", {})
    world.deliver_all()
    with pytest.raises(
        ActionNotSupported, match=r"^signal is not supported for resource\. \(resource: a, type: \S+\)$"
    ):
        world.signal("s", "a", {})
    with pytest.raises(ResourceNotFound, match=r"^The Resource \(zz\) could not be found in Stack s.$"):
        world.signal("s", "zz", {})
    for action in ("SUSPEND", "DELETE"):
        with world.database.engine.begin() as connection:
            connection.execute(text("UPDATE resource SET action = :a WHERE name = 'b'"), {"a": action})
        for details in ({}, {"unset_hook": "pre-create"}):
            with pytest.raises(NotSupported) as refused:
                world.signal("s", "b", details)
            assert str(refused.value) == f"Signal resource during {action} is not supported."
        assert (
            world.event_reasons(uuid, "b")[-1] == f"{action}_COMPLETE Cannot signal resource during {action}"
        )
    assert pending(world) == []


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


def test_a_signal_that_is_nested_too_deep_is_refused_and_nothing_is_left(world):
    with_bell(world)
    body = Body(b'{"a":' + b"[" * 300 + b"]" * 300 + b"}")
    with pytest.raises(InvalidRequest, match="nested deeper than 100 levels"):
        signal(world.context, world.stack_row("s"), "b", body)
    assert pending(world) == []


def test_a_physical_id_that_two_have_is_refused(world):
    world.create("s", {"a": test_resource(), "b": test_resource()})
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE resource SET physical_id = 'same'"))
    message = r"^Multiple resources were found with the physical ID \(same\).$"
    with pytest.raises(AmbiguousPhysicalId, match=message):
        world.mark("s", "same")


def test_other_projects_see_nothing_of_it(world):
    with_bell(world)
    stack = world.stack_row("s")
    with world.database.engine.begin() as connection:
        other = connection.execute(text("SELECT id FROM resource")).scalar_one()
    with world.database.connect() as db:
        assert ingest.accept(db, [ingest.NewSignal(stack.id + 1, other, b"x", True, 1.0)]) == [None]
        queue.record_refusal_event(db, stack.id + 1, other, "DELETE")
        queue.mark(db, stack.id + 1, other, "r", healthy=False)
    assert pending(world) == []
    assert not [
        item for item in world.event_reasons(str(stack.uuid), "b") if "CHECK" in item or "Cannot" in item
    ]


def test_signals_that_come_together_are_written_down_together(world):
    """Each caller gets its own answer, and only the oldest signal of a resource sends a message."""
    world.create("s", {"a": bell(), "b": bell(), "gone": bell()})
    world.deliver_all()
    stack = world.stack_row("s")
    ids = {row.name: row.id for row in world.rows("SELECT id, name FROM resource")}
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE resource SET action = 'SUSPEND' WHERE name = 'gone'"))

    def given(name, always=False):
        return ingest.NewSignal(stack.id, ids[name], world.cipher.seal({"n": name}), always, 60.0)

    with world.database.connect(hot=True) as db:
        reported = ingest.accept(db, [given(name) for name in ("a", "gone", "b", "a")])
        assert reported == [True, None, True, False]
        assert ingest.accept(db, [given("b"), given("gone", always=True)]) == [False, True]
        assert ingest.accept(db, [given("gone")]) == [None]
    rows = world.rows("SELECT resource_id FROM signal ORDER BY id")
    assert [row.resource_id for row in rows] == [ids[name] for name in ("a", "b", "a", "b", "gone")]
