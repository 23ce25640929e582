"""A governed type is created for an author who may use it, and for no other, however the type is given."""

from __future__ import annotations

import orjson
import pytest

from orchestrator.errors import Forbidden
from orchestrator.operations.context import Body
from orchestrator.operations.preview.create import preview_create
from orchestrator.security.caller import Caller
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.governed.governed_world import (
    AT_THE_REQUEST,
    BUILDER,
    GOVERNED,
    IN_A_WORKER,
    KNOWN_LATER,
    MEMBER,
    REASON,
    SCALED,
    GovernedWorld,
    ask,
    later_group,
    resource_group,
    value,
)


@pytest.mark.parametrize("way", AT_THE_REQUEST)
def test_a_type_that_the_request_shows_is_refused_there(world: GovernedWorld, way: str) -> None:
    world.become(MEMBER)
    with pytest.raises(Forbidden, match="You are not authorized to use"):
        ask(world, AT_THE_REQUEST[way])
    assert world.rows("SELECT 1 FROM stack") == []
    world.become(BUILDER)
    ask(world, AT_THE_REQUEST[way])


@pytest.mark.parametrize("way", IN_A_WORKER)
def test_a_type_that_only_a_worker_knows_is_refused_there(world: GovernedWorld, way: str) -> None:
    world.become(MEMBER)
    uuid = ask(world, IN_A_WORKER[way])
    world.settle()
    assert world.state(uuid) == "CREATE_FAILED"
    assert world.made() == 0
    refused = [reason for reason in world.reasons() if REASON in reason]
    assert "Forbidden: resources." in refused[0]
    assert "Cloud::Server" in refused[0] or "Named::Thing" in refused[0]
    world.become(BUILDER)
    uuid = ask(world, IN_A_WORKER[way], "t")
    world.settle()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.made() == 1


@pytest.mark.parametrize("way", SCALED)
@pytest.mark.parametrize("author", [MEMBER, BUILDER])
@pytest.mark.parametrize("other", [MEMBER, BUILDER])
def test_members_added_by_a_signal_are_judged_by_the_author_of_the_template(
    world: GovernedWorld, way: str, author: Caller, other: Caller
) -> None:
    world.become(author)
    world.create("s", SCALED[way])
    world.settle()
    world.become(other)
    world.signal("s", "up")
    world.settle()
    assert world.made() == (author is BUILDER)


@pytest.mark.parametrize("way", IN_A_WORKER)
def test_an_update_brings_no_type_that_its_author_may_not_use(world: GovernedWorld, way: str) -> None:
    world.become(BUILDER)
    uuid = world.create("s", {"o": cloud_thing(value="o")})
    world.settle()
    world.become(MEMBER)
    sections = {key: part for key, part in IN_A_WORKER[way].items() if key != "resources"}
    world.update("s", IN_A_WORKER[way]["resources"], **sections)
    world.settle()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert world.made() == 0
    world.become(BUILDER)
    world.update("s", IN_A_WORKER[way]["resources"], **sections)
    world.settle()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.made() == 1


def test_existing_members_continue_under_an_author_who_may_not_add_any(world: GovernedWorld) -> None:
    world.become(BUILDER)
    uuid = world.create("s", later_group(2))
    world.settle()
    world.become(MEMBER)
    world.update("s", {**later_group(2), "o": cloud_thing(value="o")})
    world.settle()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.update("s", later_group(3))
    world.settle()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert world.made() == 2
    world.update("s", later_group(1))
    world.settle()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.made() == 1


def test_existing_members_are_not_changed_for_an_author_who_may_not_use_them(
    world: GovernedWorld, cloud: Cloud
) -> None:
    world.become(BUILDER)
    uuid = world.create("s", later_group(1))
    world.settle()
    world.become(MEMBER)
    other = {"type": GOVERNED, "properties": {"value": "y"}}
    world.update("s", {**value(other), **resource_group(KNOWN_LATER, 1)})
    world.settle()
    assert world.state(uuid) == "UPDATE_FAILED"
    assert "update 0" not in cloud.calls
    assert any(REASON in reason for reason in world.reasons())


@pytest.mark.parametrize("way", AT_THE_REQUEST)
def test_a_preview_refuses_what_a_create_refuses(world: GovernedWorld, way: str) -> None:
    request = AT_THE_REQUEST[way]
    template = {"heat_template_version": "2021-04-16", "resources": request["resources"]}
    if "parameters" in request:
        template["parameters"] = request["parameters"]
    sections = {key: request[key] for key in ("environment", "files") if key in request}
    body = orjson.dumps({"stack_name": "s", "template": template, **sections})
    world.become(MEMBER)
    with pytest.raises(Forbidden, match="You are not authorized to use"):
        preview_create(world.context, Body(body))
    world.become(BUILDER)
    preview_create(world.context, Body(body))
