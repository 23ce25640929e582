"""Signals to a group whose members boot, are stuck or are being updated: applied together, or rejected with
an event that states the reason.
"""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import ProviderError
from orchestrator.store.signals import group_resize
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.groups.booting_group import (
    NEVER,
    boot,
    booting,
    created,
    make_ready,
    reasons,
    settle,
    signal,
)
from tests.scenarios.groups.test_groups import members, write
from tests.scenarios.groups.test_scaled_groups import SIZE, metadata
from tests.scenarios.trees import child, deliver
from tests.scenarios.world import World


def test_signals_during_a_boot_are_all_applied(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    signal(world, times=5)
    assert child(world, "g").state == "UPDATE_IN_PROGRESS"
    assert metadata(world)["scaling_in_progress"] is True
    settle(world, cloud)
    assert len(members(world)) == len(cloud.things) == 7
    assert set(cloud.made.values()) == {1}
    assert world.outputs("s")["size"] == 7
    assert metadata(world)["scaling_in_progress"] is False
    assert reasons(world, "up") == ["COMPLETE No signal details provided"] * 5
    assert world.rows("SELECT 1 FROM signal") == []


def test_signals_beyond_the_bounds_are_rejected_with_an_event_each(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting(2, max_size=4))
    signal(world, times=5)
    settle(world, cloud)
    assert len(members(world)) == 4
    rejected = "COMPLETE Signal rejected by group g: at its maximum of 4 members"
    assert reasons(world, "up") == ["COMPLETE No signal details provided"] * 2 + [rejected] * 3
    signal(world, "down", times=4)
    settle(world, cloud)
    assert len(members(world)) == 1
    assert reasons(world, "down")[-1] == "COMPLETE Signal rejected by group g: at its minimum of 1 member"


def test_a_signal_during_the_cooldown_is_rejected_with_its_end(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting(2, cooldown=600))
    write(world, "UPDATE resource SET metadata = '{}' WHERE name = 'g'")
    signal(world, times=2)  # the second arrives during the boot: the cooldown counts from the start
    settle(world, cloud)
    signal(world)
    assert len(members(world)) == 3
    applied, *rejected = reasons(world, "up")
    assert applied == "COMPLETE No signal details provided"
    assert len(rejected) == 2
    assert all(
        reason.startswith("COMPLETE Signal rejected by group g: cooldown until 20") for reason in rejected
    )


def test_signals_during_a_rolling_update_are_combined_and_applied_after_it(
    world: World, cloud: Cloud
) -> None:
    uuid = created(world, cloud, booting(0, min_size=2))
    world.update("s", booting(0, "w", min_size=2), outputs=SIZE)
    deliver(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    signal(world, times=3)
    signal(world, "down")
    assert len(members(world)) == 2
    assert len(world.rows("SELECT 1 FROM signal WHERE due_at = 'infinity'")) == 4
    for _ in range(3):
        boot(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    before = child(world, "g").traversal
    settle(world, cloud)
    assert child(world, "g").traversal in (before, before + 1)
    assert len(members(world)) == 4
    assert reasons(world, "up") == ["COMPLETE No signal details provided"] * 3
    assert {cloud.values[thing] for thing in cloud.things} == {"w"}
    assert world.outputs("s")["size"] == 4


def test_signals_during_a_failing_update_are_applied_after_it(world: World, cloud: Cloud) -> None:
    uuid = created(world, cloud, booting())
    world.update("s", booting(2, "w"), outputs=SIZE)
    deliver(world)
    signal(world)
    world.elapse(7200, "action")
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_FAILED"
    settle(world, cloud)
    assert len(members(world)) == 3
    assert reasons(world, "up") == ["COMPLETE No signal details provided"]
    signal(world, "up")
    settle(world, cloud)
    assert len(members(world)) == 4


def test_an_accepted_signal_survives_lost_messages(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    world.signal("s", "up")
    world.messages.clear()
    world.sweep_once()
    world.deliver(1)  # the policy has handed its signal to the group
    assert [row.about for row in world.rows("SELECT about FROM signal")] == ["adjustment"]
    world.messages.clear()
    settle(world, cloud)
    assert len(members(world)) == 3


def test_signals_to_a_suspended_group_are_rejected_with_an_event(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    write(world, "UPDATE resource SET action = 'SUSPEND' WHERE name = 'g'")
    signal(world)
    assert reasons(world, "up") == ["COMPLETE Signal rejected by group g: the group is suspended"]
    write(world, "UPDATE resource SET action = 'DELETE' WHERE name = 'g'")
    signal(world)
    assert reasons(world, "up")[1] == "COMPLETE Signal rejected by group g: the group is being deleted"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("deposed = true", "the group was replaced"),
        ("action = 'DELETE'", "the group is being deleted"),
        ("action = 'SUSPEND'", "the group is suspended"),
    ],
)
def test_a_request_to_a_group_that_has_changed_since_is_rejected(
    world: World, cloud: Cloud, change: str, reason: str
) -> None:
    created(world, cloud, booting())
    world.signal("s", "up")
    world.deliver(1)
    write(world, f"UPDATE resource SET {change} WHERE name = 'g'")
    deliver(world)
    assert reasons(world, "up") == [f"COMPLETE Signal rejected by group g: {reason}"]


def test_requests_to_a_group_whose_child_is_deleted_are_rejected(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    cloud.busy = True
    world.delete(child(world, "g").name)
    deliver(world)
    signal(world)
    cloud.busy = False
    settle(world, cloud)
    signal(world)
    rejected = "COMPLETE Signal rejected by group g: "
    assert reasons(world, "up") == [
        f"{rejected}its stack is being deleted",
        f"{rejected}its stack no longer exists",
    ]


def test_requests_wait_for_a_direct_update_of_the_child(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    world.update(child(world, "g").name, {"own": cloud_thing(looks=NEVER)})
    deliver(world)
    signal(world)
    assert len(world.rows("SELECT 1 FROM signal WHERE due_at = 'infinity'")) == 1
    settle(world, cloud)
    assert reasons(world, "up") == ["COMPLETE Signal rejected by group g: its stack has a different template"]


def test_the_number_of_waiting_signals_is_bounded(world: World, cloud: Cloud, monkeypatch: Any) -> None:
    monkeypatch.setattr("orchestrator.operations.signals.group_requests.MAX_PENDING", 2)
    created(world, cloud, booting())
    world.update("s", booting(2, "w"), outputs=SIZE)
    deliver(world)
    signal(world, times=4)
    assert reasons(world, "up") == ["COMPLETE Signal rejected by group g: 2 signals are waiting"] * 2
    settle(world, cloud)
    assert len(members(world)) == 4


def test_a_failed_group_is_scaled(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    write(world, "UPDATE resource SET action = 'UPDATE', status = 'FAILED' WHERE name = 'g'")
    signal(world)
    settle(world, cloud)
    assert len(members(world)) == 3
    assert world.resource("g").status == "FAILED"


def test_signals_wait_for_the_pauses_of_a_rolling_update(world: World, cloud: Cloud) -> None:
    paused = {"rolling_updates": {"max_batch_size": 1, "pause_time": 100}}
    uuid = created(world, cloud, booting(**paused))
    world.update("s", booting(2, "w", **paused), outputs=SIZE)
    deliver(world)
    make_ready(cloud)
    world.sweep_once()
    deliver(world)
    query = """SELECT extract(epoch FROM due_at - now()) AS seconds FROM graph_node
        WHERE label = 'g' AND state = 'waiting'"""
    assert [50 < row.seconds < 101 for row in world.rows(query)] == [True]
    signal(world)
    assert [50 < row.seconds < 101 for row in world.rows(query)] == [True]
    assert len(world.rows("SELECT 1 FROM signal WHERE due_at = 'infinity'")) == 1
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(members(world)) == 3
    assert set(members(world).values()) == {"w"}


def test_the_reported_size_is_the_actual_size_after_a_failed_update(world: World, cloud: Cloud) -> None:
    uuid = created(world, cloud, booting())

    def fails(_: Any) -> None:
        if len(cloud.things) == 3:
            raise ProviderError("no more servers")

    cloud.on["create"] = fails
    world.update("s", booting(5), outputs=SIZE)
    deliver(world)
    settle(world, cloud)
    assert world.state(uuid) == "UPDATE_FAILED"
    assert len(cloud.things) == 3
    assert world.outputs("s")["size"] == 3
    del cloud.on["create"]
    signal(world)
    settle(world, cloud)
    assert world.outputs("s")["size"] == len(cloud.things) == len(members(world))


def test_waiting_signals_are_deleted_with_their_stack(world: World, cloud: Cloud) -> None:
    created(world, cloud, booting())
    world.update("s", booting(2, "w"), outputs=SIZE)
    deliver(world)
    signal(world, times=2)
    world.delete("s")
    deliver(world)
    settle(world, cloud)
    assert cloud.things == {}
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.rows("SELECT 1 FROM signal") == []


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["forward", "record_started", "record_finished", "record_unchanged"])
def test_a_death_of_the_worker_loses_no_signal(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, name: str, when: str
) -> None:
    created(world, cloud, booting(2, max_size=3))
    function, deaths = getattr(group_resize, name), []

    def dies(*args: Any) -> Any:
        if deaths:
            return function(*args)
        deaths.append(name)
        if when == "after":
            function(*args)
        raise Crash

    monkeypatch.setattr(group_resize, name, dies)
    for _ in range(3):
        try:
            signal(world)
            settle(world, cloud)
        except Crash:
            world.forget_leases()
            settle(world, cloud)
    assert deaths == [name]
    assert len(members(world)) == len(cloud.things) == 3
    assert len(reasons(world, "up")) == 3
    assert world.rows("SELECT 1 FROM signal") == []
    assert world.outputs("s")["size"] == 3
