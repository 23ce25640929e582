"""Wait conditions and their handles: a waiting node is released by the signal, never by a clock (spec A8)."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from orchestrator.engine.messages import CheckMessage
from tests.scenarios.world import World, test_resource

HANDLE = {"type": "OS::Heat::WaitConditionHandle"}
AWS_HANDLE = {"type": "AWS::CloudFormation::WaitConditionHandle"}


def condition(count=1, timeout=300, handle="h", **options):
    properties = {"handle": {"get_resource": handle}, "timeout": timeout, "count": count}
    return {"type": "OS::Heat::WaitCondition", "properties": properties, **options}


def aws_condition(count=1, handle="h"):
    properties = {"Handle": {"get_resource": handle}, "Timeout": 300, "Count": count}
    return {"type": "AWS::CloudFormation::WaitCondition", "properties": properties}


def waiting(world):
    return world.rows("SELECT label FROM graph_node WHERE state = 'waiting' ORDER BY label")


def drain(world):
    """Deliver all messages, without a sweep: no scheduled work becomes due."""
    while world.messages:
        world.deliver()


def metadata(world, name="h"):
    [row] = world.rows("SELECT metadata, sealed FROM resource WHERE name = :n AND NOT deposed", n=name)
    return row.metadata if row.sealed is None else world.cipher.open(row.sealed)["metadata"]


def test_a_condition_waits_for_as_many_signals_as_it_counts_and_is_woken_by_them(world: World):
    resources = {"h": HANDLE, "w": condition(2), "after": test_resource(requires=["w"])}
    uuid = world.create("s", resources, outputs={"data": {"value": {"get_attr": ["w", "data"]}}})
    drain(world)
    assert [row.label for row in waiting(world)] == ["w"]
    world.signal("s", "h")
    drain(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal("s", "h", {"data": "two", "id": "x", "reason": "done"})
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert json.loads(world.outputs("s")["data"]) == {"1": None, "x": "two"}
    assert [item for item in world.event_reasons(uuid, "h") if item.startswith("SIGNAL")] == [
        "SIGNAL_COMPLETE Signal: status:SUCCESS reason:Signal 1 received",
        "SIGNAL_COMPLETE Signal: status:SUCCESS reason:done",
    ]
    assert not [item for item in world.event_reasons(uuid, "w") if item.startswith("SIGNAL")]
    assert world.rows("SELECT 1 FROM signal") == []


def test_a_condition_that_waits_is_woken_at_once_and_watches_once(world: World):
    """A signal for it as well would be a task more; to register again, a statement and a commit more."""
    uuid = world.create("s", {"h": HANDLE, "w": condition(2)})
    drain(world)
    registered = world.record("register_watcher")
    for sent in range(2):
        [node] = world.rows("SELECT id FROM graph_node WHERE state = 'waiting'")
        world.signal("s", "h")
        world.deliver()
        assert [message.node_id for message in world.messages] == [node.id], sent
        assert world.rows("SELECT 1 FROM signal") == []
        drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert registered == []


def test_a_condition_under_observation_is_notified_by_a_signal(world: World):
    """It has read its handle before this was written; its node does not wait yet."""
    uuid = world.create("s", {"h": HANDLE, "w": condition(2)})
    drain(world)

    def send_the_second() -> None:
        before = list(world.messages)
        world.signal("s", "h", {"id": "second"})
        message = world.messages.pop()
        world.messages[:] = []
        world.deliver_one(message)
        world.messages[:] = [*before, *world.messages]

    world.signal("s", "h", {"id": "first"})
    world.deliver()
    world.after("observe_wait_condition", send_the_second)
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT 1 FROM signal") == []


def test_it_waits_until_its_time_is_up_and_no_shorter(world: World):
    world.create("s", {"h": HANDLE, "w": condition(timeout=4000)})
    drain(world)
    [row] = world.rows(
        "SELECT extract(epoch FROM due_at - now()) AS left FROM graph_node WHERE state = 'waiting'"
    )
    assert 3_900 < row.left <= 4_000


@pytest.mark.parametrize("order", ["signal first", "condition first"])
def test_a_signal_at_the_moment_the_condition_looks_is_not_lost(world: World, order):
    """The later writer of the two sees the row of the earlier writer."""
    uuid = world.create("s", {"h": HANDLE, "w": condition(1)})
    while not world.rows("SELECT 1 FROM resource WHERE name = 'h' AND action = 'CREATE'"):
        world.deliver()
    if order == "condition first":
        drain(world)
    world.signal("s", "h")
    if order == "signal first":
        world.messages.reverse()
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_failure_fails_the_condition_with_all_reasons(world: World):
    uuid = world.create("s", {"h": HANDLE, "w": condition(3)})
    drain(world)
    for reason in ("disk full", "no network"):
        world.signal("s", "h", {"status": "FAILURE", "reason": reason})
    drain(world)
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.event_reasons(uuid, "w")[-1] == (
        "CREATE_FAILED WaitConditionFailure: resources.w: disk full;no network"
    )


@pytest.mark.parametrize(("sent", "told"), [(0, "0 of 3 received"), (2, "2 of 3 received - a;b")])
def test_missing_signals_fail_the_condition_and_received_data_is_reported(world: World, sent, told):
    uuid = world.create("s", {"h": HANDLE, "w": condition(3, timeout=60)})
    drain(world)
    for reason in "ab"[:sent]:
        world.signal("s", "h", {"reason": reason})
    drain(world)
    world.elapse(61, "operation", where="op IS NOT NULL")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.event_reasons(uuid, "w")[-1] == f"CREATE_FAILED WaitConditionTimeout: resources.w: {told}"


def test_invalid_signals_have_an_event_and_no_effect(world: World):
    uuid = world.create("s", {"h": HANDLE})
    drain(world)
    for invalid in ({"status": "MAYBE"}, {"colour": "red"}, {"id": ["a"]}):
        world.signal("s", "h", invalid)
    drain(world)
    assert (
        world.event_reasons(uuid, "h")[-3:]
        == ["SIGNAL_FAILED Signal failed: ValueError: resources.h: Metadata format invalid"] * 3
    )
    assert not metadata(world)


def test_a_signal_with_the_same_id_replaces_its_predecessor(world: World):
    uuid = world.create("s", {"h": HANDLE, "w": condition(2)})
    drain(world)
    for data in ("old", "new"):
        world.signal("s", "h", {"id": 5, "data": data})
    drain(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert metadata(world) == {"5": {"data": "new", "reason": "Signal 2 received", "status": "SUCCESS"}}


def test_an_aws_condition_counts_signals_that_say_everything(world: World):
    uuid = world.create("s", {"h": AWS_HANDLE, "w": aws_condition(1)})
    drain(world)
    world.signal("s", "h", {"Status": "SUCCESS"})
    drain(world)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.signal("s", "h", {"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"})
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert metadata(world) == {"u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}


def test_more_signals_after_it_is_over_are_in_its_data(world: World):
    outputs = {"data": {"value": {"get_attr": ["w", "data"]}}}
    world.create("s", {"h": HANDLE, "w": condition(1)}, outputs=outputs)
    drain(world)
    for data in ("one", "two"):
        world.signal("s", "h", {"data": data})
        drain(world)
    assert json.loads(world.outputs("s")["data"]) == {"1": "one", "2": "two"}


def test_a_higher_count_waits_again_and_a_lower_count_does_not(world: World):
    uuid = world.create("s", {"h": HANDLE, "w": condition(1)})
    drain(world)
    world.signal("s", "h")
    drain(world)
    world.update("s", {"h": HANDLE, "w": condition(2)})
    drain(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal("s", "h")
    drain(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.update("s", {"h": HANDLE, "w": condition(1)})
    drain(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"


@pytest.mark.parametrize("gone", ["lower count", "condition"])
def test_an_update_takes_over_from_a_wait_that_would_never_end(world: World, gone):
    uuid = world.create("s", {"h": HANDLE, "w": condition(5), "a": test_resource(requires=["w"])})
    drain(world)
    world.signal("s", "h")
    drain(world)
    kept = {"w": condition(1)} if gone == "lower count" else {}
    world.update("s", {"h": HANDLE, "a": test_resource()} | kept)
    drain(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_another_update_while_it_waits_does_not_make_it_ready(world: World):
    uuid = world.create("s", {"h": HANDLE, "w": condition(1)})
    drain(world)
    world.update("s", {"h": HANDLE, "w": condition(1, timeout="300"), "a": test_resource()})
    drain(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    assert [row.label for row in waiting(world)] == ["w"]
    world.signal("s", "h")
    drain(world)
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_condition_that_goes_has_its_handle_forget(world: World):
    world.create("s", {"h": HANDLE, "w": condition(1)})
    drain(world)
    world.signal("s", "h")
    drain(world)
    assert metadata(world)
    world.update("s", {"h": HANDLE})
    world.deliver_all()
    assert metadata(world) == {}
    world.update("s", {"h": HANDLE, "w2": condition(1)})
    drain(world)
    assert [row.label for row in waiting(world)] == ["w2"]


def test_a_stack_that_goes_leaves_nothing(world: World):
    uuid = world.create("s", {"h": HANDLE, "w": condition(5)})
    drain(world)
    world.signal("s", "h")
    drain(world)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    for table in ("signal", "access", "resource", "watcher"):
        assert world.rows(f"SELECT 1 FROM {table}") == []
    assert not [item for item in world.event_reasons(uuid, "h") if "Cannot signal" in item]


def test_resources_that_are_not_handles_are_refused(world: World):
    uuid = world.create("s", {"h": test_resource(), "w": condition(1)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.event_reasons(uuid, "w")[-1] == (
        "CREATE_FAILED ValueError: resources.w: h is not a valid wait condition handle."
    )
    uuid = world.create("t", {"h": HANDLE, "w": aws_condition(1)})
    world.deliver_all()
    assert (
        world.event_reasons(uuid, "w")[-1]
        == "CREATE_FAILED ValueError: resources.w: WaitCondition invalid Handle h"
    )


def test_a_handle_without_signals_is_not_waited_for(world: World):
    handle = {**HANDLE, "properties": {"signal_transport": "NO_SIGNAL"}}
    uuid = world.create("s", {"h": handle, "w": condition(1)})
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT 1 FROM access") == []


def test_an_update_handle_changes_with_every_update(world: World):
    handle = {"type": "OS::Heat::UpdateWaitConditionHandle"}
    resources = {"h": handle, "w": aws_condition(1)}
    uuid = world.create("s", resources)
    drain(world)
    said = {"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"}
    world.signal("s", "h", said)
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    [before] = world.rows("SELECT key FROM access")
    world.update("s", resources)
    drain(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.signal("s", "h", said)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [after] = world.rows("SELECT key FROM access")
    assert after.key != before.key
    assert len(world.rows("SELECT 1 FROM resource")) == 2


def sweep(world):
    """Repeat lost messages, but bring no timeout forward."""
    with world.database.engine.begin() as db:
        db.execute(text("UPDATE signal SET due_at = now()"))
        db.execute(text("UPDATE graph_node SET due_at = now() WHERE due_at < now() + interval '9 s'"))
    world.elapse(3600, "enqueue", where="state = 'queued'")
    world.messages += world.sweep.run()


@pytest.mark.parametrize("seed", range(5))
def test_messages_may_be_lost_repeated_and_late(world: World, seed):
    chance = world.random
    chance.seed(seed)
    resources = {"h": HANDLE, "w": condition(20), "v": condition(20)}
    uuid = world.create("s", resources)
    drain(world)
    remaining = [str(number) for number in range(20)]
    while remaining or world.messages:
        if remaining and chance.random() < 0.2:
            world.signal("s", "h", {"id": remaining.pop()})
        if world.messages:
            message = world.messages.pop(chance.randrange(len(world.messages)))
            if chance.random() < 0.3:
                world.messages.append(message)
            if chance.random() < 0.7:
                world.deliver_one(message)
    for _ in range(40):
        sweep(world)
        drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(metadata(world)) == 20
    assert world.rows("SELECT 1 FROM signal") == []


def test_the_example_waits_for_the_given_number_of_signals(world: World):
    example = Path(__file__).parents[3] / "examples" / "waiting.yaml"
    uuid = world.submit("s", example.read_text(), parameters={"machines": 2})
    drain(world)
    assert world.outputs("s")["signal_command"].endswith(" --data-binary '{}'")
    for _ in range(2):
        assert world.state(uuid) == "CREATE_IN_PROGRESS"
        world.signal("s", "done", {})
        drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_watcher_registered_during_the_write_of_a_signal_sees_it(world: World):
    """The signal's writer has looked for watchers already, and has not committed yet."""
    uuid = world.create("s", {"h": HANDLE, "w": condition(1)})
    while not world.rows("SELECT 1 FROM resource WHERE name = 'h' AND action = 'CREATE'"):
        world.deliver()
    checks = [
        message for message in world.messages if isinstance(message, CheckMessage) and message.label == "w"
    ]
    assert len(checks) == 1
    world.messages.clear()

    def begin_to_watch():
        world.deliver_one(checks[0])
        world.database.check_connection(durable=True).close()

    watching = threading.Thread(target=begin_to_watch)

    def start_watching() -> None:
        watching.start()
        watching.join(1.0)  # it cannot end before the signal's transaction

    world.after("statement", start_watching, wakes_watchers=True)
    world.signal("s", "h")
    world.deliver()
    watching.join()
    drain(world)
    assert world.state(uuid) == "CREATE_COMPLETE"
