"""Groups of resources: their members, the batches of changes, and the remaining members."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.preview.create import preview_create
from orchestrator.operations.preview.update import preview_update
from tests.scenarios.world import World, test_resource


def group(count: int, value: str = "v%index%", **options: Any) -> dict[str, Any]:
    policy = options.pop("update_policy", None)
    snippet: dict[str, Any] = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": count, "resource_def": test_resource(value), **options},
    }
    return snippet if policy is None else {**snippet, "update_policy": policy}


def members(world: World) -> dict[str, str]:
    rows = world.rows(
        """SELECT r.name, r.properties->>'value' AS v FROM resource r JOIN stack s ON s.id = r.stack_id
        WHERE s.owner_id IS NOT NULL AND NOT r.deposed ORDER BY r.id"""
    )
    return {row.name: row.v for row in rows}


def write(world: World, statement: str) -> None:
    with world.database.engine.begin() as connection:
        connection.exec_driver_sql(statement)


def update(world: World, resources: dict[str, Any]) -> None:
    world.update("s", resources)
    world.deliver_all()


def test_a_group_grows_and_shrinks_at_its_end(world: World) -> None:
    uuid = world.create("s", {"g": group(0)})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert members(world) == {}
    for count in (3, 1, 3):
        update(world, {"g": group(count)})
        assert world.state(uuid) == "UPDATE_COMPLETE"
        assert members(world) == {str(n): f"v{n}" for n in range(count)}


def stacks_below(world: World) -> list[str]:
    rows = world.rows(
        "SELECT action || '_' || status AS state FROM stack WHERE owner_id IS NOT NULL ORDER BY id"
    )
    return [row.state for row in rows]


def visits(world: World) -> dict[str, int]:
    """How often each member was operated on, by its events."""
    rows = world.rows(
        """SELECT resource_name AS name, count(*) AS n FROM event e JOIN stack s ON s.id = e.stack_id
        WHERE s.owner_id IS NOT NULL AND resource_type <> 'OS::Heat::Stack' GROUP BY 1"""
    )
    return {row.name: row.n for row in rows}


def test_adding_a_member_visits_a_single_member(world: World) -> None:
    world.create("s", {"g": group(5)})
    world.deliver_all()
    before = visits(world)
    update(world, {"g": group(6)})
    after = visits(world)
    assert {name for name in after if after[name] != before.get(name)} == {"5"}
    nodes = world.rows(
        """SELECT n.label FROM graph_node n JOIN stack s ON s.id = n.stack_id AND n.traversal = s.traversal
        WHERE s.owner_id IS NOT NULL AND n.kind = 'update'"""
    )
    assert [row.label for row in nodes] == ["5"]


def test_a_removed_member_goes_and_its_name_with_it(world: World) -> None:
    uuid = world.create("s", {"g": group(3)}, outputs={"refs": {"value": {"get_attr": ["g", "refs_map"]}}})
    world.deliver_all()
    gone = world.outputs("s")["refs"]["1"]
    world.update("s", {"g": group(3, removal_policies=[{"resource_list": [gone]}])})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert sorted(members(world)) == ["0", "2", "3"]
    update(world, {"g": group(4)})
    assert sorted(members(world)) == ["0", "2", "3", "4"]


def test_a_rolling_update_changes_batch_by_batch_with_pauses(world: World) -> None:
    policy = {"rolling_update": {"max_batch_size": 2, "pause_time": 60}}
    uuid = world.create("s", {"g": group(4, update_policy=policy)})
    world.deliver_all()
    world.update("s", {"g": group(4, "new%index%", update_policy=policy)})
    world.deliver(1000)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    assert members(world) == {"0": "v0", "1": "v1", "2": "new2", "3": "new3"}
    [node] = world.rows(
        """SELECT extract(epoch FROM due_at - now()) AS s FROM graph_node
        WHERE label = 'g' AND state = 'waiting'"""
    )
    assert 50 < node.s < 61
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert members(world) == {str(n): f"new{n}" for n in range(4)}


@pytest.mark.parametrize("policy", [{"rolling_update": {"max_batch_size": 2}}, None])
def test_members_that_are_to_change_later_keep_the_file_they_were_made_from(
    world: World, policy: Any
) -> None:
    def of(name: str, value: str) -> dict[str, Any]:
        child = {"heat_template_version": "2021-04-16", "resources": {"x": test_resource(value)}}
        additional = {} if policy is None else {"update_policy": policy}
        resources = {"g": group(3, resource_def={"type": name}, **additional)}
        return {"resources": resources, "files": {name: orjson.dumps(child).decode()}}

    uuid = world.create("s", **of("/one/member.yaml", "v"))
    world.deliver_all()
    world.update("s", **of("/two/member.yaml", "w"))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    made = world.rows("SELECT type, properties ->> 'value' AS v FROM resource WHERE NOT deposed")
    assert sorted(row.type for row in made if row.v is None) == ["/two/member.yaml"] * 3 + [
        "OS::Heat::ResourceGroup"
    ]
    assert [row.v for row in made if row.v is not None] == ["w"] * 3


def test_a_newer_template_goes_over_a_rolling_update(world: World) -> None:
    policy = {"rolling_update": {"pause_time": 60}}
    uuid = world.create("s", {"g": group(3, update_policy=policy)})
    world.deliver_all()
    world.update("s", {"g": group(3, "w", update_policy=policy)})
    world.deliver(1000)
    assert members(world) == {"0": "v0", "1": "v1", "2": "w"}
    update(world, {"g": group(2, "x")})
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert members(world) == {"0": "x", "1": "x"}


def test_a_failing_member_fails_the_group_with_its_path_and_stops_the_batches(world: World) -> None:
    policy = {"rolling_update": {"max_batch_size": 1}}
    uuid = world.create("s", {"g": group(3, update_policy=policy)})
    world.deliver_all()
    bad = group(3, "w", update_policy=policy)
    bad["properties"]["resource_def"] = test_resource("w", fail=True)
    update(world, {"g": bad})
    assert world.state(uuid) == "UPDATE_FAILED"
    [row] = world.rows("SELECT status_reason AS why FROM stack WHERE uuid = :u", u=uuid)
    assert row.why == ("Resource UPDATE failed: ValueError: resources.g.resources.2: Test Resource failed 2")
    assert {name: value for name, value in members(world).items() if name != "2"} == {"0": "v0", "1": "v1"}
    update(world, {"g": group(3, "x", update_policy=policy)})
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(members(world).values()) == {"x"}


def test_an_unhealthy_member_is_replaced_by_an_update_of_nothing(world: World) -> None:
    uuid = world.create("s", {"g": group(2)})
    world.deliver_all()
    [child] = world.rows("SELECT uuid::text AS uuid FROM stack WHERE owner_id IS NOT NULL")
    [before] = world.rows("SELECT physical_id AS id FROM resource WHERE name = '1'")
    world.mark(child.uuid, "1")
    update(world, {"g": group(2)})
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [after] = world.rows("SELECT physical_id AS id, status FROM resource WHERE name = '1'")
    assert (after.status, after.id == before.id) == ("COMPLETE", False)


def test_attributes_of_members_are_handed_on_path_and_all(world: World) -> None:
    requests = {
        "list": {"value": {"get_attr": ["g", "output"]}},
        "by name": {"value": {"get_attr": ["g", "attributes", "output"]}},
        "one": {"value": {"get_attr": ["g", "resource.1", "output"]}},
        "id": {"value": {"get_attr": ["g", "resource.1"]}},
        "refs": {"value": {"get_attr": ["g", "refs"]}},
        "group": {"value": {"get_resource": "g"}},
    }
    world.create(
        "s", {"g": group(2), "after": test_resource({"get_attr": ["g", "output", 0]})}, outputs=requests
    )
    world.deliver_all()
    outputs = world.outputs("s")
    ids = {row.name: row.id for row in world.rows("SELECT name, physical_id AS id FROM resource")}
    assert outputs == {
        "list": ["v0", "v1"],
        "by name": {"0": "v0", "1": "v1"},
        "one": "v1",
        "id": ids["1"],
        "refs": [ids["0"], ids["1"]],
        "group": ids["g"],
    }


def test_secrets_of_a_member_stay_secret(world: World) -> None:
    world.create(
        "s",
        {"g": group(2, {"get_param": "p"})},  # type: ignore[arg-type]
        parameters={"p": {"type": "string", "hidden": True, "default": "hush%index%"}},
    )
    world.deliver_all()
    tables = ("resource", "resource_definition", "revision", "event", "content")
    for table in tables:
        assert world.rows(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%%hush0%%'") == [], table
        if table not in ("revision", "content"):  # the parent's own has the default as its author wrote it
            assert world.rows(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%%hush%%'") == [], table
    assert stacks_below(world) == ["CREATE_COMPLETE"]
    [row] = world.rows("SELECT sealed IS NOT NULL AS sealed FROM resource WHERE name = '0'")
    assert row.sealed


def test_the_members_of_a_chain_are_created_in_sequence(world: World) -> None:
    chain = {
        "type": "OS::Heat::ResourceChain",
        "properties": {"resources": ["OS::Heat::TestResource"] * 3, "resource_properties": {"value": "v"}},
    }
    uuid = world.create("s", {"c": chain})
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "CREATE_COMPLETE"
    done = world.rows(
        """SELECT resource_name AS name FROM event WHERE resource_name IN ('0', '1', '2')
        AND status = 'COMPLETE' ORDER BY id"""
    )
    assert [row.name for row in done] == ["0", "1", "2"]


URL = "file:///member.yaml"
MEMBER = """
heat_template_version: 2021-04-16
parameters:
  value: {type: string}
