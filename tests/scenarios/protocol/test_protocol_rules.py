"""A test for each rule of the engine's protocol: it fails if the rule is removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.errors import ProviderSilent
from orchestrator.operations.planning import row_writer, small_plans
from orchestrator.resources.base import Context
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.world import World, test_resource

Make = Callable[..., World]


@pytest.fixture
def make(postgres_url: str, cloud: Cloud) -> Iterator[Make]:
    """Make worlds whose engine knows the cloud's types."""
    made: list[World] = []

    def new(**settings: Any) -> World:
        made.append(World(postgres_url, types=cloud.types(), **settings))
        return made[-1]

    yield new
    for world in made:
        world.close()


@pytest.fixture
def world(make: Make) -> World:
    return make()


def act_once(action: Callable[[], Any]) -> Callable[..., None]:
    """Return a function that runs `action` the first time only."""
    remaining = [action]

    def run(*_args: Any) -> None:
        if remaining:
            remaining.pop()()

    return run


def plan_of(world: World) -> None:
    """Deliver the plan that was asked for last."""
    world.deliver_one(next(m for m in reversed(world.messages) if m.queue == "bulk"))


def unfinished(world: World) -> list[tuple[str, str]]:
    """Return the nodes of the current traversal that are not ready: label and state."""
    rows = world.rows("""SELECT n.label, n.state FROM graph_node n JOIN stack s ON s.id = n.stack_id
        WHERE n.traversal = s.traversal AND n.state NOT IN ('ready', 'dropped') ORDER BY n.label""")
    return [tuple(row) for row in rows]


# 1. The lease is on the resource; while it is held, no other visit operates on the resource.


def test_a_delete_does_not_touch_a_resource_until_its_create_has_ended(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing()})
    waited: list[Any] = []

    def delete_meanwhile() -> None:
        world.delete("s")
        plan_of(world)
        while world.messages:
            world.deliver(1)
        waited.extend(unfinished(world))

    cloud.on["create"] = act_once(delete_meanwhile)
    world.deliver_all()
    assert ("a", "waiting") in waited
    assert cloud.calls[:2] == ["create a", "observe a"]
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


# 2. Commit, then look: no call for a traversal that is over.


def test_a_visit_superseded_between_claim_and_read_makes_no_provider_call(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing()})
    world.deliver(1)
    world.before("read_claimed", lambda: world.delete("s"))
    world.deliver_all()
    assert (world.state(uuid), cloud.calls) == ("DELETE_COMPLETE", [])


def test_a_visit_superseded_before_its_read_does_not_continue_an_open_operation(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(looks=3)})
    world.deliver(2)
    assert world.sweep_once()
    world.before("read_claimed", lambda: world.delete("s"))
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})
    assert cloud.looks.total() == 1


