"""The rights that count when a stack returns to earlier content, and for content of older versions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import Forbidden
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.operations.stacks.resources import list_resources
from orchestrator.security.caller import Caller
from tests.scenarios.adoption.adoption_world import adopt
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.governed.governed_world import (
    AT_THE_REQUEST,
    BUILDER,
    DEFINITION,
    EMPTY,
    GOVERNED,
    KNOWN_LATER,
    MEMBER,
    REASON,
    SCALED,
    UP,
    GovernedWorld,
    ask,
    later_group,
    scaling_group,
    value,
)


def test_a_rollback_of_a_user_needs_the_right_to_each_type(world: GovernedWorld) -> None:
    world.become(BUILDER)
    uuid = world.create("s", {"x": dict(DEFINITION)})
    world.settle()
    world.update("s", {"o": cloud_thing(value="o")})
    world.settle()
    before = world.rows("SELECT id FROM revision ORDER BY id")
    world.become(MEMBER)
    with pytest.raises(Forbidden, match="You are not authorized to use"):
        roll_back(world.context, world.stack_row("s"), 1)
    assert world.rows("SELECT id FROM revision ORDER BY id") == before
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.become(BUILDER)
    world.messages += roll_back(world.context, world.stack_row("s"), 1)
    world.settle()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert world.made() == 1


@pytest.mark.parametrize("way", AT_THE_REQUEST)
def test_every_type_of_a_revision_is_judged_before_a_rollback(world: GovernedWorld, way: str) -> None:
    world.become(BUILDER)
    ask(world, AT_THE_REQUEST[way])
    world.update("s", {"o": cloud_thing(value="o")})
    world.become(MEMBER)
    with pytest.raises(Forbidden, match="You are not authorized to use"):
        roll_back(world.context, world.stack_row("s"), 1)
    world.become(BUILDER)
    roll_back(world.context, world.stack_row("s"), 1)


@pytest.mark.parametrize("author", [MEMBER, BUILDER])
@pytest.mark.parametrize("other", [MEMBER, BUILDER])
def test_a_rollback_has_the_rights_that_its_requester_and_the_author_have_both(
    world: GovernedWorld, author: Caller, other: Caller
) -> None:
    world.become(author)
    world.create("s", later_group(1))
    world.settle()
    world.become(BUILDER)
    world.update("s", {"o": cloud_thing(value="o")})
    world.settle()
    assert world.made() == 0
    world.become(other)
    world.messages += roll_back(world.context, world.stack_row("s"), 1)
    world.settle()
    assert world.made() == (author is BUILDER and other is BUILDER)


def test_an_automatic_rollback_has_the_rights_of_the_author_of_its_revision(world: GovernedWorld) -> None:
    world.become(BUILDER)
    uuid = world.create("s", {"x": dict(DEFINITION)}, disable_rollback=False)
    world.settle()
    world.become(MEMBER)
    world.update("s", {"b": cloud_thing(errors=99, final=True)}, disable_rollback=False)
    world.settle()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert world.made() == 1


@pytest.mark.parametrize("by", [MEMBER, BUILDER])
def test_a_restore_needs_the_right_to_each_type(world: GovernedWorld, by: Caller) -> None:
    world.become(BUILDER)
    uuid = world.create("s", {"x": dict(DEFINITION)})
    world.settle()
    started = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += started.messages
    world.settle()
    world.update("s", {"o": cloud_thing(value="o")})
    world.settle()
    world.become(by)
    with suppress(Forbidden):
        world.messages += snapshots.restore(world.context, world.stack_row("s"), str(started.snapshot.uuid))
    world.settle()
    assert world.state(uuid) == ("RESTORE_COMPLETE" if by is BUILDER else "UPDATE_COMPLETE")
    assert world.made() == (by is BUILDER)


@pytest.mark.parametrize("by", [MEMBER, BUILDER])
def test_a_restore_has_the_rights_that_its_requester_and_the_author_have_both(
    world: GovernedWorld, by: Caller
) -> None:
    world.become(BUILDER)
    world.create("s", later_group(1))
    world.settle()
    started = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += started.messages
    world.settle()
    world.update("s", {"o": cloud_thing(value="o")})
    world.settle()
    world.become(by)
    world.messages += snapshots.restore(world.context, world.stack_row("s"), str(started.snapshot.uuid))
    world.settle()
    assert world.made() == (by is BUILDER)


@pytest.mark.parametrize("by", [MEMBER, BUILDER])
def test_an_adoption_has_the_rights_of_its_author(world: GovernedWorld, cloud: Cloud, by: Caller) -> None:
    cloud.things["thing"] = "token"
    world.become(by)
    data = {
        "template": {"heat_template_version": "2021-04-16", "resources": later_group(1)},
        "resources": {"v": {"resource_id": "v"}, "g": {"resources": {"0": {"resource_id": "thing"}}}},
    }
    uuid = adopt(world, data)
    world.settle()
    assert world.state(uuid) == ("ADOPT_COMPLETE" if by is BUILDER else "ADOPT_FAILED")


def test_a_repair_has_the_rights_of_the_author(world: GovernedWorld, cloud: Cloud) -> None:
    world.become(BUILDER)
    uuid = world.create("s", later_group(1))
    world.settle()
    [row] = world.rows("SELECT physical_id FROM resource WHERE name = '0'")
    del cloud.things[row.physical_id]
    world.become(MEMBER)
    world.act("s", "converge")
    world.settle()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(cloud.things) == 1


def old(world: GovernedWorld) -> None:
    """Turn the revisions into an older version's, which recorded no rights."""
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE revision SET denied_types = NULL")
    world.engine = world.new_engine()


