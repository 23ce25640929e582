"""Actions on a stack that need no template: check, suspend, resume."""

from __future__ import annotations

import pytest

from orchestrator.errors import ActionInProgress, NotSupported, ProviderBusy
from orchestrator.store.traversals import traversals
from tests.scenarios.fake_cloud import Crash, cloud_thing
from tests.scenarios.world import test_resource


def machines(**options):
    return {
        "a": cloud_thing(type="Cloud::Machine", value="1"),
        "b": cloud_thing(("a",), type="Cloud::Machine", value="2"),
        "c": test_resource("3", requires=("b",)),
        **options,
    }


def made(world, cloud, resources=None, **request):
    uuid = world.create("s", resources or machines(), **request)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    cloud.calls.clear()
    return uuid


def event_reasons(world, uuid, action):
    return [e for e in world.events(uuid) if f" {action}_" in e]


def states(world):
    return {r.name: f"{r.action}_{r.status}" for r in world.rows("SELECT name, action, status FROM resource")}


def reason(world, table="stack", name="s"):
    return world.rows(f"SELECT status_reason FROM {table} WHERE name = :n", n=name)[0].status_reason


def test_suspend_pauses_dependents_first_and_resume_reverses_the_order(world, cloud):
    uuid = made(world, cloud)
    world.act("s", "suspend")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "SUSPEND_COMPLETE"
    assert cloud.paused == set(cloud.things)
    assert [e for e in event_reasons(world, uuid, "SUSPEND") if "COMPLETE" in e] == [
        "c SUSPEND_COMPLETE",
        "b SUSPEND_COMPLETE",
        "a SUSPEND_COMPLETE",
        "s SUSPEND_COMPLETE",
    ]
    with pytest.raises(NotSupported, match="Updating a stack when it is suspended is not supported"):
        world.update("s", machines())
    world.act("s", "resume")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "RESUME_COMPLETE"
    assert cloud.paused == set()
    assert [e for e in event_reasons(world, uuid, "RESUME") if "COMPLETE" in e] == [
        "a RESUME_COMPLETE",
        "b RESUME_COMPLETE",
        "c RESUME_COMPLETE",
        "s RESUME_COMPLETE",
    ]
    calls = list(cloud.calls)
    world.update("s", machines())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.calls == calls


def test_suspending_a_suspended_resource_does_nothing(world, cloud):
    made(world, cloud)
    world.act("s", "suspend")
    world.deliver_all()
    before = world.stack_row("s").traversal
    world.act("s", "suspend")
    assert (world.messages, world.stack_row("s").traversal) == ([], before)


def test_resuming_a_resource_that_was_not_suspended_sends_no_request(world, cloud):
    uuid = made(world, cloud)
    world.act("s", "resume")
    world.deliver_all()
    assert world.state(uuid) == "RESUME_COMPLETE"
    assert cloud.calls == []
    assert set(states(world).values()) == {"CREATE_COMPLETE"}


def test_a_failed_resource_cannot_be_suspended_and_is_unchanged(world, cloud):
    uuid = world.create("s", machines(d=test_resource(fail=True)), disable_rollback=True)
    world.deliver_all()
    world.act("s", "suspend")
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_FAILED"
    assert reason(world) == (
        "Resource SUSPEND failed: Error: resources.d: State ('CREATE', 'FAILED') invalid for suspend"
    )
    assert states(world)["d"] == "CREATE_FAILED"
    world.act("s", "resume")
    world.deliver_all()
    assert world.state(uuid) == "RESUME_COMPLETE"
    assert cloud.paused == set()


def test_a_suspend_that_fails_can_be_taken_back(world, cloud):
    uuid = made(world, cloud)

    def refuse(ctx):
        if ctx.name == "a":
            raise RuntimeError("no")

    cloud.on["suspend"] = refuse
    world.act("s", "suspend")
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_FAILED"
    assert states(world) == {"a": "SUSPEND_FAILED", "b": "SUSPEND_COMPLETE", "c": "SUSPEND_COMPLETE"}
    del cloud.on["suspend"]
    world.act("s", "resume")
    world.deliver_all()
    assert (world.state(uuid), cloud.paused) == ("RESUME_COMPLETE", set())


def test_a_resume_queued_over_a_running_suspend_ends_with_everything_running(world, cloud):
    uuid = made(world, cloud)
    for delivered in range(6):
        world.act("s", "suspend")
        world.deliver(delivered)
        world.act("s", "resume", wait=True)
        world.deliver_all(shuffle=True, repeat=0.2)
        assert (world.state(uuid), cloud.paused) == ("RESUME_COMPLETE", set())