def test_a_visit_superseded_before_it_begins_makes_no_provider_call(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",))})

    def delete_and_plan() -> None:
        world.delete("s")
        plan_of(world)

    world.after("begin", lambda: world.before("begin", delete_and_plan))  # before b's: a exists
    world.deliver_all()
    assert cloud.calls == ["create a", "observe a", "delete a", "observe a"]
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


# 3, 5. The token is stored, durably, before the call.


def test_the_operation_and_its_token_are_in_the_database_before_the_call(world: World, cloud: Cloud):
    observed: list[Any] = []
    begun = world.record("begin")

    def inspect_row(ctx: Context) -> None:
        observed.extend(world.rows("SELECT op, uuid || '-' || attempt FROM resource"))
        assert observed[-1] == ("CREATE", ctx.token)

    cloud.on["create"] = inspect_row
    uuid = world.create("s", {"a": cloud_thing()})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(observed) == 1
    assert begun == [{"synchronous_commit": "on"}]


# 4. After a lost lease: its own counter, and no second create while the first may still land.


def test_a_create_is_not_repeated_while_an_earlier_one_may_still_land(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(type(world.types["Cloud::Thing"]), "flight_seconds", 60.0)

    def die() -> None:
        raise Crash

    cloud.on["create"] = act_once(die)
    uuid = world.create("s", {"a": cloud_thing()})
    with pytest.raises(Crash):
        world.deliver_all()
    world.forget_leases()
    assert world.sweep_once()
    counted = "SELECT lost_leases, retry_count FROM graph_node WHERE kind = 'update'"
    assert world.rows(counted) == [(1, 0)]
    world.deliver(1)
    assert cloud.calls == ["create a", "find a"]
    [(state, soon)] = world.rows(
        "SELECT state, due_at < now() + interval '4 s' FROM graph_node WHERE kind = 'update'"
    )
    assert (state, soon) == ("waiting", True)
    assert world.rows(counted) == [(0, 0)]  # those lost in a row are counted
    world.retry(2)
    assert cloud.calls[2:] == ["find a", "find a"]
    world.elapse(60, "lost lease")
    world.deliver_all()
    assert cloud.calls[4:] == ["find a", "create a", "observe a"]
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


def test_an_unanswered_request_may_still_succeed_even_if_its_worker_lives(
    world: World, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(type(world.types["Cloud::Thing"]), "flight_seconds", 60.0)

    def no_answer() -> None:
        raise ProviderSilent("no answer")

    cloud.on["create"] = act_once(no_answer)
    uuid = world.create("s", {"a": cloud_thing()})
    world.deliver(2)
    assert world.sweep_once()
    world.deliver(1)
    assert cloud.calls == ["create a", "find a", "find a"]
    cloud.make(Context("a", "a", world.rows("SELECT uuid || '-' || attempt FROM resource")[0][0], "CREATE"))
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


def test_a_worker_without_its_lease_can_no_longer_write(world: World, cloud: Cloud):
    def taken_over() -> None:
        world.forget_leases()
        world.deliver_all()  # a second worker finds the thing, and finishes

    cloud.on["created"] = act_once(taken_over)
    uuid = world.create("s", {"a": cloud_thing()})
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})
    assert world.events(uuid).count("a CREATE_COMPLETE") == 1


def test_a_worker_whose_node_was_released_replaces_nothing(world: World):
    """The sweep releases the node; the resource keeps the lease until another visit claims it."""
    uuid = world.create("s", {"a": test_resource(), "b": cloud_thing(value="1")})
    world.deliver_all()

    def released() -> None:
        world.forget_leases()
        assert world.sweep_once()

    world.before("write_outcome", released, outcome="replace")
    world.update("s", {"a": test_resource(), "b": cloud_thing(value="2")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert [row.name for row in world.rows("SELECT name FROM resource ORDER BY name")] == ["a", "b"]


# 6. Planning is a row: resumable, over at the next slice when superseded, in an order that lets work begin.


def chain(length: int) -> dict[str, Any]:
    return {f"r{i}": test_resource(requires=[f"r{i - 1}"] if i else []) for i in range(length)}


def between_slices(world: World, monkeypatch: pytest.MonkeyPatch, action: Callable[[int], None]) -> None:
    """Plan in slices of three rows and do `action(number)` before each."""
    numbers = iter(range(1000))
    monkeypatch.setattr(row_writer, "SLICE", 3)
    monkeypatch.setattr(small_plans, "MAX_RESOURCES", 0)  # no plan is written in a single statement
    world.before("plan_slice", lambda: action(next(numbers)), times=float("inf"))


def test_an_interrupted_plan_is_taken_up_where_it_ended(world: World, monkeypatch: pytest.MonkeyPatch):
    def die_in_the_third(number: int) -> None:
        if number == 2:
            raise Crash

    between_slices(world, monkeypatch, die_in_the_third)
    uuid = world.create("s", chain(10))
    with pytest.raises(Crash):
        world.deliver_all()
    assert world.rows("SELECT count(*) FROM resource") == [(6,)]
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT count(*), count(DISTINCT name) FROM resource") == [(10, 10)]


def test_a_superseded_plan_stops_at_its_next_slice(world: World, monkeypatch: pytest.MonkeyPatch):
    between_slices(world, monkeypatch, lambda number: world.delete("s") if number == 1 else None)
    uuid = world.create("s", chain(10))
    world.deliver(1)
    assert world.rows("SELECT count(*) FROM resource") == [(3,)]
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


@pytest.mark.parametrize("shape", ["chain", "fan"])
def test_written_slices_of_a_plan_may_be_executed_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch, shape: str
):
    resources = chain(10)
    if shape == "fan":
        resources = {f"a{i}": test_resource() for i in range(6)}
        resources["b"] = test_resource(requires=list(resources))

    def carry_out(_number: int) -> None:
        world.messages += world.sweep.run()
        while world.messages:
            world.deliver(1)

    uuid = world.create("s", resources)
    between_slices(world, monkeypatch, carry_out)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    reported = world.events(uuid)
    for name, snippet in resources.items():
        for required in snippet.get("depends_on", []):
            assert reported.index(f"{required} CREATE_COMPLETE") < reported.index(
                f"{name} CREATE_IN_PROGRESS"
            )


# 12. Every end of a traversal settles its finish node.


def test_a_parent_of_a_superseded_traversal_waits_for_the_new_traversal(world: World):
    world.create("s", {"a": test_resource(wait_secs=60)})
    world.deliver(2)
    with world.database.connect() as db:
        db.execute("UPDATE graph_node SET needed_by = '{4711}' WHERE kind = 'finish'")
    world.delete("s")
    ends = world.rows("SELECT state, needed_by FROM graph_node WHERE kind = 'finish' ORDER BY traversal")
    assert [tuple(row) for row in ends] == [("dropped", [4711]), ("blocked", [4711])]


def test_a_failed_traversal_has_a_failed_end_with_its_reason(world: World):
    world.create("s", {"a": test_resource(fail=True)})
    world.deliver_all()
    [(state, reported)] = world.rows(
        """SELECT n.state, n.last_error = s.status_reason FROM graph_node n JOIN stack s ON s.id = n.stack_id
        WHERE n.kind = 'finish'"""
    )
    assert (state, reported) == ("failed", True)


# 13. A failed traversal continues open operations, begins no operation, and ends after them.


def test_after_a_failure_open_operations_are_finished_and_none_is_begun(world: World, cloud: Cloud):
    uuid = world.create(
        "s",
        {
            "slow": cloud_thing(looks=3),
            "after": cloud_thing(("slow",)),
            "bad": cloud_thing(errors=1, final=True),
            "late": cloud_thing(),
        },
    )
    world.deliver(1)
    order = {"slow": 0, "bad": 1, "late": 2}
    for message in sorted(world.messages, key=lambda message: order[message.label]):
        world.messages.remove(message)
        world.deliver_one(message)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert world.rows("SELECT halted_traversal FROM stack") == [(1,)]
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {"slow": 1, "bad": 1}
    reported = world.events(uuid)
    assert reported.index("slow CREATE_COMPLETE") < reported.index("s CREATE_FAILED")
    assert cloud.calls.count("observe slow") == 4


# 15. A window of messages for each root stack; waiting nodes get no message.


@pytest.mark.parametrize("requires", [[], ["first"]], ids=["flat", "fan-out"])
def test_a_stack_never_has_more_messages_than_its_window(make: Make, requires: list[str]):
    world = make(dispatch_window=5)
    resources = {f"r{i}": test_resource(requires=requires) for i in range(60)}
    uuid = world.create("s", resources | {"first": test_resource()})
    most = 0
    while world.state(uuid) != "CREATE_COMPLETE":
        most = max(most, len(world.messages))
        assert world.deliver(1) or world.sweep_once()
    assert 2 <= most <= 5


def test_lost_messages_are_repeated_with_growing_intervals_but_not_for_waiting_nodes(world: World):
    world.create("s", {"a": test_resource(), "b": test_resource(wait_secs=3600)})
    world.deliver(1)
    world.deliver_one(next(message for message in world.messages if message.label == "b"))
    world.messages.clear()

    def rung_after(seconds: int) -> list[str]:
        with world.database.connect() as db:
            db.execute(
                "UPDATE graph_node SET enqueued_at = now() - make_interval(secs => %s)"
                " WHERE enqueued_at IS NOT NULL",
                (seconds,),
            )
        return [message.label for message in world.sweep.run()]

    assert rung_after(4) == []
    assert rung_after(6) == ["a"]
    assert rung_after(9) == []
    assert rung_after(11) == ["a"]
    assert rung_after(19) == []
    assert rung_after(21) == ["a"]
    assert rung_after(19) == []
    assert rung_after(21) == ["a"]  # never more rarely than this: a lost message costs no minute


# 16. The stall audit repairs states that should never occur.


def test_a_stack_that_nothing_would_ever_move_again_is_put_right(world: World):
    uuid = world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.deliver(1)
    with world.database.connect() as db:
        db.execute("UPDATE graph_node SET blocked_by = blocked_by + 1 WHERE label = 'b'")
    world.deliver_all()
    assert unfinished(world) == [("b", "blocked"), ("finish", "blocked")]
    world.elapse(60, "action")
    world.audit_soon()
    world.deliver_all()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
