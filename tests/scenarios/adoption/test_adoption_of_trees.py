"""Trees of stacks as a single document: abandoned, and adopted again, with all their nested stacks."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidRequest
from tests.scenarios.adoption.adoption_world import abandon, adopt, export, touched
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World

URL, OUTER = "file:///child.yaml", "file:///outer.yaml"


def files(value: str = "v") -> dict[str, str]:
    """A template with a secret and an external thing, and a template that nests it."""
    child = {
        "heat_template_version": "2021-04-16",
        "parameters": {"value": {"type": "string"}},
        "resources": {
            "thing": cloud_thing(
                value={"list_join": ["-", [value, {"get_param": "value"}]]}, type="Cloud::Server"
            ),
            "pw": {"type": "OS::Heat::RandomString"},
        },
        "outputs": {"pw": {"value": {"get_attr": ["pw", "value"]}}},
    }
    inner = {"type": URL, "properties": {"value": "in"}}
    outer = {"heat_template_version": "2021-04-16", "resources": {"inner": inner}}
    return {URL: orjson.dumps(child).decode(), OUTER: orjson.dumps(outer).decode()}


def tree(value: Any = "x") -> dict[str, Any]:
    return {
        "own": cloud_thing(value="own"),
        "child": {"type": URL, "properties": {"value": value}, "metadata": {"m": 1}},
        "outer": {"type": OUTER},
    }


OUTPUTS = {"pw": {"value": {"get_attr": ["child", "pw"]}}}


def below(world: World) -> list[str]:
    query = """SELECT parent_resource || ' ' || action || '_' || status AS told FROM stack
        WHERE owner_id IS NOT NULL AND deleted_at IS NULL ORDER BY 1"""
    return [row.told for row in world.rows(query)]


def made(world: World, **request: Any) -> str:
    uuid = world.create("s", tree(), files=files(), outputs=OUTPUTS, **request)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def test_an_export_has_the_document_of_a_nested_stack_in_place_of_the_resource(world: World) -> None:
    made(world)
    data = export(world)
    child, inner = data["resources"]["child"], data["resources"]["outer"]["resources"]["inner"]
    [row] = world.rows("SELECT uuid::text, name FROM stack WHERE parent_resource = 'child'")
    assert (child["id"], child["name"], child["resource_id"]) == (row.uuid, row.name, row.uuid)
    assert (child["action"], child["status"], child["type"]) == ("CREATE", "COMPLETE", URL)
    assert (child["metadata"], child["resource_data"]) == ({"m": "******"}, {})  # it gives a secret
    assert child["environment"]["parameters"] == {"value": "x"}
    for document in (child, inner):
        assert set(document["resources"]) == {"thing", "pw"}
        assert document["resources"]["thing"]["resource_id"]
        assert document["template"]["heat_template_version"] == "2021-04-16"
        assert "sealed" in document


def test_an_abandoned_tree_is_adopted_whole(world: World, cloud: Cloud) -> None:
    made(world, tags="t")
    outputs, things, before = world.outputs("s"), dict(cloud.things), touched(cloud)
    data = abandon(world)
    world.deliver_all()
    assert below(world) == []
    assert world.rows("SELECT 1 FROM resource") == []
    assert (cloud.things, touched(cloud)) == (things, before)
    assert outputs["pw"] not in orjson.dumps(data).decode()

    uuid = adopt(world, data)
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert below(world) == ["child ADOPT_COMPLETE", "inner ADOPT_COMPLETE", "outer ADOPT_COMPLETE"]
    assert (cloud.things, touched(cloud)) == (things, before)
    assert world.outputs("s") == outputs
    assert outputs["pw"] not in str(world.rows("SELECT * FROM resource"))

    reported = len(world.events(uuid))
    world.update("s", tree(), files=files(), outputs=OUTPUTS)
    world.deliver_all()
    assert world.events(uuid)[reported:] == ["s UPDATE_IN_PROGRESS", "s UPDATE_COMPLETE"]
    world.update("s", tree(), files=files("w"), outputs=OUTPUTS)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert sorted(cloud.values.values()) == ["own", "w-in", "w-x"]
    world.delete("s")
    world.deliver_all()
    assert cloud.things == {}


def test_a_document_of_heat_is_adopted(world: World, cloud: Cloud) -> None:
    """In Heat's format the document of a nested stack has no data of its resource."""
    made(world)
    data = abandon(world)
    world.deliver_all()
    for holder, name in ((data, "child"), (data, "outer"), (data["resources"]["outer"], "inner")):
        for key in ("resource_id", "type", "metadata", "resource_data"):
            holder["resources"][name].pop(key, None)
    uuid = adopt(world, data)
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_COMPLETE"


