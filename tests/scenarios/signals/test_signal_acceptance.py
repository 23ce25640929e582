"""The acceptance of signals: refusals, encryption, other projects, and signals that arrive together."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from orchestrator.errors import (
    ActionNotSupported,
    AmbiguousPhysicalId,
    InvalidRequest,
    NotSupported,
    ResourceNotAvailable,
    ResourceNotFound,
)
from orchestrator.operations.context import Body
from orchestrator.operations.maintenance.rotate_keys import rotate_keys
from orchestrator.operations.signals.accept import signal
from orchestrator.rate_errors import TooManySignals
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.store.signals import ingest, queue
from tests.scenarios.signals.bells import bell, data, pending, with_bell, world
from tests.scenarios.world import test_resource

__all__ = ["world"]  # fixtures


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


def test_a_signal_during_the_create_of_its_resource_is_accepted_and_processed_after_it(world, cloud):
    cloud.on["created"] = lambda _ctx: world.signal("s", "b", {"n": 1})
    uuid = world.create("s", {"b": bell(1)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert data(world).data["said"] == [{"n": 1}]


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


def test_a_resource_has_a_limited_number_of_pending_signals(world):
    world.create("s", {"a": bell(), "b": bell()})
    world.deliver_all()
    stack = world.stack_row("s")
    ids = {row.name: row.id for row in world.rows("SELECT id, name FROM resource")}

    def given(name, **options):
        return ingest.NewSignal(stack.id, ids[name], world.cipher.seal({"n": name}), False, 60.0, **options)

    with world.database.connect(hot=True) as db:
        ingest.accept(db, [given("a")] * ingest.MAX_PENDING)
        assert ingest.accept(db, [given("a"), given("b")]) == [None, True]
        assert ingest.accept(db, [given("a", internal=True)]) == [False]
    with pytest.raises(TooManySignals, match="Resource a has too many signals that were not processed yet"):
        world.signal("s", "a", {"n": 1})
    world.deliver_all()
    world.signal("s", "a", {"n": 1})


def test_the_pending_signals_of_a_resource_have_a_limited_size(world):
    with_bell(world)
    stack = world.stack_row("s")
    [row] = world.rows("SELECT id FROM resource")
    large = world.cipher.seal({"n": "x" * 1_000_000})
    reported = []
    with world.database.connect(hot=True) as db:
        while None not in reported:
            reported += ingest.accept(db, [ingest.NewSignal(stack.id, row.id, large, False, 60.0)])
    assert len(reported) == -(-ingest.MAX_PENDING_BYTES // len(large)) + 1
