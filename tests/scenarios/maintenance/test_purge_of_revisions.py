"""Expired revisions are purged with their definitions and texts, unless they are in use."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from orchestrator.operations.maintenance import purge
from orchestrator.store.traversals import accept
from orchestrator.store.traversals.accept import _store_contents
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.maintenance.purge_world import (
    EVERYTHING,
    NOTHING,
    count,
    counts,
    db,
    execute,
    made,
    numbers,
    updated,
)
from tests.scenarios.world import World, test_resource

__all__ = ["db"]  # fixtures


def test_revisions_beyond_the_number_go_and_those_in_use_never(world: World, db):
    made(world)
    updated(world, *"abc")
    world.update("s", {"a": test_resource("x", fail=True)})
    world.deliver_all()
    updated_again = [{"a": test_resource(str(n), fail=True)} for n in range(3)]
    for resources in updated_again:
        world.update("s", resources)
        world.deliver_all()
    assert numbers(world) == [1, 2, 3, 4, 5, 6, 7, 8]
    execute(
        world,
        """INSERT INTO snapshot (uuid, stack_id, status, status_reason, traversal, revision_id)
        SELECT gen_random_uuid(), stack_id, 'COMPLETE', '', 2, id FROM revision WHERE number = 2""",
    )
    assert purge.purge(db, replace(NOTHING, revisions=2)) == {}  # too young
    purge.purge(db, replace(NOTHING, revisions=2, revisions_seconds=0))
    assert numbers(world) == [2, 4, 7, 8]  # of a snapshot, the last complete, the two newest
    world.act("s", "cancel_update") if world.stack_row("s").state == "UPDATE_IN_PROGRESS" else None
    purge.purge(db, EVERYTHING)
    assert numbers(world) == [2, 4, 8]


def test_only_expired_rows_of_an_active_stack_are_purged(world: World, db):
    made(world)
    updated(world, *"abc")
    world.update("s", {"a": test_resource("d")})
    before = counts(world)
    gone = purge.purge(db, EVERYTHING)
    assert set(gone) == {"events"}
    assert {**counts(world), "event": 0} == {**before, "event": 0}
    world.deliver_all()
    assert world.stack_row("s").state == "UPDATE_COMPLETE"


def test_definitions_and_texts_go_with_the_revisions_that_had_them(world: World, db):
    made(world)
    updated(world, *"abcdef")
    assert (count(world, "resource_definition"), count(world, "content")) == (7, 7)
    purge.purge(db, replace(NOTHING, revisions=2, revisions_seconds=0))
    assert (count(world, "resource_definition"), count(world, "content")) == (2, 2)
    updated(world, "g")
    assert world.stack_row("s").state == "UPDATE_COMPLETE"


def test_the_definition_of_a_resource_is_kept_and_decides_its_deletion_policy(postgres_url: str):
    cloud = Cloud()
    world = World(postgres_url, types=cloud.types())
    bad = {"errors": 99, "final": True}
    try:
        a = partial(cloud_thing, type="Cloud::Server")
        world.create("s", {"a": a(value="1")})
        world.deliver_all()
        built = a(value="2") | {"deletion_policy": "Retain"}
        world.update("s", {"a": built, "x": cloud_thing(("a",), **bad)})
        world.deliver_all()
        world.update("s", {"x": cloud_thing(**bad), "a": a(("x",), value="3")})  # does not come to it
        world.deliver_all()
        assert world.stack_row("s").state == "UPDATE_FAILED"
        with world.database.connect(hot=True, replan=True) as db:
            assert purge.purge(db, EVERYTHING)["revisions"] == 1
        assert numbers(world) == [1, 3]
        world.update("s", {"b": cloud_thing()})
        world.deliver_all()
        assert world.stack_row("s").state == "UPDATE_COMPLETE"
        assert [thing for thing in cloud.things if thing.startswith("a-")] == ["a-1"]
        assert cloud.values["a-1"] == "2"
    finally:
        world.close()


def test_a_revision_that_a_request_is_about_to_go_back_to_stays(world: World, db):
    made(world)
    updated(world, *"ab")
    stack = world.stack_row("s")
    with world.database.connect() as request, request.transaction():
        chosen = accept.revision_of_number(request, stack.id, 1)
        purge.purge(db, EVERYTHING)
        assert accept.accept_rollback(request, stack.id, chosen) is not None
    world.deliver_all()
    assert world.stack_row("s").state == "ROLLBACK_COMPLETE"


def test_a_text_that_any_stack_names_stays(world: World, db):
    files = {"f": "same text"}
    read = {"a": test_resource({"get_file": "f"})}
    world.create("one", read, files=files)
    world.create("two", {**read, "b": test_resource()}, files={"f": "same text"})
    world.create("three", {"c": test_resource({"get_file": "f"})}, files={"f": "other text"})
    world.deliver_all()
    assert count(world, "content") == 5
    for name in ("one", "three"):
        world.delete(name)
    world.deliver_all()
    assert purge.purge(db, EVERYTHING)["texts"] == 3
    assert [row.body for row in world.rows("SELECT body FROM content WHERE body = 'same text'")]
    updated(world, "w", name="two")


def test_a_text_that_a_request_is_about_to_name_stays(world: World, db):
    text = world.rows("SELECT 1") and b"some text"
    execute(world, "INSERT INTO content (hash, body) VALUES (sha256('some text'), 'some text')")
    with world.database.connect() as request, request.transaction():
        [hash_] = _store_contents(request, text)
        assert purge.purge(db, EVERYTHING) == {}
    assert world.rows("SELECT hash FROM content")[0].hash == hash_
    assert purge.purge(db, EVERYTHING) == {"texts": 1}