def test_for_a_nested_stack_its_existing_resources_suffice(world: World, cloud: Cloud) -> None:
    made(world)
    outputs, before, things = world.outputs("s"), touched(cloud), dict(cloud.things)
    data = abandon(world)
    world.deliver_all()
    holder = data["resources"]
    for held, name in ((holder, "child"), (holder["outer"]["resources"], "inner"), (holder, "outer")):
        kept = {key: held[name][key] for key in ("resources", "sealed") if key in held[name]}
        held[name] = kept
    uuid = adopt(world, data)
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert (cloud.things, touched(cloud), world.outputs("s")) == (things, before, outputs)


def test_missing_nested_resources_fail_the_adoption_and_are_created_by_the_next_update(
    world: World, cloud: Cloud
) -> None:
    made(world)
    data = abandon(world)
    world.deliver_all()
    before = dict(cloud.things)
    del data["resources"]["child"]["resources"]["thing"]
    uuid = adopt(world, data)
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_FAILED"
    reason = "Exception: resources.child.resources.thing: Resource ID was not provided."
    assert reason in world.stack_row("s").status_reason
    assert cloud.things == before
    world.update("s", tree(), files=files(), outputs=OUTPUTS)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert len(cloud.things) == len(before) + 1


def test_a_failed_adoption_that_rolls_back_lets_go_of_everything(world: World, cloud: Cloud) -> None:
    made(world)
    data = abandon(world)
    world.deliver_all()
    before = dict(cloud.things)
    del data["resources"]["outer"]["resources"]["inner"]["resources"]["thing"]
    uuid = adopt(world, data, disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert cloud.things == before
    assert below(world) == []


@pytest.mark.parametrize("seed", range(8))
def test_an_update_that_comes_while_a_tree_is_adopted_loses_nothing(
    world: World, cloud: Cloud, seed: int
) -> None:
    made(world)
    data = abandon(world)
    world.deliver_all()
    before = set(cloud.things)
    world.random.seed(seed)
    uuid = adopt(world, data)
    world.deliver(world.random.randrange(20))  # of which some find nothing planned yet
    world.update("s", tree("new"), files=files("w"), outputs=OUTPUTS)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(cloud.things) == before
    assert sorted(cloud.values.values()) == ["own", "w-in", "w-new"]


@pytest.mark.parametrize("seed", range(4))
def test_a_delete_that_comes_while_a_tree_is_adopted_leaves_no_stack(
    world: World, cloud: Cloud, seed: int
) -> None:
    made(world)
    data = abandon(world)
    world.deliver_all()
    world.random.seed(seed)
    uuid = adopt(world, data)
    world.deliver(world.random.randrange(20))
    world.delete("s")
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert below(world) == []


def test_nested_faults_are_reported_with_their_place(world: World) -> None:
    made(world)
    data = export(world)
    data["resources"]["child"]["resources"]["thing"]["resource_id"] = 5
    place = r"resources\.child\.resources\.thing\.resource_id must be a string"
    with pytest.raises(InvalidRequest, match=place):
        adopt(world, data, name="t")
