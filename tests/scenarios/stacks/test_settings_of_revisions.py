"""The settings that an update gives a stack are a part of its revision, and return with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from orchestrator.operations.adoption.export import export_snapshot
from orchestrator.operations.context import Body
from orchestrator.operations.snapshots import snapshots
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.store.traversals.revision_settings import NAMES as SETTINGS
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.world import World

FIRST = {
    "tags": "blue,green",
    "timeout_mins": 10,
    "disable_rollback": False,
    "keep_going": False,
    "resume": True,
}
SECOND = {"tags": "red", "timeout_mins": 20, "disable_rollback": False, "keep_going": True, "resume": False}
GOOD, BAD = {"a": cloud_thing(value="a")}, {"b": cloud_thing(errors=99, final=True)}
# Columns of a stack that tell of its actions, not of its desired state.
OF_ACTIONS = {
    "action",
    "status",
    "status_reason",
    "traversal",
    "halted_traversal",
    "revision_id",
    "good_revision_id",
    "updated_at",
    "action_started_at",
}


def after_a_failure(world: World) -> None:
    world.update("s", BAD, **SECOND)
    world.deliver_all()


def by_a_cancel(world: World) -> None:
    world.update("s", {"a": cloud_thing(value="b", looks=9)}, **SECOND)
    world.deliver(2)
    world.act("s", "cancel_update")
    world.deliver_all()


def by_number(world: World) -> None:
    world.update("s", {"a": cloud_thing(value="b")}, **SECOND)
    world.deliver_all()
    world.messages += roll_back(world.context, world.stack_row("s"), 1)
    world.deliver_all()


def by_a_patch_that_fails(world: World) -> None:
    world.patch("s", template={"heat_template_version": "2021-04-16", "resources": BAD}, **SECOND)
    world.deliver_all()


def by_a_snapshot(world: World) -> None:
    started = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += started.messages
    world.deliver_all()
    world.update("s", {"a": cloud_thing(value="b")}, **SECOND)
    world.deliver_all()
    assert settings(world)["tags"] == ["red"]
    found = snapshots.find(world.context, world.stack_row("s"), str(started.snapshot.uuid))
    document = b"".join(export_snapshot(world.database, world.cipher, world.stack_row("s"), found))
    assert orjson.loads(document)["tags"] == ["blue", "green"]
    world.messages += snapshots.restore(world.context, world.stack_row("s"), str(started.snapshot.uuid))
    world.deliver_all()


WAYS_BACK: list[Callable[[World], None]] = [
    after_a_failure,
    by_a_cancel,
    by_number,
    by_a_patch_that_fails,
    by_a_snapshot,
]


def columns(world: World) -> dict[str, Any]:
    [row] = world.rows("SELECT * FROM stack WHERE name = 's'")
    return {name: value for name, value in row._mapping.items() if name not in OF_ACTIONS}


def settings(world: World) -> dict[str, Any]:
    return {name: value for name, value in columns(world).items() if name in SETTINGS}


@pytest.mark.parametrize("go_back", WAYS_BACK)
def test_every_way_back_brings_every_setting_back(world: World, go_back: Callable[[World], None]) -> None:
    uuid = world.create("s", GOOD, **FIRST)
    world.deliver_all()
    before = columns(world)
    go_back(world)
    assert world.state(uuid) in ("ROLLBACK_COMPLETE", "RESTORE_COMPLETE")
    assert columns(world) == before


def test_an_update_changes_every_setting_and_a_failure_without_a_rollback_keeps_them(world: World) -> None:
    uuid = world.create("s", GOOD, **FIRST)
    world.deliver_all()
    before = settings(world)
    world.update("s", BAD, **{**SECOND, "disable_rollback": True})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_FAILED"
    after = settings(world)
    assert before.keys() == set(SETTINGS)
    assert all(before[name] != after[name] for name in SETTINGS)


def test_a_restore_keeps_the_present_answer_to_a_failure(world: World) -> None:
    world.create("s", GOOD, disable_rollback=True)
    world.deliver_all()
    started = snapshots.take(world.context, world.stack_row("s"), Body(b"{}"))
    world.messages += started.messages
    world.deliver_all()
    world.update("s", GOOD, disable_rollback=False)
    world.deliver_all()
    world.messages += snapshots.restore(world.context, world.stack_row("s"), str(started.snapshot.uuid))
    assert settings(world)["disable_rollback"] is False


def test_a_revision_of_an_older_version_leaves_the_settings(world: World) -> None:
    uuid = world.create("s", GOOD, **FIRST)
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE revision SET settings = NULL")
    after_a_failure(world)
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert settings(world)["tags"] == ["red"]
