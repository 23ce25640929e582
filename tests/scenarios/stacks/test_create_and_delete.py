"""A stack comes up in order, once, and goes away whole, however its messages arrive."""

from __future__ import annotations

from functools import partial

import pytest

from orchestrator.graph.layout import lay_out
from orchestrator.operations.planning import traversal_plan
from tests.scenarios.world import World, test_resource


def five() -> dict:
    """Two leaves, a resource that needs both, a resource with a reference, a resource that reads an
    attribute.
    """
    return {
        "a": test_resource("one"),
        "b": test_resource("two"),
        "c": test_resource(
            {"list_join": ["-", [{"get_attr": ["a", "output"]}, {"get_attr": ["b", "output"]}]]}
        ),
        "d": test_resource({"get_resource": "c"}),
        "e": test_resource({"get_attr": ["c", "output"]}),
    }


def test_five_resources_complete_in_order_and_the_outputs_are_right(world: World):
    uuid = world.create("s", five(), outputs={"joined": {"value": {"get_attr": ["e", "output"]}}})
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"joined": "one-two"}
    events = world.events(uuid)
    assert events[0] == "s CREATE_IN_PROGRESS"
    assert events[-1] == "s CREATE_COMPLETE"
    assert sorted(events[1:-1]) == sorted(
        f"{n} CREATE_{s}" for n in "abcde" for s in ("IN_PROGRESS", "COMPLETE")
    )
    assert (
        events.index("a CREATE_COMPLETE")
        < events.index("c CREATE_IN_PROGRESS")
        < events.index("e CREATE_IN_PROGRESS")
    )


@pytest.mark.parametrize("seed", range(8))
def test_shuffled_repeated_and_lost_messages_change_nothing(postgres_url: str, seed: int):
    world = World(postgres_url, seed=seed)
    uuid = world.create("s", five())
    world.deliver_all(shuffle=True, repeat=0.3, lose=0.3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(world.events(uuid)) == 12
    world.delete("s")
    world.deliver_all(shuffle=True, repeat=0.3, lose=0.3)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    assert len(world.events(uuid)) == 24
    world.close()


def test_deletion_goes_in_the_reverse_of_the_order_it_was_built_in(world: World):
    uuid = world.create("s", five())
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    gone = [e.split()[0] for e in world.events(uuid) if e.endswith("DELETE_COMPLETE")]
    assert gone.index("c") > max(gone.index("d"), gone.index("e"))
    assert min(gone.index("a"), gone.index("b")) > gone.index("c")
    assert gone[-1] == "s"


def test_an_empty_stack_is_complete_at_once(world: World):
    uuid = world.create("s", {})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_wide_fan_in_and_a_wide_fan_out_go_through_joins(world: World):
    resources = {"first": test_resource()} | {f"m{i}": test_resource(requires=["first"]) for i in range(1200)}
    resources["last"] = test_resource(requires=[f"m{i}" for i in range(1200)])
    uuid = world.create("s", resources)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.rows("SELECT count(*) FROM graph_node WHERE kind = 'join'")[0][0] == 6
    assert world.rows("SELECT max(cardinality(needed_by)) FROM graph_node")[0][0] <= 512


def test_deleting_while_creating_leaves_nothing(world: World):
    uuid = world.create("s", five())
    world.deliver(3)
    world.delete("s")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.rows("SELECT 1 FROM graph_node WHERE state IN ('queued', 'checking', 'waiting')") == []


def test_a_failure_stops_its_dependents_and_every_cause_is_reported(world: World):
    resources = {
        "good": test_resource(),
        "bad1": test_resource(fail=True),
        "bad2": test_resource(fail=True),
        "after": test_resource(requires=["bad1"]),
    }
    uuid = world.create("s", resources)
    world.deliver(1)
    started = list(world.messages)
    world.messages.clear()
    for message in started:
        world.deliver_one(message)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    [(reason,)] = world.rows("SELECT status_reason FROM stack")
    assert reason.startswith("Resource CREATE failed: ValueError: resources.bad")
    assert ("after CREATE_IN_PROGRESS") not in world.events(uuid)
    assert world.events(uuid)[-1] == "s CREATE_FAILED"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_a_failed_create_is_rolled_back_when_the_caller_asked_for_it(world: World):
    uuid = world.create(
        "s", {"a": test_resource(), "b": test_resource(fail=True, requires=["a"])}, disable_rollback=False
    )
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_a_waiting_node_is_a_row_with_a_time_and_no_message(world: World):
    uuid = world.create("s", {"a": test_resource(wait_secs=3600)})
    world.deliver(2)
    assert world.messages == []
    [(state, later)] = world.rows(
        "SELECT state, due_at > now() + interval '59 minutes' FROM graph_node WHERE kind = 'update'"
    )
    assert (state, later) == ("waiting", True)
    assert world.events(uuid) == ["s CREATE_IN_PROGRESS", "a CREATE_IN_PROGRESS"]
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_wide_fan_in_and_fan_out_are_deleted_through_joins(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traversal_plan, "lay_out", partial(lay_out, width=3))
    feeders = [f"f{n}" for n in range(8)]
    resources = {"first": test_resource(), **{name: test_resource(requires=["first"]) for name in feeders}}
    uuid = world.create("s", {**resources, "last": test_resource(requires=feeders)})
    world.deliver_all()
    world.update("s", {"first": test_resource("kept")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.rows("SELECT count(*) FROM resource") == [(1,)]
    assert world.rows("SELECT 1 FROM graph_node WHERE kind = 'join' AND traversal = 2") != []
