"""A check beside other operations: it observes every resource, and neither ends the operation nor changes the
state of the stack (operations/adr/0009).
"""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import ProviderBusy
from orchestrator.operations.observation import observation_pass
from orchestrator.operations.observation.observe import MAX_TRIES
from orchestrator.store import circuit_breakers, observations
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.trees import CHILD, nested
from tests.scenarios.trees import text as template
from tests.scenarios.world import World, test_resource

UNFINISHED = 1_000  # observations that an operation does not end within


def fleet(value: str, count: int = 3, **first: Any) -> dict[str, Any]:
    """Return machines; the options of the first are in `first`."""
    machines = {f"m{number}": cloud_thing(type="Cloud::Machine", value=value) for number in range(count)}
    machines["m0"]["properties"] |= first
    return machines | {"local": test_resource()}


def updating(world: World, count: int = 3, **request: Any) -> str:
    """Return a stack whose update waits for its first machine."""
    uuid = world.create("s", fleet("1", count), **request)
    world.deliver_all()
    world.update("s", fleet("2", count, looks=UNFINISHED), **request)
    deliver(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    return uuid


def deliver(world: World) -> None:
    """Deliver all messages, without the sweep."""
    while world.messages:
        world.deliver()


def finish(world: World, cloud: Cloud) -> None:
    """Let the machine of the update become ready."""
    for thing in cloud.looks:
        cloud.looks[thing] = UNFINISHED
    world.deliver_all()


def verdicts(world: World) -> dict[str, str | None]:
    return {row.name: row.observed for row in world.resources()}


def thing_of(cloud: Cloud, name: str) -> str:
    return next(thing for thing in cloud.things if thing.startswith(f"{name}-"))


def outcomes(world: World) -> list[str | None]:
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def passes(world: World) -> int:
    return len(world.rows("SELECT 1 FROM observation_pass")) + len(world.rows("SELECT 1 FROM observation"))


def test_a_check_during_an_update_observes_and_does_not_end_it(world, cloud):
    uuid = updating(world)
    gone = thing_of(cloud, "m1")
    del cloud.things[gone]
    before = world.stack_row("s")
    cloud.calls.clear()
    world.act("s", "check")
    deliver(world)
    assert sorted(cloud.calls) == ["observe m0", "observe m1", "observe m2"]
    after = world.stack_row("s")
    assert (after.state, after.traversal, after.status_reason) == (
        before.state,
        before.traversal,
        before.status_reason,
    )
    seen = verdicts(world)
    assert (seen["m0"], seen["m1"], seen["m2"]) == ("not-ready", "absent", "ready")
    assert world.event_reasons(uuid, "m1")[-1] == (
        f"CHECK_FAILED Observed absent: There is no {gone} any more."
    )
    assert world.event_reasons(uuid, "s")[-2:] == [
        "CHECK_IN_PROGRESS Observation of the resources started during UPDATE",
        "CHECK_COMPLETE Observation of the resources ended: 1 ready, 1 not ready, 1 absent, 0 in error, "
        "0 unreachable",
    ]
    assert passes(world) == 0
    finish(world, cloud)
    assert (world.state(uuid), outcomes(world)) == ("UPDATE_COMPLETE", ["complete", "complete"])
    assert {row.properties["value"] for row in world.resources() if row.type == "Cloud::Machine"} == {"2"}


@pytest.mark.parametrize("operation", ["create", "rollback", "delete", "suspend"])
def test_a_check_during_any_operation_leaves_it_alone(world, cloud, operation):
    slow = fleet("1", looks=UNFINISHED)
    if operation == "create":
        uuid = world.create("s", slow)
    else:
        uuid = world.create("s", fleet("1"))
        world.deliver_all()
        if operation == "rollback":
            world.update("s", fleet("2"))
            world.deliver(4)
            world.act("s", "cancel_update")
        elif operation == "delete":
            world.delete("s")
        else:
            world.act("s", "suspend")
    world.deliver(1)
    before = world.stack_row("s")
    assert before.in_progress
    world.act("s", "check")
    assert world.stack_row("s").traversal == before.traversal
    if operation == "create":
        deliver(world)
        finish(world, cloud)
    world.deliver_all()
    assert world.state(uuid) == f"{before.action}_COMPLETE"
    assert passes(world) == 0


def test_a_check_of_a_stack_that_missed_its_revision_changes_no_status(world, cloud):
    uuid = world.create("s", fleet("1"), disable_rollback=True)
    world.deliver_all()

    def refuse(ctx):
        raise RuntimeError("no")

    cloud.on["update"] = refuse
    world.update("s", fleet("2"), disable_rollback=True)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    del cloud.on["update"]
    before = [(row.name, row.action, row.status, row.status_reason) for row in world.resources()]
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert [(row.name, row.action, row.status, row.status_reason) for row in world.resources()] == before
    assert {verdicts(world)[name] for name in ("m0", "m1", "m2")} == {"ready"}
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_a_check_of_a_complete_stack_is_a_traversal(world):
    uuid = world.create("s", fleet("1"))
    world.deliver_all()
    world.act("s", "check")
    assert world.state(uuid) == "CHECK_IN_PROGRESS"
    running = world.stack_row("s").traversal
    world.act("s", "check")  # joins it
    assert (world.stack_row("s").traversal, passes(world)) == (running, 0)
    world.deliver_all()
    assert world.state(uuid) == "CHECK_COMPLETE"


def test_a_second_check_joins_the_running_pass(world, cloud):
    uuid = updating(world)
    cloud.calls.clear()
    world.act("s", "check")
    world.act("s", "check")
    deliver(world)
    assert sorted(cloud.calls) == ["observe m0", "observe m1", "observe m2"]
    assert len([text for text in world.event_reasons(uuid, "s") if "Observation" in text]) == 2


def test_an_unreachable_provider_keeps_the_last_observation(world, cloud):
    uuid = updating(world)
    row = world.resource("m1")
    cloud.on["observe"] = lambda ctx: (_ for _ in ()).throw(ProviderBusy("503"))
    for _ in range(2):
        world.act("s", "check")
        for _ in range(20):
            deliver(world)
            world.sweep_once()
            if not passes(world):
                break
    after = world.resource("m1")
    assert (after.observed, after.observed_at) == (row.observed, row.observed_at)
    assert "ProviderError: 503" in after.unreachable_reason
    assert after.unreachable_since > row.observed_at
    told = [text for text in world.event_reasons(uuid, "m1") if "could not be observed" in text]
    assert len(told) == 1
    assert told[0].startswith("CHECK_FAILED It could not be observed: ")
    assert world.event_reasons(uuid, "s")[-1].endswith(
        "0 ready, 0 not ready, 0 absent, 0 in error, 3 unreachable"
    )
    del cloud.on["observe"]
    world.database.check_connection(durable=True).execute("DELETE FROM circuit_breaker")  # it is over
    world.act("s", "check")
    deliver(world)
    after = world.resource("m1")
    assert (after.observed, after.unreachable_since, after.unreachable_reason) == ("ready", None, None)


def test_an_absence_to_be_confirmed_is_no_failed_try_of_a_pass(world, cloud):
    updating(world)
    db = world.database.check_connection(durable=False)
    circuit_breakers.record_failure(db, "p1", "Cloud::Machine", "503", 1.0)
    del cloud.things[thing_of(cloud, "m1")]
    world.act("s", "check")
    world.retry(2 * MAX_TRIES)
    assert world.resource("m1").unreachable_since is None
    db.execute("DELETE FROM circuit_breaker")
    world.retry(2)
    assert verdicts(world)["m1"] == "absent"


def test_a_pass_observes_reachable_resources_although_the_breaker_of_their_service_is_open(world, cloud):
    updating(world)
    db = world.database.check_connection(durable=False)
    for _ in range(circuit_breakers.FAILURES_TO_OPEN):
        circuit_breakers.record_failure(db, "p1", "Cloud::Machine", "503", 1.0)
    world.act("s", "check")
    for _ in range(4):
        deliver(world)
        with world.database.engine.begin() as connection:  # no probe is due
            connection.exec_driver_sql("UPDATE circuit_breaker SET probe_at = 'infinity' WHERE failures > 2")
            connection.exec_driver_sql("UPDATE observation SET due_at = now()")
        world.messages += world.sweep.run()
    assert verdicts(world)["m2"] == "ready"
    assert world.resource("m2").unreachable_since is None


def test_a_pass_is_bounded_and_survives_dead_workers_and_lost_messages(world, cloud):
    count = observations.WINDOW + 5
    updating(world, count)
    deaths = []

    def die(ctx):
        if len(deaths) < 3:
            deaths.append(ctx.name)
            raise Crash

    cloud.on["observe"] = die
    cloud.calls.clear()
    world.act("s", "check")
    assert len(world.messages) == len(world.rows("SELECT 1 FROM observation")) == observations.WINDOW
    world.messages.pop()
    for _ in range(50):
        while world.messages:
            assert len(world.rows("SELECT 1 FROM observation")) <= observations.WINDOW
            try:
                world.deliver()
            except Crash:
                continue
        if not passes(world):
            break
        world.sweep_once()
    assert passes(world) == 0
    assert len(deaths) == 3
    assert {verdicts(world)[f"m{number}"] for number in range(1, count)} == {"ready"}


def test_a_verdict_never_overwrites_the_end_of_an_operation(world, cloud):
    updating(world)
    world.act("s", "check")

    def end(ctx):
        """The update of the machine ends while the pass observes it."""
        del cloud.on["observe"]
        looked = [message for message in world.messages if hasattr(message, "node_id")]
        world.messages = [message for message in world.messages if message not in looked]
        for thing in cloud.looks:
            cloud.looks[thing] = UNFINISHED
        world.sweep_once()
        held, world.messages = world.messages, []
        for message in held:
            if hasattr(message, "node_id"):
                world.deliver_one(message)
        cloud.things.pop(thing_of(cloud, "m0"))

    [message] = [message for message in world.messages if message.label == "m0"]
    world.messages.remove(message)
    cloud.on["observe"] = end
    world.deliver_one(message)
    row = world.resource("m0")
    assert (row.status, row.observed, row.observed_reason) == ("COMPLETE", "ready", None)


def test_a_pass_observes_child_stacks_and_finds_missing_child_stacks(world, cloud):
    files = {CHILD: template({"x": cloud_thing(type="Cloud::Machine")})}
    resources = {"t": nested(), "u": nested(), "slow": cloud_thing(type="Cloud::Machine", value="1")}
    uuid = world.create("s", resources, files=files)
    world.deliver_all()
    resources["slow"]["properties"] |= {"value": "2", "looks": UNFINISHED}
    world.update("s", resources, files=files)
    deliver(world)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    names = {row.parent_resource: row.name for row in world.rows("SELECT * FROM stack WHERE owner_id > 0")}
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE stack SET parent_resource_id = NULL WHERE name = '{names['u']}'")
    cloud.things.pop(thing_of(cloud, "x"))
    world.act("s", "check")
    deliver(world)
    seen = verdicts(world)
    assert (seen["t"], seen["u"]) == ("ready", "absent")
    assert "absent" in {row.observed for row in world.resources("x")}
    assert world.event_reasons(uuid, "u")[-1] == ("CHECK_FAILED Observed absent: Its stack no longer exists.")
    assert passes(world) == 0


def test_a_pass_over_many_resources_is_continued_by_the_sweep(world, cloud, monkeypatch):
    monkeypatch.setattr(observations, "SLICE", 2)
    monkeypatch.setattr(observation_pass, "MAX_SLICES", 1)
    updating(world, 7)
    cloud.calls.clear()
    world.act("s", "check")
    assert len(world.messages) < 7
    for _ in range(10):
        deliver(world)
        if not passes(world):
            break
        with world.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE observation_pass SET due_at = now()")
        world.messages += world.sweep.run()
    assert passes(world) == 0
    assert sorted(cloud.calls) == [f"observe m{number}" for number in range(7)]


def test_a_pass_over_local_resources_ends_at_once(world):
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    world.update("s", {"a": test_resource("2", fail=True)}, disable_rollback=True)
    world.deliver_all()
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert (passes(world), world.messages) == (0, [])


def test_the_next_update_replaces_what_a_pass_found_absent_or_in_error(world, cloud):
    uuid = world.create("s", fleet("1", mends=True), disable_rollback=True)
    world.deliver_all()

    def refuse(ctx):
        if ctx.name == "m0":
            raise RuntimeError("no")

    cloud.on["update"] = refuse
    world.update("s", fleet("2", mends=True), disable_rollback=True)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    del cloud.on["update"]
    del cloud.things[thing_of(cloud, "m1")]
    kept = {thing_of(cloud, "m0"), thing_of(cloud, "m2")}
    world.act("s", "check")
    world.deliver_all()
    assert verdicts(world)["m1"] == "absent"
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert kept < set(cloud.things)
    assert (cloud.made["m0"], cloud.made["m1"], cloud.made["m2"]) == (1, 2, 1)
    assert verdicts(world)["m1"] == "ready"


def test_an_object_that_was_absent_and_exists_again_is_kept(world, cloud):
    uuid = updating(world)
    lost = thing_of(cloud, "m1")
    token = cloud.things.pop(lost)
    world.act("s", "check")
    deliver(world)
    assert verdicts(world)["m1"] == "absent"
    cloud.things[lost] = token
    finish(world, cloud)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made["m1"]) == ("UPDATE_COMPLETE", 1)
    assert verdicts(world)["m1"] == "ready"


def test_the_next_update_creates_a_missing_child_stack_again(world, cloud):
    files = {CHILD: template({"x": cloud_thing(type="Cloud::Machine")})}
    resources = {"t": nested(), "bad": test_resource()}
    uuid = world.create("s", resources, files=files)
    world.deliver_all()
    world.update("s", resources | {"bad": test_resource("2", fail=True)}, files=files, disable_rollback=True)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    world.delete(world.rows("SELECT name FROM stack WHERE owner_id > 0")[0].name)
    world.deliver_all()
    world.act("s", "check")
    world.deliver_all()
    assert verdicts(world)["t"] == "absent"
    world.update("s", resources, files=files)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert verdicts(world)["t"] == "ready"
    live = "SELECT action, status FROM stack WHERE owner_id > 0 AND deleted_at IS NULL"
    assert [tuple(row) for row in world.rows(live)] == [("CREATE", "COMPLETE")]
    assert len(cloud.things) == 1