resources:
  inner:
    type: OS::Heat::TestResource
    properties: {value: {get_param: value}}
outputs:
  told: {value: {get_attr: [inner, output]}}
"""


def test_members_may_be_stacks_with_outputs_as_attributes(world: World) -> None:
    definition = {"type": URL, "properties": {"value": "v%index%"}}
    outputs = {
        "told": {"value": {"get_attr": ["g", "told"]}},
        "one": {"value": {"get_attr": ["g", "resource.1", "told"]}},
    }
    resources = {"g": group(2, resource_def=definition)}
    uuid = world.create("s", resources, files={URL: MEMBER}, outputs=outputs)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"told": ["v0", "v1"], "one": "v1"}
    newer = MEMBER.replace("{get_param: value}}", "{get_param: value}, wait_secs: 0}")
    world.update("s", resources, files={URL: newer}, outputs=outputs)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []


def test_members_may_be_groups_of_their_own(world: World) -> None:
    outputs = {
        "all": {"value": {"get_attr": ["g", "output"]}},
        "refs": {"value": {"get_attr": ["g", "refs"]}},
    }
    inner = group(2, "v%index%", index_var="%inner%")
    uuid = world.create("s", {"g": group(2, resource_def=inner)}, outputs=outputs)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    made = world.rows("SELECT properties->>'value' AS v FROM resource WHERE type = 'OS::Heat::TestResource'")
    assert sorted(row.v for row in made) == ["v0", "v0", "v1", "v1"]
    ids = [row.id for row in world.rows("SELECT physical_id AS id FROM resource WHERE type LIKE '%%Group'")]
    assert set(world.outputs("s")["refs"]) < set(ids)


def test_a_preview_of_a_group_lists_its_members(world: World) -> None:
    world.create("s", {"g": group(2)})
    world.deliver_all()
    template = {"heat_template_version": "2021-04-16", "resources": {"g": group(3)}}
    body = Body(orjson.dumps({"template": template}))
    preview = preview_update(world.context, world.stack_row("s"), body, show_nested=True)
    [inside] = preview.nested
    assert {item.expected.name for item in inside.items["added"]} == {"2"}
    assert set(inside.unchanged) == {"0", "1"}


def test_a_preview_of_a_group_that_is_not_known_yet_says_nothing_of_members(world: World) -> None:
    first = test_resource("v")
    body = {
        "stack_name": "s",
        "template": {
            "heat_template_version": "2021-04-16",
            "resources": {"g": group(2, {"get_attr": ["a", "output"]}), "a": first},  # type: ignore[arg-type]
        },
    }
    preview = preview_create(world.context, Body(orjson.dumps(body)))
    assert {resource.name for resource in preview.resources} == {"g", "a"}


def test_a_preview_shows_members_of_which_only_values_are_unknown(world: World) -> None:
    resources = {"g": group(2, {"get_resource": "a"}), "a": test_resource("v")}  # type: ignore[arg-type]
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    preview = preview_create(world.context, Body(orjson.dumps({"stack_name": "s", "template": template})))
    [shown] = [resource for resource in preview.resources if resource.name == "g"]
    assert shown.nested is not None
    assert [resource.name for resource in shown.nested.resources] == ["0", "1"]


def test_a_preview_of_a_group_keeps_its_secrets(world: World) -> None:
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "hidden": True, "default": "hush"}},
        "resources": {"g": group(2, {"get_param": "p"})},  # type: ignore[arg-type]
    }
    preview = preview_create(world.context, Body(orjson.dumps({"stack_name": "s", "template": template})))
    [shown] = preview.resources
    assert shown.nested is not None
    assert [resource.name for resource in shown.nested.resources] == ["0", "1"]
    assert not any("hush" in repr(resource.properties) for resource in shown.nested.resources)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_rolling_update_that_fails_half_way_is_rolled_back(world: World, batch: int) -> None:
    policy = {"rolling_update": {"max_batch_size": batch}}
    uuid = world.create("s", {"g": group(3, update_policy=policy)}, disable_rollback=False)
    world.deliver_all()
    worse = {"g": group(3, "w", update_policy=policy), "b": test_resource(fail=True, requires=["g"])}
    world.update("s", worse, disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert members(world) == {"0": "v0", "1": "v1", "2": "v2"}
