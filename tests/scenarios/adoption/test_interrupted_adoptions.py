"""Adoptions and abandons interrupted by updates, deletes, worker deaths, or busy providers."""

from __future__ import annotations

import pytest

from orchestrator.resources.base import Context
from tests.scenarios.adoption.adoption_world import abandon, adopt, three, touched
from tests.scenarios.fake_cloud import Crash, cloud_thing


def test_an_update_over_an_adoption_takes_over_first_and_changes_then(world, cloud):
    world.create("s", three(), parameters={"x": {"type": "string", "default": "1"}})
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    made = dict(cloud.made)
    uuid = adopt(world, data)
    world.deliver()  # the plan
    world.update("s", three(a=cloud_thing(value="new", type="Cloud::Server")))
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert touched(cloud).count("update a") == 1
    assert set(cloud.values.values()) >= {"new"}
    assert made["a"] == cloud.made["a"] == 1


def test_an_update_that_comes_before_an_adoption_is_planned_takes_over_first_too(world, cloud):
    world.create("s", three())
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    things = set(cloud.things)
    uuid = adopt(world, data)
    world.update("s", three(a=cloud_thing(value="new", type="Cloud::Server"), b=None))
    world.update("s", three(a=cloud_thing(value="newer", type="Cloud::Server"), b=None))
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(cloud.things) == things  # b is nobody's, and let be
    assert cloud.made == {"a": 1, "b": 1}
    assert touched(cloud).count("update a") == 1
    world.update("s", three(a=cloud_thing(value="newer", type="Cloud::Server")))
    world.deliver_all()
    assert cloud.made == {"a": 1, "b": 2}  # a resource that was not adopted then is not adopted later


def test_an_update_of_a_parameter_over_an_adoption_is_not_lost(world, cloud):
    resources = {"a": cloud_thing(value={"get_param": "v"}, type="Cloud::Server")}
    declared = {"v": {"type": "string", "default": "old"}}
    world.create("s", resources, parameters=declared)
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    uuid = adopt(world, data)
    world.deliver()  # the plan
    world.patch("s", parameters={"v": "new"})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values == {"a-1": "new"}
    assert cloud.made == {"a": 1}


def test_a_delete_during_an_adoption_does_not_touch_resources_not_yet_adopted(world, cloud):
    cloud.things |= {"one": "x", "two": "y"}
    resources = {"a": cloud_thing(), "b": cloud_thing(requires=("a",))}
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    things = {"a": {"resource_id": "one"}, "b": {"resource_id": "two"}}
    uuid = adopt(world, {"template": template, "resources": things})
    world.deliver(2)  # the plan, and a
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert set(cloud.things) == {"two"}


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_worker_that_dies_while_it_adopts_is_followed_by_another(world, cloud, shuffle):
    world.create("s", three())
    world.deliver_all()
    data, before = abandon(world), touched(cloud)
    world.deliver_all()
    deaths = iter([True, False, True])

    def die(ctx: Context) -> None:
        if next(deaths, False):
            raise Crash

    cloud.on["observe"] = die
    uuid = adopt(world, data)
    for _ in range(4):
        try:
            world.deliver_all(shuffle=shuffle)
        except Crash:
            world.engine = world.new_engine()
            world.forget_leases()
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert touched(cloud) == before


def test_a_provider_that_is_busy_is_asked_again(world, cloud):
    world.create("s", three())
    world.deliver_all()
    data, before = abandon(world), touched(cloud)
    world.deliver_all()
    uuid = adopt(world, data)
    cloud.busy = True
    for _ in range(3):
        world.deliver(5)
    assert [tuple(r) for r in world.rows("SELECT action, status FROM resource WHERE name = 'a'")] == [
        ("INIT", "COMPLETE")
    ]
    assert world.rows("SELECT 1 FROM graph_node WHERE unreachable_tries > 0")
    cloud.busy = False
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert touched(cloud) == before
    states = "SELECT DISTINCT action, status, attributes IS NULL AND sealed IS NULL AS bare FROM resource"
    assert [tuple(row) for row in world.rows(states)] == [("ADOPT", "COMPLETE", False)]


def test_deleting_a_stack_that_is_being_abandoned_removes_nothing(world, cloud):
    world.create("s", three())
    world.deliver_all()
    things = dict(cloud.things)
    uuid = str(world.stack_row("s").uuid)
    abandon(world)
    world.deliver()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == things


def test_abandoning_over_a_running_update_touches_nothing_any_more(world, cloud):
    world.create("s", three())
    world.deliver_all()
    things = dict(cloud.things)
    uuid = str(world.stack_row("s").uuid)
    world.update("s", {"a": cloud_thing(value="va", type="Cloud::Server")})
    world.deliver()
    data = abandon(world)
    assert (data["action"], data["status"]) == ("UPDATE", "IN_PROGRESS")
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == things
