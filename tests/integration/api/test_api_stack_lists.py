"""Lists of stacks over HTTP (docs/internals/rest-api.md §3, §5): fields, order, pages, filters."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import uuid
from itertools import pairwise
from urllib.parse import urlsplit

import orjson
import pytest

from tests.integration.api_world import START, Client, World, api, project, root, world  # noqa: F401 - fixtures


def test_a_list_shows_only_the_fields_of_a_list(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "s")
    [listed] = api.get(f"{root(project)}/stacks")["stacks"]
    assert listed == {
        "id": str(made.uuid),
        "links": [{"rel": "self", "href": f"http://localhost/v1{made.path}"}],
        "stack_name": "s",
        "description": "",
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "Stack CREATE completed successfully",
        "creation_time": "2026-01-01T12:00:00Z",
        "updated_time": None,
        "deletion_time": None,
        "stack_owner": "somebody",
        "parent": None,
        "stack_user_project_id": None,
        "tags": None,
    }


@pytest.fixture
def five(world: World, project: str) -> str:
    """The list's path of a project with five stacks, named by age; three share a second."""
    updated = START + dt.timedelta(hours=1)
    world.stack(project, "a", age=0, tags=["x"], updated_at=updated)
    world.stack(project, "b", age=1, tags=["x", "y"], status="FAILED")
    world.stack(project, "c", age=1, tags=["y"], action="UPDATE", username="else")
    world.stack(project, "d", age=1, tags=[], status="IN_PROGRESS", timeout_mins=7)
    world.stack(project, "e", age=2, tags=["data-processing-cluster"], disable_rollback=False)
    world.stack(project, "gone", age=3, action="DELETE", deleted_at=START)
    return f"{root(project)}/stacks"


def test_a_list_is_newest_first_and_hides_the_hidden_and_the_deleted(api: Client, five: str) -> None:
    assert api.names(five) == ["d", "c", "b", "a"]
    assert api.names(f"{five}?show_hidden=true") == ["e", "d", "c", "b", "a"]
    assert api.names(f"{five}?show_deleted=true") == ["gone", "d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort_keys=stack_name", "abcd"),
        ("sort_keys=stack_name&sort_dir=desc", "dcba"),
        ("sort_dir=asc", "abcd"),
        ("sort_keys=creation_time", "abcd"),
        ("sort_keys=stack_status", "acbd"),
        ("sort_keys=stack_status&sort_keys=stack_name&sort_dir=desc", "dbca"),
        ("sort_keys=updated_time&sort_dir=desc", "adcb"),
        ("sort_keys=nonsense", "dcba"),
    ],
)
def test_every_sort_key_pages_without_a_gap_or_a_repeat(
    api: Client, five: str, query: str, names: str
) -> None:
    assert "".join(api.names(f"{five}?{query}")) == names
    observed, path = "", f"{five}?{query}&limit=1"
    for _ in names:
        page = api.get(path)
        observed += page["stacks"][0]["stack_name"]
        [following] = page["links"]
        assert following["rel"] == "next"
        parts = urlsplit(following["href"])
        path = f"{parts.path.removeprefix('/v1')}?{parts.query}"
    assert observed == names
    assert api.get(path) == {"stacks": []}


def test_a_short_page_has_no_next(api: Client, five: str) -> None:
    assert "links" not in api.get(f"{five}?limit=5")
    assert "links" not in api.get(f"{five}?limit=0")
    assert api.names(f"{five}?limit=0") == []
    assert len(api.get(f"{five}?limit=3")["links"]) == 1
    assert api.names(f"{five}?marker={uuid.uuid4()}") == ["d", "c", "b", "a"]
    assert api.names(f"{five}?marker=nonsense") == ["d", "c", "b", "a"]
    api.get(f"{five}?sort_dir=sideways", 400)


def test_the_count_is_of_all_pages(api: Client, five: str) -> None:
    assert api.get(f"{five}?limit=1&with_count=True")["count"] == 4
    assert api.get(f"{five}?name=a&with_count=true")["count"] == 1
    assert "count" not in api.get(five)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=a", "a"),
        ("stack_name=a&name=b&stack_name=c", "cba"),
        ("status=FAILED", "b"),
        ("status=failed", ""),
        ("stack_status=CREATE_FAILED", "b"),
        ("status=UPDATE_COMPLETE&status=CREATE_FAILED", "cb"),
        ("status=IN_PROGRESS", "d"),
        ("action=UPDATE", "c"),
        ("stack_action=UPDATE&status=FAILED", ""),
        ("username=else", "c"),
        ("timeout_mins=7", "d"),
        ("timeout_mins=x", ""),
        ("disable_rollback=false&show_hidden=true", "e"),
        ("tenant=another", ""),
        ("id=nonsense", ""),
        ("owner_id=" + str(uuid.UUID(int=7)), ""),
        ("unknown=ignored", "dcba"),
        ("tags=x", "ba"),
        ("tags=x,y", "b"),
        ("tags_any=x,y", "cba"),
        ("not_tags=x,y", "dca"),
        ("not_tags_any=x,y", "d"),
        ("tags=x&not_tags=y", "a"),
    ],
)
def test_filters(api: Client, five: str, query: str, names: str) -> None:
    assert "".join(api.names(f"{five}?{query}")) == names


def test_no_role_may_list_all_projects(api: Client, five: str) -> None:
    assert api.get(f"{five}?global_tenant=true", 403)["error"]["type"] == "Forbidden"


def test_nested_stacks_are_listed_only_when_asked_for(api: Client, world: World, project: str) -> None:
    parent = world.stack(project, "parent")
    child = world.stack(
        project, "child", owner_id=parent.id, root_id=parent.id, depth=1, parent_resource="r", age=1
    )
    stacks = f"{root(project)}/stacks"
    assert api.names(stacks) == ["parent"]
    assert api.names(f"{stacks}?show_nested=true") == ["child", "parent"]
    assert api.names(f"{stacks}?show_nested=true&owner_id={parent.uuid}") == ["child"]
    assert api.get(child.path)["stack"]["parent"] == str(parent.uuid)


def test_a_long_list_is_streamed_whole(api: Client, world: World, project: str) -> None:
    made = world.stack(project, "first")
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "WITH new AS (SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS id, g"
            " FROM generate_series(1, 2500) g)"
            " INSERT INTO stack (id, root_id, uuid, project_id, name, action, status, created_at)"
            " SELECT id, id, gen_random_uuid(), %s, 'n' || g, 'CREATE', 'COMPLETE', %s FROM new",
            (project, START - dt.timedelta(days=1)),
        )
    stacks = f"{root(project)}/stacks"
    response = api.http.get(f"/v1{stacks}?with_count=true&limit=2501", buffered=False)
    assert response.content_length is None
    body = orjson.loads(b"".join(response.iter_encoded()))
    assert body["count"] == len(body["stacks"]) == 2501
    assert body["stacks"][0]["stack_name"] == made.name
    assert all(a["creation_time"] >= b["creation_time"] for a, b in pairwise(body["stacks"]))
    assert body["links"][0]["rel"] == "next"
