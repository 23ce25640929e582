"""A provider that gives no answer: nothing is concluded from it, and the operation goes on afterwards."""

from __future__ import annotations

import pytest

from orchestrator.errors import AwaitingBudget, ProviderError
from orchestrator.operations.diagnosis.explain import explain
from orchestrator.resources.base import Context
from orchestrator.store.stacks import blockers
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

SERVER = "Cloud::Server"
MANY_ATTEMPTS = 12  # more than `action_retry_limit`


def server(**properties: object) -> dict[str, object]:
    return cloud_thing(type=SERVER, **properties)


def stack_reason(world: World) -> str:
    return world.stack_row("s").status_reason


def breakers(world: World) -> list[object]:
    with world.database.engine.begin() as connection:
        return list(connection.exec_driver_sql("SELECT service FROM circuit_breaker"))


def refuse(_ctx: Context) -> None:
    raise ProviderError("not allowed", "Forbidden")


@pytest.mark.parametrize("verb", ["create", "observe"])
def test_a_create_goes_on_after_a_long_outage(world: World, cloud: Cloud, verb: str):
    cloud.outage.add(verb)
    uuid = world.create("s", {"a": server(value="v")})
    world.retry(MANY_ATTEMPTS)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    [node] = world.nodes(kind="update")
    assert (node.retry_count, node.state) == (0, "waiting")
    assert node.unreachable_tries > 5
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {"a": 1}


def test_an_update_goes_on_after_a_long_outage(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server(value="old")})
    world.deliver_all()
    [thing] = cloud.things
    cloud.outage.add("update")
    world.update("s", {"a": server(value="new")})
    world.retry(MANY_ATTEMPTS)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values == {thing: "new"}


def test_a_delete_goes_on_after_a_long_outage(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server()})
    world.deliver_all()
    cloud.outage.add("delete")
    world.delete("s")
    world.retry(MANY_ATTEMPTS)
    assert world.state(uuid) == "DELETE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert not cloud.things


def test_connection_errors_that_a_type_does_not_translate_are_an_outage_too(world: World, cloud: Cloud):
    def lose(_ctx: Context) -> None:
        raise ConnectionResetError("by peer")

    uuid = world.create("s", {"a": server(looks=1)})
    cloud.on["observe"] = lose
    world.retry(MANY_ATTEMPTS)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_the_timeout_of_the_stack_ends_the_attempts_and_names_the_cause(world: World, cloud: Cloud):
    cloud.outage.add("create")
    uuid = world.create("s", {"a": server()}, timeout_mins=1)
    world.retry(3)
    world.elapse(120, "action")
    world.retry(2)
    assert world.state(uuid) == "CREATE_FAILED"
    assert stack_reason(world) == "Timed out. Not reached: a (ProviderError: no answer)"


def test_an_answer_ends_the_count_of_attempts(world: World, cloud: Cloud):
    world.create("s", {"a": server(looks=3)})
    world.deliver_all()
    world.update("s", {"a": server(value="x", looks=100)})
    world.retry(1)
    cloud.outage.add("observe")
    world.retry(3)
    [node] = world.nodes(kind="update", state="waiting")
    assert node.unreachable_tries >= 3
    assert node.last_error == "ProviderError: no answer"
    cloud.outage.clear()
    world.retry(1)
    [node] = world.nodes(kind="update", state="waiting")
    assert (node.unreachable_tries, node.last_error) == (0, None)


def test_why_shows_the_attempts(world: World, cloud: Cloud):
    cloud.outage.add("create")
    world.create("s", {"a": server()})
    world.retry(3)
    stack = world.stack_row("s")
    [node] = [n for n in blockers.unfinished(world.database, stack, None, 10).nodes if n.kind == "update"]
    explanation = explain(node, stack, 5)
    assert explanation.word == "unreachable"
    assert "in a row got no answer: ProviderError: no answer. Next attempt at " in explanation.text


@pytest.mark.parametrize("verb", ["create", "observe", "delete"])
def test_a_resource_waits_for_the_budget_of_its_service(world: World, cloud: Cloud, verb: str):
    world.create("s", {"a": server(looks=1)})
    if verb == "delete":
        world.deliver_all()
        world.delete("s")
    places = [0] * MANY_ATTEMPTS

    def without_place(_ctx: Context) -> None:
        if places:
            places.pop()
            raise AwaitingBudget("nova", 1.0)

    cloud.on[verb] = without_place
    world.retry(MANY_ATTEMPTS - 2)
    [node] = [node for node in world.nodes() if node.state == "waiting"]
    assert (node.retry_count, node.unreachable_tries) == (0, 0)
    stack = world.stack_row("s")
    [node] = [n for n in blockers.unfinished(world.database, stack, None, 10).nodes if n.state == "waiting"]
    assert "(waiting for nova's budget)" in explain(node, stack, 5).text
    assert not breakers(world)
    world.deliver_all()
    assert cloud.made == {"a": 1}
    assert len(cloud.things) == (0 if verb == "delete" else 1)


