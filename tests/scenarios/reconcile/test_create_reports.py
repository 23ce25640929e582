"""The facts that a create reports with its errors (docs/plugins.md "Facts and errors")."""

from __future__ import annotations

from dataclasses import replace

import pytest
from psycopg import OperationalError

from orchestrator.errors import ProviderError, ProviderSilent
from orchestrator.operations.reconcile.check import Attempt, check_external
from tests.scenarios.fake_cloud import Cloud, Crash, cloud_thing
from tests.scenarios.reconcile.desks import NO_ANSWER, desk, fails, world
from tests.scenarios.world import World

__all__ = ["world"]  # fixtures


@pytest.mark.parametrize("error", NO_ANSWER, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("moment", ["create", "created"])
def test_a_create_without_an_answer_creates_a_single_object(
    world: World, cloud: Cloud, error: Exception, moment: str
):
    cloud.on[moment] = fails(error)  # before or after the object was created
    uuid = world.create("s", {"a": desk()})
    world.retry(0)
    found_at_once = moment == "created" and error in NO_ANSWER[3:]  # it was not refused: it is searched
    assert world.state(uuid) == ("CREATE_COMPLETE" if found_at_once else "CREATE_IN_PROGRESS")
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", NO_ANSWER[:3], ids=lambda error: type(error).__name__)
def test_a_create_that_was_not_carried_out_is_repeated_by_a_type_without_find(
    world: World, cloud: Cloud, error: Exception
):
    cloud.on["create"] = fails(error)
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.retry(8)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.on.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


@pytest.mark.parametrize("error", NO_ANSWER[3:], ids=lambda error: type(error).__name__)
def test_a_create_without_an_answer_is_not_repeated_by_a_type_without_find(
    world: World, cloud: Cloud, error: Exception
):
    cloud.on["create"] = fails(error)
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.deliver_all()
    assert (world.state(uuid), cloud.calls.count("create a")) == ("CREATE_FAILED", 1)
    assert "OutcomeUnknown" in world.stack_row("s").status_reason


def test_a_refused_create_of_a_type_without_find_leaves_nothing_to_delete(world: World, cloud: Cloud):
    cloud.on["create"] = fails(ProviderError("no", "Forbidden"))
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.deliver_all()
    assert "Forbidden: resources.a: no" in world.stack_row("s").status_reason
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_worker_that_dies_after_a_refusal_leaves_the_outcome_unknown(world: World, cloud: Cloud):
    cloud.outage.add("create")
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    world.retry(2)
    cloud.outage.clear()
    cloud.on["created"] = fails(Crash())
    world.sweep_once()
    with pytest.raises(Crash):
        world.deliver()
    cloud.on.clear()
    world.forget_leases()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})


def test_a_create_that_the_database_interrupts_is_not_repeated_by_a_type_without_find(
    world: World, cloud: Cloud
):
    cloud.on["created"] = fails(OperationalError("the connection was closed"))
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Blind")})
    while not cloud.made:
        message = world.messages.pop(0)
        node, attempt = [message.node_id], Attempt()
        try:
            world.messages += check_external(world.engine, node, message.traversal, attempt)
        except OperationalError:
            cloud.on.clear()
            world.messages += check_external(
                world.engine, node, message.traversal, replace(attempt, repeats=True)
            )
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})
    assert "OutcomeUnknown" in world.stack_row("s").status_reason


@pytest.mark.parametrize("error", [ProviderError("no", "Forbidden"), KeyError("status")])
def test_a_refusal_and_a_fault_of_the_type_fail_the_resource(world: World, cloud: Cloud, error: Exception):
    cloud.on["created"] = fails(error)
    outputs = {"value": {"value": {"get_attr": ["a", "value"]}}}
    uuid = world.create("s", {"a": desk(value="v")}, outputs=outputs)
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_FAILED", {"a": 1})
    kind = "Forbidden" if isinstance(error, ProviderError) else "KeyError"
    assert f"{kind}: resources.a: " in world.stack_row("s").status_reason
    cloud.on.clear()
    world.patch("s")  # the object of the failed create is found by its token, and is as desired
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-1"])
    assert world.outputs("s") == {"value": "v"}
    world.delete("s")
    world.deliver_all()
    assert (world.state(uuid), cloud.things) == ("DELETE_COMPLETE", {})


def refused_after_its_create(world: World, cloud: Cloud, **properties: object) -> str:
    """Create a stack with a resource whose create fails after the object was created."""
    cloud.on["created"] = fails(ProviderError("no", "Forbidden"))
    uuid = world.create("s", {"a": cloud_thing(type="Cloud::Server", value="old", **properties)})
    world.deliver_all()
    cloud.on.clear()
    assert (world.state(uuid), world.resource("a").physical_id) == ("CREATE_FAILED", None)
    return uuid


def test_an_object_of_a_failed_create_is_changed_in_place(world: World, cloud: Cloud):
    uuid = refused_after_its_create(world, cloud)
    world.update("s", {"a": cloud_thing(type="Cloud::Server", value="new")})
    world.deliver_all()
    assert (world.state(uuid), cloud.values) == ("UPDATE_COMPLETE", {"a-1": "new"})
    assert cloud.made == {"a": 1}


def test_an_object_of_a_failed_create_is_replaced_if_the_template_requires_it(world: World, cloud: Cloud):
    uuid = refused_after_its_create(world, cloud)
    world.update("s", {"a": cloud_thing(type="Cloud::Server", value="old", final=True)})
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-2"])


def test_an_object_of_a_failed_create_is_replaced_if_it_is_in_error(world: World, cloud: Cloud):
    uuid = refused_after_its_create(world, cloud, errors=1)
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-2"])


def test_a_failed_create_without_an_object_is_replaced(world: World, cloud: Cloud):
    uuid = refused_after_its_create(world, cloud)
    cloud.things.clear()
    world.patch("s")
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-2"])


def test_an_outage_during_the_search_for_an_object_replaces_nothing(world: World, cloud: Cloud):
    uuid = refused_after_its_create(world, cloud)
    cloud.outage.add("find")
    world.patch("s")
    world.retry(3)
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_IN_PROGRESS", ["a-1"])
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), list(cloud.things)) == ("UPDATE_COMPLETE", ["a-1"])


def test_an_object_that_find_does_not_return_is_created_again(world: World, cloud: Cloud):
    cloud.on["created"] = fails(ProviderSilent("no answer"))
    cloud.outage.add("find")
    uuid = world.create("s", {"a": desk()})
    world.retry(0)
    cloud.on.clear()
    cloud.outage.clear()
    cloud.things.clear()  # as if `find` reported an object of an unreachable provider as absent
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 2})


@pytest.mark.parametrize("verb", ["find", "observe"])
def test_an_outage_of_a_reading_verb_during_a_create_only_delays_it(world: World, cloud: Cloud, verb: str):
    cloud.on["created"] = fails(TimeoutError("20 s"))
    cloud.outage.add(verb)
    uuid = world.create("s", {"a": desk()})
    world.retry(0)
    cloud.on.clear()
    world.retry(8)
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.outage.clear()
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 1})


def test_an_object_that_disappears_during_its_create_is_created_again(world: World, cloud: Cloud):
    cloud.on["observe"] = lambda _ctx: cloud.things.clear() if cloud.made["a"] == 1 else None
    uuid = world.create("s", {"a": desk()})
    world.deliver_all()
    assert (world.state(uuid), cloud.made) == ("CREATE_COMPLETE", {"a": 2})