def test_a_busy_provider_is_asked_again_for_a_pause(world, cloud):
    uuid, tries = made(world, cloud), []

    def busy(ctx):
        tries.append(ctx.name)
        if len(tries) < 3:
            raise ProviderBusy("not now")

    cloud.on["suspend"] = busy
    world.act("s", "suspend")
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"
    assert cloud.paused == set(cloud.things)


def test_after_a_death_before_a_pause_request_the_next_worker_sends_it(world, cloud):
    uuid = made(world, cloud)

    def die(ctx):
        del cloud.on["suspend"]
        raise Crash

    cloud.on["suspend"] = die
    world.act("s", "suspend")
    with pytest.raises(Crash):
        world.deliver_all()
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "SUSPEND_COMPLETE"
    assert cloud.paused == set(cloud.things)


def test_a_suspended_resource_that_a_check_came_over_is_resumed_by_the_next_update(world, cloud):
    uuid = made(world, cloud)
    world.act("s", "suspend")
    world.deliver_all()
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_COMPLETE"
    assert cloud.paused == set(cloud.things)
    world.update("s", machines())
    world.deliver_all()
    assert (world.state(uuid), cloud.paused) == ("UPDATE_COMPLETE", set())


def test_a_check_observes_everything_and_reports_unreachable_resources(world, cloud):
    uuid = made(world, cloud, {**machines(), "d": {"type": "OS::Heat::RandomString", "depends_on": "c"}})
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_COMPLETE"
    assert reason(world) == (
        "Stack CHECK completed successfully. 'CHECK' not fully supported (see resources)"
    )
    assert reason(world, "resource", "d") == "CHECK not supported for OS::Heat::RandomString"
    assert event_reasons(world, uuid, "CHECK") == [
        "s CHECK_IN_PROGRESS",
        "a CHECK_IN_PROGRESS",
        "a CHECK_COMPLETE",
        "b CHECK_IN_PROGRESS",
        "b CHECK_COMPLETE",
        "c CHECK_IN_PROGRESS",
        "c CHECK_COMPLETE",
        "d CHECK_COMPLETE",
        "s CHECK_COMPLETE",
    ]
    assert cloud.calls == ["observe a", "observe b"]


def test_a_check_continues_after_a_fault_and_the_next_update_replaces_missing_resources(world, cloud):
    uuid = made(world, cloud)
    gone = next(thing for thing in cloud.things if thing.startswith("a"))
    del cloud.things[gone]
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert reason(world) == (f"Resource CHECK failed: a: NotFound: resources.a: There is no {gone} any more.")
    assert states(world) == {"a": "CHECK_FAILED", "b": "CHECK_COMPLETE", "c": "CHECK_COMPLETE"}
    world.update("s", machines())
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 2, "b": 1}
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CHECK_COMPLETE", "c": "CHECK_COMPLETE"}


def test_a_check_finds_every_fault(world, cloud):
    uuid = made(world, cloud)
    cloud.things.clear()
    world.act("s", "check")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "CHECK_FAILED"
    assert "a: NotFound" in reason(world)
    assert "b: NotFound" in reason(world)


def test_a_check_during_a_create_observes_the_existing_resources_and_lets_it_finish(world, cloud):
    resources = {"a": cloud_thing(type="Cloud::Machine", looks=2), "b": cloud_thing(("a",))}
    uuid = world.create("s", resources)
    world.deliver(2)
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert cloud.made == {"a": 1, "b": 1}


def test_a_failed_resource_does_not_become_well_by_being_checked(world, cloud):
    uuid = world.create("s", {"a": test_resource(fail=True)})
    world.deliver_all()
    for _ in range(2):
        world.act("s", "check")
        world.deliver_all()
        assert world.state(uuid) == "CHECK_FAILED"
        assert states(world) == {"a": "CHECK_FAILED"}
        assert reason(world) == "Resource CHECK failed: a: Can not check a, resource was not created."
    world.update("s", {"a": test_resource()})
    world.deliver_all()
    assert states(world) == {"a": "CREATE_COMPLETE"}


def test_a_check_continues_although_a_resource_was_not_created(world):
    resources = {
        "well": test_resource("w"),
        "bad": test_resource(fail=True, requires=("well",)),
        "after": test_resource(requires=("bad",)),
    }
    uuid = world.create("s", resources)
    world.deliver_all()
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert states(world) == {"well": "CHECK_COMPLETE", "bad": "CHECK_FAILED", "after": "INIT_COMPLETE"}


