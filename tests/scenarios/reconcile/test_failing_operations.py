"""Failure with every cause; cancelling, timing out and deleting, also at the very moment of an end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.errors import NotFound, NotSupported, ProviderError
from orchestrator.operations import stack_completion
from orchestrator.operations.reconcile.check import check_nodes
from orchestrator.operations.stacks import actions, create_delete
from orchestrator.resources.base import Context
from orchestrator.store.maintenance import sweep_queries
from orchestrator.store.stacks import history
from orchestrator.store.traversals import completion, traversals
from orchestrator.store.traversals.accept import accept_rollback
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource


def outcomes(world: World) -> list[str | None]:
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def reason(world: World) -> str:
    [row] = world.rows("SELECT status_reason FROM stack")
    return str(row.status_reason)


def states(world: World) -> dict[str, str]:
    query = "SELECT name, action || '_' || status AS state FROM resource WHERE NOT leftover"
    return {row.name: row.state for row in world.rows(query)}


def causes(world: World) -> list[tuple[str, int | None]]:
    stack = world.stack_row("s")
    result = history.list_failures(world.database, stack, range(1, stack.traversal + 1))
    return [(row.resource_name, row.revision) for row in result]


def late(world: World) -> None:
    """Let the stack's time be over."""
    world.elapse(2 * 3600, "action")


# Every cause


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
        world.messages += check_nodes(world.engine, [row.id], row.traversal, durable=False)
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
    world.messages += check_nodes(world.engine, ids, 1, durable=False)
    world.deliver_all()
    assert causes(world) == [("b", 1), ("a", 1), ("c", 1)]
    assert reason(world).count("Test Resource failed") == 3


def test_thousands_of_causes_are_counted_and_kept(world: World):
    uuid = world.create("s", {f"r{n}": test_resource("x", fail=True) for n in range(40)})
    world.deliver()
    ids = [row.id for row in world.rows("SELECT id FROM graph_node WHERE kind = 'update' ORDER BY id")]
    world.messages = check_nodes(world.engine, ids, 1, durable=False)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert reason(world).endswith("resources.r9: Test Resource failed r9; and 30 more")
    assert reason(world).count("; ") == 10
    assert len(causes(world)) == 40
    [row] = world.rows(
        "SELECT reason FROM event WHERE action = 'CREATE' AND status = 'FAILED' AND resource_name = 's'"
    )
    assert row.reason == reason(world)


@pytest.fixture
def cloud() -> Cloud:
    return Cloud()


@pytest.fixture
def cloudy(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    world = World(postgres_url, types=cloud.types(), action_retry_limit=0)
    yield world
    world.close()


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


# Cancelling


def test_running_operations_of_a_cancelled_stack_finish(cloudy: World, cloud: Cloud):
    resources = {"a": cloud_thing(looks=2), "b": cloud_thing(("a",))}
    uuid = cloudy.create("s", resources)
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    assert cloudy.state(uuid) == "CREATE_FAILED"
    assert (reason(cloudy), outcomes(cloudy)) == ("Stack CREATE cancelled", ["cancelled"])
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    assert cloud.made == {"a": 1}
    assert cloudy.state(uuid) == "CREATE_FAILED"
    assert cloudy.events(uuid)[-1] == "a CREATE_COMPLETE"
    cloudy.update("s", resources)
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1}
    assert outcomes(cloudy) == ["cancelled", "complete"]


def test_a_worker_that_dies_after_a_cancel_loses_nothing(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=2)})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    with cloudy.database.engine.begin() as connection:  # it held the node, and is gone
        connection.execute(
            text("""UPDATE graph_node SET state = 'checking', due_at = NULL, rung_at = NULL, lease = 1,
                leased_until = now() - interval '1 s' WHERE label = 'a'""")
        )
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE"}


def test_cancelling_drops_queued_nodes_and_keeps_running_operations(cloudy: World):
    cloudy.create("s", {"a": cloud_thing(looks=2), "b": cloud_thing()})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    with cloudy.database.engine.begin() as connection:  # it came due
        connection.execute(text("UPDATE graph_node SET state = 'queued', due_at = NULL WHERE label = 'a'"))
    [row] = cloudy.rows("SELECT id FROM stack")
    with cloudy.database.connect() as db:
        sweep_queries.drop_superseded(db, row.id, 100)
    rows = {row.label: row.state for row in cloudy.rows("SELECT label, state FROM graph_node")}
    assert (rows["a"], rows["b"]) == ("queued", "dropped")


def test_an_endless_operation_is_not_polled_forever(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=1_000_000)})
    cloudy.deliver(2)
    cloudy.act("s", "cancel_without_rollback")
    cloudy.elapse(25 * 3600, "action")
    cloudy.deliver_all()
    assert [row.state for row in cloudy.rows("SELECT state FROM graph_node WHERE label = 'a'")] == ["dropped"]
    cloudy.delete("s")
    cloudy.deliver_all()
    assert cloud.things == {}


