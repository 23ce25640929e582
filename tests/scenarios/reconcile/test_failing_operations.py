"""Failed operations: every cause is recorded and reported."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import text

from orchestrator.errors import ProviderError
from orchestrator.operations.reconcile.check import check_local
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.reconcile.failure_world import causes, outcomes, reason
from tests.scenarios.world import World, test_resource


def test_a_stack_reports_all_causes_in_chronological_order(world: World):
    resources = {name: test_resource(name, fail=True, wait_secs=1) for name in "abc"}
    uuid = world.create("s", {**resources, "d": test_resource("d", requires=("a",))})
    world.deliver(4)  # the plan, and all three are begun
    order = ["c", "a", "b"]
    for name in order:
        [row] = world.rows("SELECT id, traversal FROM graph_node WHERE label = :n", n=name)
        world.elapse(3600, "operation", where="name = :name", name=name)
        with world.database.engine.begin() as connection:
            connection.execute(
                text("UPDATE graph_node SET state = 'queued', due_at = NULL WHERE id = :i"), {"i": row.id}
            )
        world.messages += check_local(world.engine, [row.id], row.traversal)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    reported = "; ".join(f"ValueError: resources.{name}: Test Resource failed {name}" for name in order)
    assert reason(world) == f"Resource CREATE failed: {reported}"
    assert causes(world) == [(name, 1) for name in order]
    assert world.events(uuid)[-1] == "s CREATE_FAILED"


def test_all_failures_of_a_batch_are_reported(world: World):
    world.create("s", {name: test_resource(name, fail=True) for name in ("b", "a", "c")})
    world.deliver()  # the plan
    batch, world.messages = world.messages, []
    ids = [message.node_id for message in batch]
    world.messages += check_local(world.engine, ids, 1)
    world.deliver_all()
    assert causes(world) == [("b", 1), ("a", 1), ("c", 1)]
    assert reason(world).count("Test Resource failed") == 3


def test_thousands_of_causes_are_counted_and_kept(world: World):
    uuid = world.create("s", {f"r{n}": test_resource("x", fail=True) for n in range(40)})
    world.deliver()
    ids = [row.id for row in world.rows("SELECT id FROM graph_node WHERE kind = 'update' ORDER BY id")]
    world.messages = check_local(world.engine, ids, 1)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert reason(world).endswith("resources.r9: Test Resource failed r9; and 30 more")
    assert reason(world).count("; ") == 10
    assert len(causes(world)) == 40
    [row] = world.rows(
        "SELECT reason FROM event WHERE action = 'CREATE' AND status = 'FAILED' AND resource_name = 's'"
    )
    assert row.reason == reason(world)


def refusing(message: str) -> Callable[[Context], None]:
    def refuse(ctx: Context) -> None:
        raise ProviderError(message, "Forbidden")

    return refuse


def test_a_long_cause_is_cut_in_the_stacks_reason_and_nowhere_else(cloudy: World, cloud: Cloud):
    cloud.on["create"] = refusing("x" * 5_000)
    cloudy.create("s", {"a": cloud_thing()})
    cloudy.deliver_all()
    assert reason(cloudy).startswith("Resource CREATE failed: Forbidden: resources.a: xxx")
    assert len(reason(cloudy)) < 1_100
    assert reason(cloudy).endswith("x…")
    [row] = cloudy.rows("SELECT reason FROM failure")
    assert len(row.reason) > 5_000
    [row] = cloudy.rows("SELECT status_reason FROM resource")
    assert len(row.status_reason) > 5_000


def test_causes_with_paths_and_semicolons_stay_as_they_are(cloudy: World, cloud: Cloud):
    cloud.on["create"] = refusing("resources.inner: no room; try later")
    cloudy.create("s", {"a": cloud_thing(), "b": cloud_thing()})
    cloudy.deliver_all()
    item = "Forbidden: resources.{}: resources.inner: no room; try later"
    assert reason(cloudy) in {
        f"Resource CREATE failed: {item.format('a')}; {item.format('b')}",
        f"Resource CREATE failed: {item.format('a')}",  # the other was never begun
    }


def test_the_causes_of_a_rolled_back_update_stay_readable(world: World):
    uuid = world.create("s", {"a": test_resource("1")}, disable_rollback=False)
    world.deliver_all()
    world.update("s", {"a": test_resource("1"), "b": test_resource("1", fail=True)})
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert causes(world) == [("b", 2)]
    assert outcomes(world) == ["complete", "failed", "complete"]
    [row] = world.rows("SELECT created_by, copy_of FROM revision WHERE number = 3")
    assert tuple(row) == ("", 1)  # without a user request