def test_the_check_of_a_stack_that_was_never_complete_fails_although_every_resource_is_well(world):
    uuid = world.create("s", {"a": test_resource(fail=True)})
    world.deliver_all()
    world.mark("s", "a")
    world.mark("s", "a", unhealthy=False)
    world.act("s", "check")
    world.deliver_all()
    assert states(world) == {"a": "CHECK_COMPLETE"}
    assert world.state(uuid) == "CHECK_FAILED"
    assert reason(world) == "The stack has not reached revision 1"


def test_no_suspend_or_resume_is_begun_over_a_running_delete(world, cloud):
    made(world, cloud)
    world.delete("s")
    for action in ("suspend", "resume"):
        with pytest.raises(ActionInProgress, match=r"Stack s already has an action \(DELETE\) in progress"):
            world.act("s", action)


def test_an_update_over_a_check_and_a_delete_over_a_suspend_end_as_asked(world, cloud):
    uuid = made(world, cloud)
    world.act("s", "check")
    world.deliver(2)
    world.update("s", machines(d=test_resource("4")))
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert "d" in states(world)
    world.act("s", "suspend")
    world.deliver(3)
    world.delete("s")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_a_delay_is_not_waited_for_when_a_newer_template_changes_or_removes_it(world):
    delay = {"type": "OS::Heat::Delay", "properties": {"min_wait": 3000, "actions": ["CREATE"]}}
    uuid = world.create("s", {"w": delay, "x": test_resource(requires=["w"])})
    world.deliver(2)
    assert states(world)["w"] == "CREATE_IN_PROGRESS"
    shorter = {"type": "OS::Heat::Delay", "properties": {"min_wait": 0, "actions": ["CREATE"]}}
    world.update("s", {"w": shorter, "x": test_resource(requires=["w"])})
    for _ in range(8):
        world.deliver_one(world.messages.pop(0))
        if not world.messages:
            break
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert states(world)["x"] == "CREATE_COMPLETE"


def test_an_unchanged_delay_is_waited_for(world):
    delay = {"type": "OS::Heat::Delay", "properties": {"min_wait": 3000, "actions": ["CREATE"]}}
    uuid = world.create("s", {"w": delay, "x": test_resource(requires=["w"])})
    world.deliver(2)
    world.update("s", {"w": delay, "x": test_resource("2", requires=["w"])})
    world.deliver(20)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    assert states(world) == {"w": "CREATE_IN_PROGRESS", "x": "INIT_COMPLETE"}


def snapshot(world):
    """Begin a SNAPSHOT as the operation does, and return the snapshot's id."""
    stack = world.stack_row("s")
    with world.database.connect() as db, db.transaction():
        opened = traversals.start_traversal(db, stack.id, "SNAPSHOT")
        row = db.execute(
            """INSERT INTO snapshot (uuid, stack_id, status, status_reason, traversal, revision_id)
            SELECT gen_random_uuid(), id, 'IN_PROGRESS', '', traversal, revision_id FROM stack WHERE id = %s
            RETURNING id""",
            (stack.id,),
        ).fetchone()
    world.messages.append(opened.message)
    return row[0]


@pytest.mark.parametrize("verb", ["nothing", "snapshot"])
def test_a_snapshot_copies_each_thing_once_even_if_workers_die(world, cloud, verb):
    uuid = made(world, cloud)

    def die(ctx):
        del cloud.on[verb]
        raise Crash

    cloud.on[verb] = die
    id_ = snapshot(world)
    try:
        world.deliver_all()
    except Crash:
        world.forget_leases()
        world.deliver_all()
    assert world.state(uuid) == "SNAPSHOT_COMPLETE"
    assert sorted(cloud.copies.values()) == sorted(cloud.things)
    rows = world.rows("SELECT name, kept FROM resource_snapshot WHERE snapshot_id = :i ORDER BY name", i=id_)
    kept = {row.name: world.cipher.open(row.kept) if row.kept else None for row in rows}
    tokens = {thing: token for token, thing in cloud.copies.items()}
    by_name = {thing.split("-")[0]: token for thing, token in tokens.items()}
    assert kept == {"a": {"copy": by_name["a"]}, "b": {"copy": by_name["b"]}, "c": None}


@pytest.mark.parametrize("action", ["suspend", "resume"])
def test_a_delay_takes_its_time_when_suspended_or_resumed(world, action):
    listed = {"min_wait": 1, "actions": [action.upper()]}
    uuid = world.create("s", {"d": {"type": "OS::Heat::Delay", "properties": listed}})
    world.deliver_all()
    for requests in ("suspend", "resume"):
        world.act("s", requests)
        while world.messages:
            world.deliver()
        waiting = world.rows("SELECT label FROM graph_node WHERE state = 'waiting'")
        assert bool(waiting) == (requests == action)
        world.deliver_all()
        assert world.state(uuid) == f"{requests.upper()}_COMPLETE"