@pytest.mark.parametrize("author", [MEMBER, BUILDER])
def test_a_revision_without_recorded_rights_brings_no_governed_type(
    world: GovernedWorld, author: Caller
) -> None:
    world.become(author)
    world.create("s", SCALED["type from an attribute"])
    world.settle()
    old(world)
    world.signal("s", "up")
    world.settle()
    assert world.made() == 0
    assert any(REASON in reason for reason in world.reasons())


def test_existing_resources_of_a_revision_without_recorded_rights_continue(
    world: GovernedWorld, cloud: Cloud
) -> None:
    world.become(BUILDER)
    uuid = world.create("s", later_group(1))
    world.settle()
    old(world)
    world.act("s", "check")
    world.settle()
    assert world.state(uuid) == "CHECK_COMPLETE"
    [row] = world.rows("SELECT physical_id FROM resource WHERE name = '0'")
    del cloud.things[row.physical_id]
    world.act("s", "converge")
    world.settle()
    assert world.made() == 1


def test_a_rule_that_comes_later_leaves_an_accepted_revision_its_rights(
    world: GovernedWorld, tmp_path: Path
) -> None:
    world.become(MEMBER)
    definition = {"type": "Cloud::Thing", "properties": {"value": "x"}}
    uuid = world.create("s", {**value(definition), **scaling_group(KNOWN_LATER, **EMPTY), **UP})
    world.settle()
    later = tmp_path / "later.yaml"
    later.write_text("resource_types:Cloud::Thing: []\n")
    world.settings = world.settings.model_copy(update={"policy_file": later})
    world.context = replace(world.context, settings=world.settings)
    world.engine = world.new_engine()
    world.signal("s", "up")
    world.settle()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert len(world.rows("SELECT 1 FROM resource WHERE type = 'Cloud::Thing'")) == 1
    with pytest.raises(Forbidden):
        world.create("t", {"x": definition})
    with pytest.raises(Forbidden):
        world.update("s", {"x": definition})


def test_the_resources_of_a_stack_in_planning_are_listed_for_every_reader(world: GovernedWorld) -> None:
    world.become(BUILDER)
    world.create("s", {"x": dict(DEFINITION)})
    world.become(MEMBER)
    listed = list_resources(world.context, world.stack_row("s"))
    assert [(row.name, row.type) for row in listed] == [("x", GOVERNED)]