def test_a_create_without_a_place_is_aborted_when_its_stack_fails(world: World, cloud: Cloud):
    def refused(ctx: Context) -> None:
        if ctx.name == "b":
            raise ProviderError("no disk")
        raise AwaitingBudget("nova", 1.0)

    cloud.on["create"] = refused
    uuid = world.create("s", {"a": server(), "b": server()})
    world.retry(MANY_ATTEMPTS)
    assert world.state(uuid) == "CREATE_FAILED"
    reason = "Error: resources.a: CREATE aborted: AwaitingBudget: waiting for nova's budget"
    assert world.resource("a").status_reason == reason
    assert not cloud.things


# A failed operation, then an update


def fail_an_update(world: World, cloud: Cloud) -> str:
    """Create a server, and let its update to `new` be refused; return its id."""
    world.create("s", {"a": server(value="old")})
    world.deliver_all()
    [thing] = cloud.things
    cloud.on["update"] = refuse
    world.update("s", {"a": server(value="new")})
    world.deliver_all()
    assert world.status("a") == "UPDATE_FAILED"
    cloud.on.clear()
    return thing


def test_a_resource_whose_update_failed_is_updated_again_and_not_replaced(world: World, cloud: Cloud):
    thing = fail_an_update(world, cloud)
    world.patch("s")
    world.deliver_all()
    assert world.status("a") == "UPDATE_COMPLETE"
    assert cloud.values == {thing: "new"}
    assert cloud.made == {"a": 1}


def test_a_failed_resource_is_not_replaced_while_its_provider_is_away(world: World, cloud: Cloud):
    thing = fail_an_update(world, cloud)
    cloud.outage.add("observe")
    world.patch("s")
    world.retry(MANY_ATTEMPTS)
    assert (world.status("a"), list(cloud.things)) == ("UPDATE_FAILED", [thing])
    [node] = world.nodes(kind="update", state="waiting")
    assert node.unreachable_tries > 5
    cloud.outage.clear()
    world.deliver_all()
    assert world.status("a") == "UPDATE_COMPLETE"
    assert cloud.values == {thing: "new"}


def test_a_rollback_restores_the_object_of_a_failed_update(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server(value="old")}, disable_rollback=False)
    world.deliver_all()
    [thing] = cloud.things

    def refuse_new(ctx: Context) -> None:
        if "refused" not in cloud.calls:
            cloud.calls.append("refused")
            raise ProviderError("not allowed", "Forbidden")

    cloud.on["update"] = refuse_new
    world.update("s", {"a": server(value="new")}, disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert cloud.values == {thing: "old"}


def test_a_failed_resource_that_is_gone_is_replaced(world: World, cloud: Cloud):
    fail_an_update(world, cloud)
    cloud.things.clear()
    world.patch("s")
    world.deliver_all()
    assert world.status("a") == "CREATE_COMPLETE"
    assert len(cloud.things) == 1


def test_an_object_that_was_only_not_observed_is_settled(world: World, cloud: Cloud):
    def break_(_ctx: Context) -> None:
        raise KeyError("status")

    cloud.on["observe"] = break_  # a fault of the type
    world.create("s", {"a": server(value="v")})
    world.deliver_all()
    assert world.status("a") == "CREATE_FAILED"
    cloud.on.clear()
    world.patch("s")
    world.deliver_all()
    assert world.status("a") == "CREATE_COMPLETE"
    assert world.resource("a").attributes == {"value": "v"}
    assert (cloud.made, world.state(world.stack_row("s").uuid)) == ({"a": 1}, "UPDATE_COMPLETE")


# CHECK


def test_a_check_reports_unreachable_resources_apart_and_changes_none(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server(), "b": server(), "c": server()})
    world.deliver_all()
    before = {row.name: (row.action, row.status, row.observed, row.observed_at) for row in world.resources()}
    cloud.on["observe"] = lambda ctx: cloud.refuse_answer() if ctx.name == "b" else None
    [gone] = [thing for thing in cloud.things if thing.startswith("c")]
    del cloud.things[gone]
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert "b: could not be observed: ProviderError: no answer" in stack_reason(world)
    assert f"c: NotFound: resources.c: There is no {gone} any more." in stack_reason(world)
    assert (world.status("a"), world.status("c")) == ("CHECK_COMPLETE", "CHECK_FAILED")
    b = world.resource("b")
    assert (b.action, b.status, b.observed, b.observed_at) == before["b"]
    cloud.on.clear()
    cloud.calls.clear()
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.made == {"a": 1, "b": 1, "c": 2}
    assert not [call for call in cloud.calls if call.startswith("delete") and "c" not in call.split()[1]]


def test_a_check_during_an_outage_leaves_nothing_in_progress(world: World, cloud: Cloud):
    uuid = world.create("s", {name: server() for name in "abc"})
    world.deliver_all()
    cloud.outage.add("observe")
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "CHECK_FAILED"
    assert {row.status for row in world.resources()} == {"COMPLETE"}
    cloud.outage.clear()
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1, "b": 1, "c": 1})


def test_converge_during_an_outage_waits(world: World, cloud: Cloud):
    uuid = world.create("s", {"a": server()})
    world.deliver_all()
    cloud.outage.add("observe")
    world.patch("s", converge=True)
    world.retry(MANY_ATTEMPTS)
    assert (world.state(uuid), world.status("a")) == ("UPDATE_IN_PROGRESS", "CREATE_COMPLETE")
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("UPDATE_COMPLETE", {"a": 1})