def test_cancelling_while_it_winds_down_says_cancelled(cloudy: World, cloud: Cloud):
    cloudy.create("s", {"a": cloud_thing(looks=3), "bad": cloud_thing(errors=9, final=True)})
    for _ in range(4):
        cloudy.deliver()
    assert cloudy.rows("SELECT 1 FROM stack WHERE halted_traversal = traversal AND status = 'IN_PROGRESS'")
    cloudy.act("s", "cancel_without_rollback")
    assert (reason(cloudy), outcomes(cloudy)) == ("Stack CREATE cancelled", ["cancelled"])
    assert causes(cloudy) == [("bad", 1)]


def test_cancelling_an_update_rolls_back_and_names_the_user(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2"), "b": test_resource("1", wait_secs=-1)})
    world.deliver(3)
    world.act("s", "cancel_update")
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert outcomes(world) == ["complete", "cancelled", "complete"]
    [row] = world.rows("SELECT created_by, copy_of FROM revision WHERE number = 3")
    assert tuple(row) == ("tester", 1)


@pytest.mark.parametrize("cancel", [actions.cancel_update, actions.cancel_without_rollback])
def test_a_stack_that_has_just_ended_is_not_cancelled(world: World, cancel: Any):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2")})
    as_it_was = world.stack_row("s")
    assert as_it_was.state == "UPDATE_IN_PROGRESS"
    world.deliver_all()
    reported = world.events(uuid)
    message = "^Cancelling update when stack is UPDATE_COMPLETE is not supported.$"
    with pytest.raises(NotSupported, match=message):
        cancel(world.context, as_it_was)
    assert world.events(uuid) == reported
    assert outcomes(world) == ["complete", "complete"]
    world.delete("s")
    world.deliver_all()
    with pytest.raises(NotFound):
        cancel(world.context, as_it_was)


def test_cancelling_cancels_the_newest_of_several_updates(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2")})
    as_it_was = world.stack_row("s")
    world.update("s", {"a": test_resource("3")})
    actions.cancel_without_rollback(world.context, as_it_was)
    assert (reason(world), outcomes(world)) == (
        "Stack UPDATE cancelled",
        ["complete", "superseded", "cancelled"],
    )


# Timing out


@pytest.mark.parametrize("action", ["CREATE", "UPDATE", "DELETE", "ROLLBACK", "CHECK"])
def test_every_action_times_out(cloudy: World, cloud: Cloud, action: str):
    slow = cloud_thing(type="Cloud::Server", value="1")
    cloudy.create("s", {"a": slow} if action != "CREATE" else {"a": cloud_thing(looks=9)}, timeout_mins=1)
    hanging = cloud_thing(type="Cloud::Server", value="2", looks=9)
    if action == "CREATE":
        cloudy.deliver(2)
    else:
        cloudy.deliver_all()
    if action in {"UPDATE", "ROLLBACK"}:
        cloudy.update("s", {"a": hanging})
        cloudy.deliver(2)
    if action == "ROLLBACK":
        cloudy.act("s", "cancel_update")
        cloudy.deliver(1)
    if action == "DELETE":
        cloudy.delete("s")
        cloudy.deliver(1)
    if action == "CHECK":
        cloudy.act("s", "check")
        cloudy.deliver(1)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert [tuple(row) for row in cloudy.rows("SELECT action, status, status_reason FROM stack")] == [
        (action, "FAILED", "Timed out")
    ]
    assert outcomes(cloudy)[-1] == ("complete" if action in {"DELETE", "CHECK"} else "failed")


def test_after_a_time_out_the_rollback_has_its_own_time(cloudy: World, cloud: Cloud):
    uuid = cloudy.create("s", {"a": cloud_thing()}, disable_rollback=False)
    cloudy.deliver_all()
    cloudy.update("s", {"a": cloud_thing(), "b": cloud_thing(looks=3)})
    cloudy.deliver(2)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert cloudy.state(uuid) == "ROLLBACK_IN_PROGRESS"
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "ROLLBACK_COMPLETE"
    assert set(cloud.things.values()) == {token for token in cloud.things.values() if token}
    assert {thing.split("-")[0] for thing in cloud.things} == {"a"}
    assert outcomes(cloudy) == ["complete", "failed", "complete"]


def test_running_operations_of_a_timed_out_stack_finish(cloudy: World):
    uuid = cloudy.create("s", {"a": cloud_thing(looks=2), "b": cloud_thing(("a",))})
    cloudy.deliver(2)
    late(cloudy)
    cloudy.messages += cloudy.sweep.run()
    assert cloudy.state(uuid) == "CREATE_FAILED"
    cloudy.deliver_all()
    assert states(cloudy) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}


def test_a_stack_that_has_just_ended_does_not_time_out(world: World):
    uuid = world.create("s", {"a": test_resource("1")}, disable_rollback=False)
    world.deliver_all()
    [row] = world.rows("SELECT id FROM stack")
    assert stack_completion.fail(world.database, row.id, 1, stack_completion.TIMED_OUT) == []
    assert (world.state(uuid), outcomes(world)) == ("CREATE_COMPLETE", ["complete"])


# Two at the same moment


class Together:
    """Work in a thread that is to wait for a lock that the test holds."""

    def __init__(self, world: World, work: Callable[[], Any]) -> None:
        self.world, self.result, self.error = world, None, None
        self.thread = threading.Thread(target=self._run, args=(work,))
        self.thread.start()

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self.result = work()
        except BaseException as error:
            self.error = error
        finally:
            for durable in (True, False):  # this thread's own
                self.world.database.check_connection(durable=durable).close()

    def is_held_up(self) -> bool:
        """Wait until it waits for the lock; False when it ended instead."""
        waiting = (
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        while not self.world.rows(waiting):
            if not self.thread.is_alive():
                return False
        return True

    def end(self) -> Any:
        self.thread.join(30)
        if self.error is not None:
            raise self.error
        return self.result


def test_an_update_at_the_moment_of_completion_is_accepted(world: World):
    world.create("s", {"a": test_resource("1")})
    while [message.label for message in world.messages] != ["finish"]:
        world.deliver()
    [row] = world.rows("SELECT id, revision_id FROM stack")
    [finish] = world.messages
    world.messages = []
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            ending = Together(world, lambda: check_nodes(world.engine, [finish.node_id], 1, durable=True))
            assert ending.is_held_up()
            opened = accept_rollback(db, row.id, row.revision_id)
        ending.end()
    assert opened is not None
    world.messages.append(opened.message)
    world.deliver_all()
    assert [tuple(r) for r in world.rows("SELECT action, status FROM stack")] == [("ROLLBACK", "COMPLETE")]
    assert outcomes(world) == ["superseded", "complete"]


def test_two_updates_at_the_same_moment_are_two_revisions(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    [row] = world.rows("SELECT id, revision_id FROM stack")
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            other = Together(world, lambda: world.update("s", {"a": test_resource("2")}))
            assert other.is_held_up()
            accept_rollback(db, row.id, row.revision_id)
        other.end()
    world.deliver_all()
    rows = world.rows("SELECT number, action, outcome FROM revision ORDER BY number")
    assert [tuple(r) for r in rows] == [
        (1, "CREATE", "complete"),
        (2, "ROLLBACK", "superseded"),
        (3, "UPDATE", "complete"),
    ]


def test_a_cancel_and_the_end_at_the_same_moment_agree(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    while [message.label for message in world.messages] != ["finish"]:
        world.deliver()
    [row] = world.rows("SELECT id FROM stack")
    [finish] = world.messages
    world.messages = []
    with world.database.connect() as db:
        with db.transaction():
            assert traversals.lock(db, row.id) is not None
            ending = Together(world, lambda: check_nodes(world.engine, [finish.node_id], 1, durable=True))
            assert ending.is_held_up()
            traversals.halt(db, row.id, 1)
            completion.end_failed(
                db, row.id, 1, reason="Stack CREATE cancelled", at_once=True, outcome="cancelled"
            )
        ending.end()
    assert (world.state(uuid), outcomes(world)) == ("CREATE_FAILED", ["cancelled"])
    assert world.events(uuid)[-1] == "s CREATE_FAILED"


# Deleting


def test_a_repeated_delete_continues_and_a_deleted_stack_is_404(world: World):
    uuid = world.create("s", {"a": test_resource("1", action_wait_secs={"delete": 1})})
    world.deliver_all()
    stack = world.stack_row("s")
    world.delete("s")
    world.deliver(2)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    with pytest.raises(NotFound):
        create_delete.delete(world.context, stack)


@pytest.mark.parametrize("stop", ["cancel_without_rollback", "cancel_update", "time out"])
def test_a_stack_that_was_stopped_is_deleted_whole(cloudy: World, cloud: Cloud, stop: str):
    cloudy.create("s", {"a": cloud_thing()})
    cloudy.deliver_all()
    cloudy.update("s", {"a": cloud_thing(), "b": cloud_thing(looks=3), "c": cloud_thing(("b",))})
    cloudy.deliver(2)
    if stop == "time out":
        late(cloudy)
        cloudy.messages += cloudy.sweep.run()
    else:
        cloudy.act("s", stop)
    cloudy.deliver(1)
    stack = cloudy.stack_row("s")
    cloudy.delete("s")
    cloudy.deliver_all(shuffle=True, repeat=0.2)
    assert cloudy.state(str(stack.uuid)) == "DELETE_COMPLETE"
    assert cloud.things == {}
