"""The field of a stack: a byte per resource, names by range, changes by cursor, and its page."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import gzip
import json
import struct
import threading
import uuid
from typing import Any

import pytest
from sqlalchemy import update

from api.streaming import fields
from api.streaming.fields import Fields
from api.v1 import pictures
from orchestrator.engine.pictures.field import STATES, Field
from orchestrator.operations.pictures import field as built
from orchestrator.operations.pictures.field import FieldBuilder
from orchestrator.store.tables.graph import Resource
from orchestrator.store.tables.stacks import Stack
from tests.e2e.running import eventually
from tests.integration.api_world import Client, Made, World, api, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words


def read(body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header and the rest of a field."""
    length = struct.unpack("<I", body[4:8])[0]
    assert body[:4] == b"FLD1"
    return json.loads(body[8 : 8 + length]), body[8 + length :]


def states(body: bytes) -> list[str]:
    return [STATES[byte & 15] for byte in read(body)[1]]


def field(api: Client, stack: Made, **headers: str) -> Any:
    return api.http.get(f"/v1{stack.path}/field", headers=headers)


def counts(api: Client, stack: Made) -> dict[str, int]:
    found: dict[str, int] = api.get(f"{stack.path}/field/summary")["field"]["counts"]
    return found


def complete(world: World, stack: Made, name: str) -> None:
    """Complete a resource, with an event."""
    with world.database.engine.begin() as connection:
        connection.execute(
            update(Resource)
            .where(Resource.stack_id == stack.id, Resource.name == name)
            .values(action="CREATE", status="COMPLETE")
        )
    world.event(stack, name)


def set_status(world: World, stack: Made, status: str) -> None:
    with world.database.engine.begin() as connection:
        connection.execute(update(Stack).where(Stack.id == stack.id).values(status=status))


def tree(world: World, project: str) -> Made:
    """A stack with a nested stack: `base` <- `nest` (`x` <- `y`) and `free`."""
    root = world.stack(project, "tree")
    world.resource(root, "free", action="CREATE", status="FAILED")
    world.resource(root, "base", action="CREATE", status="COMPLETE")
    owner = world.resource(root, "nest", ["base"], action="CREATE", status="IN_PROGRESS")
    child = world.stack(
        project,
        "tree-nest",
        owner_id=root.id,
        root_id=root.id,
        depth=1,
        parent_resource_id=owner,
        parent_resource="nest",
    )
    world.resource(child, "y", ["x"])
    world.resource(child, "x", action="CREATE", status="COMPLETE")
    return root


def test_no_thread_is_left_when_the_fields_are_closed(api: Client, world: World, project: str) -> None:
    before = set(threading.enumerate())
    field(api, tree(world, project))
    [reader] = [thread for thread in set(threading.enumerate()) - before if thread.name == "fields"]
    api.http.application.state.parts[Fields].close()
    assert not reader.is_alive()


def test_resources_are_ordered_by_level_stack_and_name(api: Client, world: World, project: str) -> None:
    root = tree(world, project)
    names = api.get(f"{root.path}/field/names")
    assert [(item["stack_name"], item["resource_name"]) for item in names["resources"]] == [
        ("tree", "base"),
        ("tree", "free"),
        ("tree", "nest"),
        ("tree-nest", "x"),
        ("tree-nest", "y"),
    ]
    answer = field(api, root)
    header, _ = read(answer.data)
    assert states(answer.data) == ["complete", "failed", "in_progress", "complete", "planned"]
    assert header["levels"] == [2, 2, 1]
    assert header["count"] == 5
    assert header["order"] == names["order"]
    assert api.get(f"{root.path}/field/names?start=2&count=1")["resources"][0]["resource_name"] == "nest"
    api.get(f"{root.path}/field/names?count=1001", 400)


def test_only_the_current_incarnation_of_a_resource_is_shown(api: Client, world: World, project: str) -> None:
    root = world.stack(project, "replaced")
    for name, deposed, status in (
        ("a", True, "COMPLETE"),
        ("a", False, "FAILED"),
        ("a", True, "COMPLETE"),
        ("b", True, "COMPLETE"),
        ("b", True, "FAILED"),
        ("c", False, "COMPLETE"),
    ):
        world.resource(root, name, action="CREATE", status=status, deposed=deposed)
    assert states(field(api, root).data) == ["failed", "failed", "complete"]
    names = api.get(f"{root.path}/field/names")["resources"]
    assert [item["resource_name"] for item in names] == ["a", "b", "c"]


