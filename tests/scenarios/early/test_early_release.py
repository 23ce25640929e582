"""Dependents that need an object only to exist start before it is ready (operations/adr/0015)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from orchestrator.operations.diagnosis.explain import explain
from orchestrator.resources.base import Attribute, Context, Observation, Property
from orchestrator.store.stacks import blockers
from orchestrator.template.definition import ResourceDefinition
from tests.scenarios.fake_cloud import Cloud, Crash, Server, Thing, cloud_thing
from tests.scenarios.reconcile.hook_world import hooked
from tests.scenarios.world import World


class Booting(Server):
    """A server with an address from the start, and a console when it is ready. `moves` changes the address at
    the end.
    """

    name = "Cloud::Booting"
    early_attributes: ClassVar = frozenset({"address"})
    properties: ClassVar = {
        **Server.properties,
        "moves": Property("boolean", default=False),
        "unnumbered": Property("integer", "How many looks it has no address.", default=0),
    }
    attributes: ClassVar = {
        **Server.attributes,
        "address": Attribute("Where it is."),
        "console": Attribute("What it shows."),
    }

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        observed = super().observe(ctx, physical_id)
        if not observed.exists or observed.error:
            return observed
        attributes = dict(observed.attributes)
        if self.cloud.looks[physical_id] > ctx.properties["unnumbered"]:
            attributes["address"] = f"at {physical_id}"
        if observed.ready:
            attributes["console"] = "hello"
            if ctx.properties["moves"]:
                attributes["address"] = "elsewhere"
        return replace(observed, attributes=attributes)


class Attached(Thing):
    """A thing that waits for ready requirements in `value`."""

    name = "Cloud::Attached"
    needs_ready: ClassVar = frozenset({"value"})


class Patient(Thing):
    """A thing that waits for all requirements."""

    name = "Cloud::Patient"
    needs_ready: ClassVar = True


class Watching(Thing):
    """A thing that requires everything named `vm`, whether it refers to that or not."""

    name = "Cloud::Watching"

    def implicit_requires(
        self, definition: ResourceDefinition, resources: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        return {"vm"} & resources.keys()


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"action_retry_limit": 2}


@pytest.fixture
def world(postgres_url: str, cloud: Cloud, settings: dict[str, Any]) -> Iterator[World]:
    types = {**cloud.types(), **{kind.name: kind(cloud) for kind in (Booting, Attached, Patient, Watching)}}
    made = World(postgres_url, types=types, **settings)
    yield made
    made.close()


def booting(**properties: Any) -> dict[str, Any]:
    return cloud_thing(type="Cloud::Booting", **{"looks": 3, **properties})


def user(value: Any, type: str = "Cloud::Thing", **more: Any) -> dict[str, Any]:
    return {**cloud_thing(type=type, value=value), **more}


REFERENCE = {"get_resource": "vm"}
ADDRESS = {"get_attr": ["vm", "address"]}
CONSOLE = {"get_attr": ["vm", "console"]}


def creates(cloud: Cloud) -> list[str]:
    """Return the calls up to the create of the dependent."""
    return cloud.calls[: cloud.calls.index("create user") + 1]


@pytest.mark.parametrize("value", [REFERENCE, ADDRESS, {"list_join": ["-", [REFERENCE, ADDRESS]]}])
def test_a_dependent_of_the_id_or_an_early_attribute_starts_when_the_object_exists(
    world: World, cloud: Cloud, value: Any
) -> None:
    uuid = world.create("s", {"vm": booting(), "user": user(value)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert creates(cloud).count("observe vm") == 1
    vm, made = world.resource("vm"), world.resource("user")
    assert cloud.values[made.physical_id] in (
        vm.physical_id,
        f"at {vm.physical_id}",
        f"{vm.physical_id}-at {vm.physical_id}",
    )


@pytest.mark.parametrize(
    "dependent",
    [
        user(CONSOLE),
        user({"list_join": ["-", [ADDRESS, CONSOLE]]}),
        user(REFERENCE, depends_on="vm"),
        user("x", depends_on=["vm"]),
        user(REFERENCE, "Cloud::Patient"),
        user(ADDRESS, "Cloud::Attached"),
        user(REFERENCE, "Cloud::Watching"),
    ],
)
def test_a_dependent_that_needs_more_waits_until_it_is_ready(
    world: World, cloud: Cloud, dependent: Any
) -> None:
    uuid = world.create("s", {"vm": booting(), "user": dependent})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert creates(cloud).count("observe vm") == 4


def test_a_local_dependent_waits_because_it_hands_the_value_on(world: World, cloud: Cloud) -> None:
    local = {"type": "OS::Heat::Value", "properties": {"value": REFERENCE}}
    world.create("s", {"vm": booting(), "local": local, "user": user({"get_attr": ["local", "value"]})})
    world.deliver_all()
    assert creates(cloud).count("observe vm") == 4


def test_the_stack_is_complete_only_when_everything_is_ready(world: World, cloud: Cloud) -> None:
    uuid = world.create("s", {"vm": booting(looks=100), "user": user(REFERENCE)})
    world.retry(5)
    assert (world.status("user"), world.status("vm")) == ("CREATE_COMPLETE", "CREATE_IN_PROGRESS")
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    cloud.looks[world.resource("vm").physical_id] = 100
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


def test_a_later_update_without_a_change_visits_nothing(world: World, cloud: Cloud) -> None:
    resources = {"vm": booting(), "user": user(ADDRESS), "other": user(CONSOLE)}
    world.create("s", resources)
    world.deliver_all()
    world.update("s", resources)
    world.deliver_all()
    [finish] = world.rows("SELECT max(traversal) AS traversal FROM graph_node")
    assert [node.kind for node in world.nodes(traversal=finish.traversal)] == ["finish", "plan"]


def test_a_failure_after_an_early_release_fails_the_stack(world: World, cloud: Cloud) -> None:
    uuid = world.create(
        "s", {"vm": booting(looks=100), "user": user(REFERENCE), "last": user({"get_resource": "user"})}
    )
    world.retry(3)
    assert world.status("user") == "CREATE_COMPLETE"
    cloud.things.pop(world.resource("vm").physical_id)
    world.engine.settings.action_retry_limit = 0
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert (
        "resources.vm: it no longer exists at the provider"
        in world.rows("SELECT reason FROM failure")[0].reason
    )
    world.update("s", {"vm": booting(), "user": user(REFERENCE), "last": user({"get_resource": "user"})})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.values[world.resource("user").physical_id] == world.resource("vm").physical_id


def test_dependents_of_a_discarded_object_are_built_with_its_successor(world: World, cloud: Cloud) -> None:
    uuid = world.create("s", {"vm": booting(looks=100), "user": user(REFERENCE)})
    world.retry(3)
    first = world.resource("vm").physical_id
    assert cloud.values[world.resource("user").physical_id] == first
    cloud.things.pop(first)
    world.retry(4)
    second = world.resource("vm").physical_id
    assert second not in (None, first)
    assert cloud.values[world.resource("user").physical_id] == first  # the successor is not released early
    cloud.looks[second] = 100
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.values[world.resource("user").physical_id] == second
    assert sorted(cloud.things) == sorted([second, world.resource("user").physical_id])


def test_an_object_that_always_fails_is_created_once_more_than_without_early_dependents(
    world: World, cloud: Cloud
) -> None:
    limit = world.settings.action_retry_limit
    uuid = world.create("s", {"vm": booting(looks=1_000), "user": user(REFERENCE)})
    for _ in range(12):
        world.retry(3)
        cloud.things.pop(world.resource("vm").physical_id, None)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert cloud.made["vm"] == 1 + limit + 1  # the restart of the traversal counts the retries anew, once


def test_a_worker_that_dies_around_an_early_release_is_not_missed(world: World, cloud: Cloud) -> None:
    def die() -> None:
        raise Crash

    for point in (world.before, world.after):
        point("write_outcome", die, outcome="wait_early")
    uuid = world.create("s", {"vm": booting(), "user": user(REFERENCE)})
    for _ in range(40):
        try:
            world.deliver_all()
            break
        except Crash:
            world.forget_leases()
    world.forget_leases()
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(cloud.things) == 2


def test_a_delete_after_an_early_release_keeps_the_order(world: World, cloud: Cloud) -> None:
    uuid = world.create("s", {"vm": booting(looks=100), "user": user(REFERENCE)})
    world.retry(3)
    world.delete("s")
    cloud.looks[world.resource("vm").physical_id] = 100
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    deletes = [call for call in cloud.calls if call.startswith("delete")]
    assert deletes.index("delete user") < deletes.index("delete vm")
    assert cloud.things == {}


def test_a_dependent_that_is_still_being_created_is_not_visited_again(world: World, cloud: Cloud) -> None:
    """What it has seen is what the resource has when it is ready."""
    outcomes = world.record("write_outcome", "outcome", resource="user")
    uuid = world.create("s", {"vm": booting(looks=5), "user": cloud_thing(value=ADDRESS, looks=100)})
    world.retry(8)
    assert (world.status("user"), world.status("vm")) == ("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    cloud.looks[world.resource("user").physical_id] = 100
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert [outcome for outcome in outcomes if not outcome.startswith("wait")] == ["settle"]


def test_dependents_of_a_value_that_changed_before_the_object_was_ready_are_updated(
    world: World, cloud: Cloud
) -> None:
    uuid = world.create("s", {"vm": booting(moves=True), "user": user(ADDRESS, "Cloud::Server")})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.values[world.resource("user").physical_id] == "elsewhere"
    assert cloud.made == {"vm": 1, "user": 1}


def test_an_object_of_an_older_template_is_not_released_early(world: World, cloud: Cloud) -> None:
    world.create("s", {"vm": booting(looks=3, value="old")})
    world.retry(1)
    world.update("s", {"vm": booting(looks=3, value="new"), "user": user(REFERENCE)})
    world.deliver_all()
    assert "update vm" in creates(cloud)
    assert world.status("user") == "CREATE_COMPLETE"


def test_a_newer_template_releases_an_unchanged_object_early(world: World, cloud: Cloud) -> None:
    world.create("s", {"vm": booting(looks=100)})
    world.retry(2)
    world.update("s", {"vm": booting(looks=100), "user": user(REFERENCE)})
    world.retry(2)
    assert (world.status("user"), world.status("vm")) == ("CREATE_COMPLETE", "CREATE_IN_PROGRESS")


def test_dependents_wait_for_a_hook_after_the_create(world: World, cloud: Cloud) -> None:
    resources = {"vm": booting(), "user": user(REFERENCE)}
    world.create("s", resources, environment=hooked(vm="post-create"))
    world.deliver_all()
    assert cloud.made == {"vm": 1}
    world.clear("s", "vm", "post-create")
    world.deliver_all()
    assert cloud.made == {"vm": 1, "user": 1}


def test_dependents_of_an_object_that_is_replaced_before_it_is_ready_follow_the_replacement(
    world: World, cloud: Cloud
) -> None:
    uuid = world.create("s", {"vm": booting(looks=10), "user": user(REFERENCE, "Cloud::Server")})
    world.retry(3)
    assert world.status("user") == "CREATE_COMPLETE"
    world.mark("s", "vm")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert cloud.values[world.resource("user").physical_id] == world.resource("vm").physical_id
    assert cloud.made == {"vm": 2, "user": 1}
    assert len(cloud.things) == 2


def test_a_nested_stack_is_complete_only_when_everything_in_it_is_ready(world: World, cloud: Cloud) -> None:
    inner = {"heat_template_version": "2021-04-16"}
    inner["resources"] = {"vm": booting(looks=100), "user": user(REFERENCE)}
    child = {"type": "child.yaml"}
    outer = user({"get_resource": "child"})
    world.create("s", {"child": child, "outer": outer}, files={"child.yaml": json.dumps(inner)})
    world.retry(6)
    assert world.status("user") == "CREATE_COMPLETE"
    assert cloud.made == {"vm": 1, "user": 1}
    cloud.looks[world.resource("vm").physical_id] = 100
    world.deliver_all()
    assert cloud.made == {"vm": 1, "user": 1, "outer": 1}


def test_a_rollback_keeps_dependents_of_the_replaced_object(world: World, cloud: Cloud) -> None:
    """The dependents have seen a replacement that never became ready."""
    uuid = world.create("s", {"vm": cloud_thing(value="a"), "user": user(REFERENCE, "Cloud::Server")})
    world.deliver_all()
    before = world.resource("vm").physical_id
    resources = {"vm": booting(looks=100), "user": user(REFERENCE, "Cloud::Server")}
    world.update("s", resources, disable_rollback=False)
    world.retry(3)
    [new] = [row.physical_id for row in world.resources("vm") if row.physical_id != before]
    assert cloud.values[world.resource("user").physical_id] == new
    world.engine.settings.action_retry_limit = 0
    cloud.things.pop(new)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert cloud.values[world.resource("user").physical_id] == before == world.resource("vm").physical_id
    assert cloud.made == {"vm": 2, "user": 1}


def test_why_names_what_a_dependent_waits_for(world: World, cloud: Cloud) -> None:
    def text(name: str) -> str:
        row = world.stack_row("s")
        page = blockers.unfinished(world.database, row, None, 100)
        return next(explain(node, row, 5).text for node in page.nodes if node.name == name)

    resources = {"vm": booting(looks=100), "user": user(REFERENCE), "other": user(CONSOLE)}
    world.create("s", resources)
    world.deliver()
    assert text("user") == "waits for vm (only until it exists)"
    assert text("other") == "waits for vm"
    world.retry(2)
    assert text("other") == "waits for vm"
    assert world.status("user") == "CREATE_COMPLETE"


def test_a_dependent_of_the_id_does_not_wait_for_early_attributes(world: World, cloud: Cloud) -> None:
    resources = {"vm": booting(looks=4, unnumbered=2), "user": user(REFERENCE), "other": user(ADDRESS)}
    uuid = world.create("s", {**resources, "last": user(CONSOLE)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    observed = {
        name: cloud.calls[: cloud.calls.index(f"create {name}")].count("observe vm")
        for name in ("user", "other", "last")
    }
    assert observed == {"user": 1, "other": 3, "last": 5}
    vm = world.resource("vm")
    assert cloud.values[world.resource("other").physical_id] == f"at {vm.physical_id}"
    world.update("s", {**resources, "last": user(CONSOLE)})
    world.deliver_all()
    [newest] = world.rows("SELECT max(traversal) AS traversal FROM graph_node")
    assert [node.kind for node in world.nodes(traversal=newest.traversal)] == ["finish", "plan"]
