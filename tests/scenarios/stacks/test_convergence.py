"""Following the world: converge, failed resources that are well again, going on after a failure."""

from __future__ import annotations

from orchestrator.errors import ProviderBusy
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.world import test_resource


def machine(requires=(), **properties):
    return cloud_thing(requires, type="Cloud::Machine", **properties)


def states(world):
    query = "SELECT name, action, status FROM resource WHERE NOT deposed"
    return {r.name: f"{r.action}_{r.status}" for r in world.rows(query)}


def test_a_converging_update_repairs_external_changes_and_deletions(world, cloud):
    resources = {
        "a": machine(value="1"),
        "b": machine(value="2"),
        "c": machine(value="3"),
        "d": test_resource({"get_resource": "b"}),
    }
    uuid = world.create("s", resources)
    world.deliver_all()
    a, b, _ = sorted(cloud.things)
    cloud.values[a] = "tampered"
    del cloud.things[b]
    cloud.calls.clear()
    world.update("s", resources)
    world.deliver_all()
    assert cloud.calls == []  # nothing is observed without a request
    world.update("s", resources, converge=True)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values[a] == "1"
    assert {name.split("-")[0] for name in cloud.things} == {"a", "b", "c"}
    assert cloud.made == {"a": 1, "b": 2, "c": 1}
    new = next(thing for thing in cloud.things if thing.startswith("b"))
    assert world.rows("SELECT attributes->>'output' AS o FROM resource WHERE name = 'd'")[0].o == new
    reported = [e for e in world.events(uuid) if e.startswith("c ")]
    assert reported == ["c CREATE_IN_PROGRESS", "c CREATE_COMPLETE"]


def test_converging_ends_with_its_traversal(world, cloud):
    uuid = world.create("s", {"a": machine(value="1")})
    world.deliver_all()
    world.update("s", {"a": machine(value="1")}, converge=True)
    world.deliver_all()
    cloud.calls.clear()
    world.update("s", {"a": machine(value="1"), "b": machine()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert "observe a" not in cloud.calls


def test_a_failed_resource_that_is_well_again_is_kept(world, cloud):
    uuid = world.create("s", {"a": machine(value="1", mends=True, errors=1, final=True)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    world.update("s", {"a": machine(value="1", mends=True, errors=1, final=True)})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1}
    row = world.rows("SELECT status, status_reason FROM resource")[0]
    assert (row.status, row.status_reason) == (
        "COMPLETE",
        "Update status to COMPLETE for FAILED resource neither update nor replace.",
    )


def test_a_failed_update_is_repeated_on_a_healthy_resource(world, cloud):
    uuid = world.create("s", {"a": machine(value="1", mends=True)})
    world.deliver_all()

    def refuse(ctx):
        raise RuntimeError("no")

    cloud.on["update"] = refuse
    world.update("s", {"a": machine(value="2", mends=True)})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    del cloud.on["update"]
    world.update("s", {"a": machine(value="2", mends=True)})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert (list(cloud.values.values()), cloud.made) == (["2"], {"a": 1})


def test_a_busy_provider_is_asked_again_for_a_change(world, cloud):
    uuid, tries = world.create("s", {"a": machine(value="1")}), []
    world.deliver_all()

    def busy(ctx):
        tries.append(ctx.name)
        if len(tries) < 3:
            raise ProviderBusy("not now")

    cloud.on["update"] = busy
    world.update("s", {"a": machine(value="2")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert (list(cloud.values.values()), len(tries)) == (["2"], 3)


def failing(**options):
    return {
        "bad": test_resource(fail=True),
        "needs_bad": test_resource(requires=["bad"]),
        "far": test_resource(wait_secs=1),
        "needs_far": test_resource(requires=["far"]),
        **options,
    }


def test_after_a_failure_nothing_more_is_begun(world):
    uuid = world.create("s", failing())
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert states(world)["needs_far"] == "INIT_COMPLETE"


def test_a_stack_with_keep_going_completes_everything_independent_of_the_failure(world):
    uuid = world.create("s", failing(worse=test_resource(fail=True)), keep_going=True)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "CREATE_FAILED"
    assert states(world) == {
        "bad": "CREATE_FAILED",
        "worse": "CREATE_FAILED",
        "needs_bad": "INIT_COMPLETE",
        "far": "CREATE_COMPLETE",
        "needs_far": "CREATE_COMPLETE",
    }
    reason = world.stack_row("s").status_reason
    assert "resources.bad" in reason
    assert "resources.worse" in reason
    world.update("s", failing(bad=test_resource()))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_keep_going_persists_until_changed_and_the_rollback_follows_at_the_end(world):
    uuid = world.create("s", {"a": test_resource("1")}, keep_going=True, disable_rollback=False)
    world.deliver_all()
    world.update("s", failing(a=test_resource("2", requires=["needs_far"])))
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert states(world) == {"a": "UPDATE_COMPLETE"}
    assert "needs_far CREATE_COMPLETE" in world.events(uuid)
    world.update("s", failing(), keep_going=False, disable_rollback=True)
    world.deliver_all()
    assert states(world)["needs_far"] == "INIT_COMPLETE"


def test_a_requirement_of_a_running_update_outlives_it_over_any_number_of_updates(world, cloud):
    uuid = world.create("s", {"a": machine(), "b": machine(("a",), value="1")})
    world.deliver_all()
    for _ in range(2):
        world.update("s", {"b": machine(value="2", looks=4)})
        world.deliver(3)
        assert states(world)["b"] == "UPDATE_IN_PROGRESS"
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    observed = [number for number, call in enumerate(cloud.calls) if call == "observe b"]
    assert cloud.calls.index("delete a") > max(observed)