def test_an_unchanged_field_is_not_sent_again(api: Client, world: World, project: str) -> None:
    root = tree(world, project)
    tag = field(api, root).headers["ETag"]
    again = field(api, root, **{"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")


def test_a_new_status_of_the_stack_is_sent_without_changes_of_resources(
    api: Client, world: World, project: str
) -> None:
    root = world.stack(project, "ending", status="IN_PROGRESS")
    world.resource(root, "a")
    whole = field(api, root)
    header, _ = read(whole.data)
    assert header["stack_status"] == "CREATE_IN_PROGRESS"
    changes = f"/v1{root.path}/field/changes?order={header['order']}&cursor={header['cursor']}"
    assert read(api.http.get(changes).data)[0]["stack_status"] == "CREATE_IN_PROGRESS"
    set_status(world, root, "COMPLETE")
    after, _ = read(api.http.get(changes).data)
    assert (after["changed"], after["stack_status"]) == (0, "CREATE_COMPLETE")
    again = field(api, root, **{"If-None-Match": whole.headers["ETag"]})
    assert read(again.data)[0]["stack_status"] == "CREATE_COMPLETE"


def test_a_viewer_receives_the_bytes_that_changed(api: Client, world: World, project: str) -> None:
    root = world.stack(project, "live", status="IN_PROGRESS")
    for name in "abc":
        world.resource(root, name)
    header, _ = read(field(api, root).data)

    def changes() -> tuple[dict[str, Any], bytes]:
        query = {key: header[key] for key in ("order", "cursor")}
        return read(api.http.get(f"/v1{root.path}/field/changes", query_string=query).data)

    assert changes()[0]["changed"] == 0
    complete(world, root, "b")
    eventually(lambda: bool(changes()[0]["changed"]))
    after, rest = changes()
    assert rest == struct.pack("<I", 1) + bytes([STATES.index("complete")])
    assert after["counts"]["complete"] == 1
    whole, bytes_ = read(
        api.http.get(f"/v1{root.path}/field/changes?order={after['order']}&cursor=other.1").data
    )
    assert "changed" not in whole
    assert len(bytes_) == 3


def test_a_slow_reload_of_a_field_delays_no_changes(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, other = (world.stack(project, name, status="IN_PROGRESS") for name in ("slow", "other"))
    for stack in (slow, other):
        for name in "ab":
            world.resource(stack, name)
        field(api, stack)
    reads, may_end, build = threading.Event(), threading.Event(), FieldBuilder.build

    def build_later(builder: FieldBuilder, **options: bool) -> Field:
        found = build(builder, **options)
        if [stack.id for stack in builder.arrangement.rows.stacks] == [slow.id]:
            reads.set()
            may_end.wait(30)
        return found

    monkeypatch.setattr(FieldBuilder, "build", build_later)
    world.event(slow, "slow", physical_id=str(slow.uuid))  # its action ends: the field is read again
    assert reads.wait(30)
    for stack in (slow, other):
        complete(world, stack, "b")
    eventually(lambda: [counts(api, stack)["complete"] for stack in (slow, other)] == [1, 1])
    may_end.set()
    api.http.application.state.parts[Fields].close()  # waits for the read
    assert counts(api, slow)["complete"] == 1


def test_fields_of_other_projects_do_not_exist(world: World, api: Client, project: str) -> None:
    root = tree(world, project)
    for part in ("field", "field/changes", "field/summary", "field/names"):
        api.get(f"/other/stacks/{root.name}/{root.uuid}/{part}", 404)


def test_a_long_field_is_compressed(api: Client, world: World, project: str) -> None:
    root = world.stack(project, "long")
    world.insert(
        Resource,
        *[
            {
                "uuid": uuid.uuid4(),
                "stack_id": root.id,
                "name": f"r{n:04}",
                "type": "Test::Plain",
            }
            for n in range(1_500)
        ],
    )
    answer = field(api, root, **{"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.data) < 500


def test_the_first_picture_of_a_large_field_has_no_levels(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(world, project)
    world.resource(root, "old", action="CREATE", status="COMPLETE", deposed=True)
    monkeypatch.setattr(built, "LARGE", 4)
    api = world.client()
    summary = api.get(f"{root.path}/field/summary?draft=true")["field"]
    assert (summary["draft"], summary["count"], summary["levels_count"]) == (True, 6, 0)
    assert summary["counts"]["complete"] == 2
    first = api.http.get(f"/v1{root.path}/field?draft=true").data
    assert sorted(states(first)) == ["complete", "complete", "deleting", "failed", "in_progress", "planned"]
    assert states(first)[:2] == ["deleting", "complete"]  # the rows that were planned last
    assert states(field(api, root).data)[-1] == "planned"
    assert "draft" not in read(api.http.get(f"/v1{root.path}/field?draft=true").data)[0]


def test_an_old_first_picture_is_read_again(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = world.stack(project, "large", status="IN_PROGRESS")
    for name in "ab":
        world.resource(made, name)
    monkeypatch.setattr(built, "LARGE", 1)
    monkeypatch.setattr(fields, "DRAFT_SECONDS", 0.0)
    api = world.client()

    def shown(query: str) -> tuple[bool, int]:
        summary = api.get(f"{made.path}/field/summary{query}")["field"]
        return "draft" in summary, summary["counts"]["complete"]

    assert shown("?draft=true") == (True, 0)
    complete(world, made, "a")
    assert shown("?draft=true") == (True, 1)
    complete(world, made, "b")
    assert shown("") == (False, 2)


def test_the_page_counts_states_and_links_to_the_lists(world: World, project: str) -> None:
    root = tree(world, project)
    browser = Browser(world.client())
    page = browser.text(f"/ui{root.path}/field")
    assert "5 resources" in words(page)
    assert any(link.endswith("/resources?status=FAILED") for link in links(page))
    data = browser.open(f"/ui{root.path}/field/data", headers={"Accept-Encoding": "gzip"})
    assert states(data.data)[0] == "complete"
    names = browser.open(f"/ui{root.path}/field/names?start=0&count=5").json
    assert names["resources"][3]["url"].endswith("/resources/x")
    header, _ = read(data.data)
    changed = browser.open(f"/ui{root.path}/field/changes?order={header['order']}&cursor={header['cursor']}")
    assert read(changed.data)[0]["changed"] == 0


def test_viewers_share_compressed_changes_only_with_viewers_who_accept_them(
    api: Client, world: World, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "COMPRESSED_BYTES", 1)
    root = tree(world, project)
    path = f"/v1{root.path}/field/changes"
    plain, packed, again = (
        api.http.get(path, headers=headers) for headers in ({}, {"Accept-Encoding": "gzip"}, {})
    )
    assert plain.data == again.data == gzip.decompress(packed.data)
    assert [item.headers.get("Content-Encoding") for item in (plain, packed, again)] == [None, "gzip", None]
