"""Lists of resources, long and short, and pages of them: the same however read
(docs/internals/rest-api.md §7).
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import uuid

import orjson
import pytest

from orchestrator.store.stacks import resources, stacks
from orchestrator.store.tables.graph import Resource
from tests.integration.api_world import START, Client, World, api, project, root, world  # noqa: F401 - fixtures


def test_a_large_stack_is_streamed_with_every_dependent(api: Client, world: World, project: str) -> None:
    stack = world.stack(project, "large")
    world.resource(stack, "base")
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO resource (uuid, stack_id, name, type)"
            " SELECT gen_random_uuid(), %(s)s, 'n' || g, 'Test::Plain' FROM generate_series(1, 3000) g",
            {"s": stack.id},
        )
        connection.exec_driver_sql(
            "INSERT INTO resource_definition (stack_id, name, digest, body, requires, valid_from)"
            " SELECT %(s)s, 'n' || g, 'd', '{}', ARRAY['base'], 1 FROM generate_series(1, 3000) g",
            {"s": stack.id},
        )
    response = api.http.get(f"/v1{stack.path}/resources", buffered=False)
    listed = orjson.loads(b"".join(response.iter_encoded()))["resources"]
    assert response.content_length is None
    assert len({resource["resource_name"] for resource in listed}) == len(listed) == 3001
    assert listed[0]["resource_name"] == "base"
    assert len(listed[0]["required_by"]) == 3000


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"status": ["FAILED"]},
        {"type": ["Test::Plain", "Test::Other"], "action": ["CREATE"]},
        {"name": ["b", "nobody"]},
        {"physical_resource_id": ["p-c"]},
        {"id": ["none"]},
    ],
)
def test_a_short_list_equals_the_part_of_a_long_list(
    world: World, project: str, monkeypatch: pytest.MonkeyPatch, filters: dict[str, list[str]]
) -> None:
    stack = world.stack(project, "both")
    world.resource(stack, "a", deposed=True, action="CREATE", status="FAILED")
    world.resource(stack, "a", action="UPDATE", status="COMPLETE")
    world.resource(stack, "b", ["a"], action="CREATE", status="FAILED", runs_as="Test::Other")
    parent = world.resource(stack, "c", ["a", "b"], action="CREATE", status="COMPLETE", physical_id="p-c")
    world.stack(
        project, "inner", root_id=stack.id, owner_id=stack.id, depth=1, parent_resource="c",
        parent_resource_id=parent,
    )  # fmt: skip
    row = stacks.find(world.database, project, "both")
    assert row is not None
    short = list(resources.list_resources(world.database, row, filters))
    tail = list(resources.list_resources(world.database, row, filters, after="a"))
    monkeypatch.setattr(resources, "FETCH_SIZE", 0)
    assert short == list(resources.list_resources(world.database, row, filters))
    assert tail == list(resources.list_resources(world.database, row, filters, after="a"))
    page = list(resources.list_resources(world.database, row, filters, limit=2))
    monkeypatch.undo()
    assert page == list(resources.list_resources(world.database, row, filters, limit=2))
    if not filters:
        assert [(item.name, item.required_by) for item in short] == [
            ("a", ("b", "c")),
            ("b", ("c",)),
            ("c", ()),
        ]
        assert short[2].child_name == "inner"


def test_closing_a_long_answer_lets_go_of_its_connection(world: World, project: str) -> None:
    stack = world.stack(project, "closed")
    row_of = {"stack_id": stack.id, "name": "", "type": "Test::Plain"}
    rows_ = [{**row_of, "name": f"r{n}", "uuid": uuid.uuid4()} for n in range(resources.FETCH_SIZE + 1)]
    world.insert(Resource, *rows_)
    row = stacks.find(world.database, project, "closed")
    assert row is not None
    before = world.database.engine.pool.checkedout()
    rows = resources.list_resources(world.database, row)
    next(rows)
    assert world.database.engine.pool.checkedout() == before + 1
    rows.close()
    assert world.database.engine.pool.checkedout() == before


def test_a_page_starts_after_a_name_and_omits_dependents(world: World, project: str, api: Client) -> None:
    made = world.stack(project, "pages")
    for number in range(7):
        world.resource(made, f"r{number}", [f"r{number - 1}"] if number else [])
    names: list[str] = []
    for marker in ("", "r2", "r5"):
        page = api.get(f"{made.path}/resources?limit=3&marker={marker}")["resources"]
        assert not any("required_by" in item for item in page)
        names += [item["resource_name"] for item in page]
    assert names == [f"r{number}" for number in range(7)]
    rest = api.get(f"{made.path}/resources?marker=r4")["resources"]
    assert [(item["resource_name"], item["required_by"]) for item in rest] == [("r5", ["r6"]), ("r6", [])]
    filtered = api.get(f"{made.path}/resources?limit=1&name=r3&name=r6")["resources"]
    assert [item["resource_name"] for item in filtered] == ["r3"]
    assert api.get(f"{made.path}/resources?limit=0")["resources"] == []
    assert "nested_depth" in api.message("GET", f"{made.path}/resources?limit=3&nested_depth=1", 400)
    api.message("GET", f"{made.path}/resources?limit=many", 400)


def test_a_page_equals_its_part_of_the_whole_list(world: World, project: str, api: Client) -> None:
    made = world.stack(project, "same")
    world.resource(made, "a", deposed=True, physical_id="old")
    owner = world.resource(made, "a", physical_id="new", updated_at=START)
    world.resource(made, "é b", action="UPDATE", status="FAILED", status_reason="because")
    above = {"root_id": made.id, "depth": 1, "owner_id": made.id}
    world.stack(project, "same-a", parent_resource_id=owner, parent_resource="a", **above)
    for number in range(3):
        world.event(made, "é b", reason=str(number))
    whole = [
        {name: value for name, value in item.items() if name != "required_by"}
        for item in api.get(f"{made.path}/resources")["resources"]
    ]
    assert [item["physical_resource_id"] for item in whole] == ["new", ""]
    assert [link["rel"] for link in whole[0]["links"]] == ["self", "stack", "nested"]
    first = api.get(f"{made.path}/resources?limit=1")["resources"]
    assert first + api.get(f"{made.path}/resources?limit=1&marker=a")["resources"] == whole
    events = api.get(f"{made.path}/events")["events"]
    assert api.get(f"{made.path}/events?limit=2")["events"] == events[:2]
    assert api.get(f"{made.path}/events?limit=2&marker={events[1]['id']}")["events"] == events[2:]
