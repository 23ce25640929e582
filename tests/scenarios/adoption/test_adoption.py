"""Adopted and abandoned stacks: nothing is created, updated or deleted at the provider."""

from __future__ import annotations

import re

import orjson
import pytest

from orchestrator.errors import InvalidRequest, InvalidTemplate, NotSupported
from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import preview_update
from orchestrator.operations.stacks import create_delete
from tests.scenarios.adoption.adoption_world import abandon, adopt, export, three, touched
from tests.scenarios.fake_cloud import cloud_thing
from tests.scenarios.world import World, test_resource

OUTPUTS = {"pw": {"value": {"get_attr": ["pw", "value"]}}, "b": {"value": {"get_attr": ["b", "value"]}}}
HIDDEN = {"p": {"type": "string", "hidden": True}}


def test_an_abandoned_stack_is_adopted_whole(world, cloud):
    world.create(
        "s",
        three(c=test_resource({"get_param": "p"}), d=cloud_thing(value="d", requires=("b",))),
        outputs=OUTPUTS,
        parameters={**HIDDEN, "q": {"type": "number", "default": 1}},
        environment={"parameters": {"p": "hush", "q": 7}},
        tags="t1,t2",
    )
    world.deliver_all()
    outputs, things = world.outputs("s"), dict(cloud.things)
    uuid = str(world.stack_row("s").uuid)
    before = touched(cloud)
    data = abandon(world)
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert (cloud.things, touched(cloud)) == (things, before)
    assert world.rows("SELECT 1 FROM resource") == []
    text = orjson.dumps({name: value for name, value in data.items() if name != "sealed"}).decode()
    assert "hush" not in text
    assert outputs["pw"] not in text

    uuid = adopt(world, data)
    assert world.state(uuid) == "ADOPT_IN_PROGRESS"
    world.deliver_all(shuffle=True, repeat=0.2)
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert (cloud.things, touched(cloud)) == (things, before)
    assert world.outputs("s") == outputs
    assert world.stack_row("s").tags == ("t1", "t2")
    states = "SELECT DISTINCT action, status FROM resource"
    assert [tuple(row) for row in world.rows(states)] == [("ADOPT", "COMPLETE")]
    assert "hush" not in str(world.rows("SELECT * FROM resource"))
    assert outputs["pw"] not in str(world.rows("SELECT * FROM resource"))


def test_an_adopted_stack_is_an_ordinary_stack(world, cloud):
    world.create("s", three())
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    uuid = adopt(world, data)
    world.deliver_all()
    reported, before = len(world.events(uuid)), touched(cloud)
    world.update("s", three())
    world.deliver_all()
    assert world.events(uuid)[reported:] == ["s UPDATE_IN_PROGRESS", "s UPDATE_COMPLETE"]
    visits = """SELECT 1 FROM graph_node n JOIN stack s ON s.id = n.stack_id
        WHERE s.uuid = :u AND n.kind NOT IN ('plan', 'finish')"""
    assert world.rows(visits, u=uuid) == []
    assert touched(cloud) == before
    world.update("s", three(a=cloud_thing(value="new", type="Cloud::Server")))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert "update a" in touched(cloud)
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_the_form_of_an_export(world):
    world.create("s", {"a": {**test_resource("v"), "metadata": {"m": [1]}}})
    world.deliver_all()
    stack, data = world.stack_row("s"), export(world)
    physical_id = world.rows("SELECT physical_id FROM resource")[0].physical_id
    assert data == {
        "name": "s",
        "id": str(stack.uuid),
        "action": "CREATE",
        "status": "COMPLETE",
        "environment": {
            "parameters": {},
            "parameter_defaults": {},
            "resource_registry": {"resources": {}},
            "encrypted_param_names": [],
            "event_sinks": [],
        },
        "files": {},
        "template": {
            "heat_template_version": "2021-04-16",
            "resources": {"a": {**test_resource("v"), "metadata": {"m": [1]}}},
        },
        "resources": {
            "a": {
                "name": "a",
                "resource_id": physical_id,
                "type": "OS::Heat::TestResource",
                "action": "CREATE",
                "status": "COMPLETE",
                "metadata": {"m": [1]},
                "resource_data": {"value": "v", "seconds": 0.0},
            }
        },
        "project_id": "p1",
        "stack_user_project_id": None,
        "tags": [],
    }
    assert world.state(str(stack.uuid)) == "CREATE_COMPLETE"


def test_without_an_id_an_adoption_fails(world, cloud):
    data = {"template": {"heat_template_version": "2021-04-16", "resources": {"a": cloud_thing(value="v")}}}
    uuid = adopt(world, data)
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_FAILED"
    reason = "Resource ADOPT failed: Exception: resources.a: Resource ID was not provided."
    assert world.stack_row("s").status_reason == reason
    assert cloud.calls == []


def test_missing_things_are_not_adopted_and_never_deleted(world, cloud):
    cloud.things["good"] = "somebody's"
    template = {"heat_template_version": "2021-04-16", "resources": {n: cloud_thing() for n in ("a", "b")}}
    data = {"template": template, "resources": {"a": {"resource_id": "good"}, "b": {"resource_id": "gone"}}}
    uuid = adopt(world, data)
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_FAILED"
    assert "resources.b: There is no gone." in world.stack_row("s").status_reason
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert "delete b" not in cloud.calls


def test_a_failed_adoption_that_rolls_back_lets_go_of_everything(world, cloud):
    cloud.things |= {"good": "x", "other": "y"}
    resources = {"a": cloud_thing(), "b": cloud_thing(), "c": cloud_thing(requires=("b",))}
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    things = {"a": {"resource_id": "good"}, "b": {}, "c": {"resource_id": "other"}}
    uuid = adopt(world, {"template": template, "resources": things}, disable_rollback=False)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert set(cloud.things) == {"good", "other"}
    assert touched(cloud) == []
    assert world.rows("SELECT 1 FROM resource") == []


def test_resources_that_could_not_be_adopted_are_created_by_the_next_update(world, cloud):
    cloud.things["good"] = "x"
    template = {"heat_template_version": "2021-04-16", "resources": {n: cloud_thing() for n in ("a", "b")}}
    uuid = adopt(world, {"template": template, "resources": {"a": {"resource_id": "good"}}})
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_FAILED"
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert touched(cloud) == ["create b"]
    assert world.rows("SELECT physical_id FROM resource WHERE name = 'a'")[0].physical_id == "good"


@pytest.mark.parametrize("appears", [True, False])
def test_a_missing_resource_is_looked_up_again_and_otherwise_created(world, cloud, appears):
    template = {"heat_template_version": "2021-04-16", "resources": {"a": cloud_thing()}}
    uuid = adopt(world, {"template": template, "resources": {"a": {"resource_id": "late"}}})
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_FAILED"
    if appears:
        cloud.things["late"] = "x"
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert touched(cloud) == ([] if appears else ["create a"])
    world.delete("s")
    world.deliver_all()
    assert cloud.things == {}
    assert "delete a" in cloud.calls


def test_parameters_of_the_request_win_over_those_of_the_data(world):
    resources = {"a": test_resource({"get_param": "q"})}
    world.create("s", resources, parameters={"q": {"type": "string"}}, environment={"parameters": {"q": "x"}})
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    adopt(world, data, parameters={"q": "y"})
    world.deliver_all()
    assert world.rows("SELECT parameters FROM revision ORDER BY id DESC")[0].parameters == {"q": "y"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("{", "Invalid adopt data: "),
        ("[]", "Invalid adopt data: The template is not a JSON object or YAML mapping."),
        ("{}", "Invalid adopt data: 'template'"),
        ('{"template": {}, "resources": {"a": 1}}', "Invalid adopt data: resources.a must be a map."),
        (
            '{"template": {}, "resources": {"a": {"resource_id": 1}}}',
            "Invalid adopt data: resources.a.resource_id must be a string.",
        ),
        (
            '{"template": {}, "resources": {"a": {"resource_data": {"value": "******"}}}}',
            "Invalid adopt data: values of resources.a are masked.",
        ),
        ('{"template": {}, "sealed": "x"}', "Invalid adopt data: 'sealed' was encrypted by another"),
        ('{"template": {}, "resources": {"a": {"resource_id": "x\\u0000"}}}', "the character NUL"),
        ('{"template": {}, "files": {"f\\u0000": "x"}}', "the character NUL"),
        ('{"template": {}, "tags": ["a", {}]}', "Invalid adopt data: tags must be a list of strings."),
        ('{"template": {}, "tags": "a"}', "Invalid adopt data: tags must be a list of strings."),
        (f'{{"template": {{}}, "tags": ["{"a" * 81}"]}}', "is longer than 80 characters"),
        ('{"template": {}, "tags": ["a,b"]}', "Invalid adopt data: the tag a,b has a comma."),
    ],
)
def test_data_that_are_no_stack_are_refused(world, data, said):
    body = Body(orjson.dumps({"stack_name": "s", "adopt_stack_data": data}))
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        create_delete.create(world.context, body)
    assert world.rows("SELECT 1 FROM stack") == []


def test_data_encrypted_for_a_project_cannot_be_decrypted_for_another(world):
    world.create("s", {"pw": {"type": "OS::Heat::RandomString"}})
    world.deliver_all()
    data = export(world)
    data["sealed"] = world.cipher.seal(
        {**world.cipher.open(data["sealed"].encode()), "project_id": "p2"}
    ).decode()
    with pytest.raises(InvalidRequest, match="for another project"):
        adopt(world, data, name="thief")


def test_both_are_off_unless_wanted(postgres_url):
    world = World(postgres_url)
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    for attempt in (export, abandon):
        with pytest.raises(NotSupported, match=r"^Stack Abandon is not supported\.$"):
            attempt(world)
    with pytest.raises(NotSupported, match=r"^Stack Adopt is not supported\.$"):
        adopt(world, {"template": {}}, name="t")
    world.close()


def test_a_hidden_parameter_that_cannot_be_decrypted_must_be_given_again(world):
    world.create(
        "s",
        {"a": test_resource({"get_param": "p"})},
        parameters=HIDDEN,
        environment={"parameters": {"p": "hush"}},
    )
    world.deliver_all()
    data = abandon(world)
    world.deliver_all()
    del data["sealed"]
    data["resources"]["a"]["resource_data"] = {"value": "hush"}
    with pytest.raises(InvalidTemplate, match=r"The Parameter \(p\) was not provided"):
        adopt(world, data)
    uuid = adopt(world, data, parameters={"p": "hush"})
    world.deliver_all()
    assert world.state(uuid) == "ADOPT_COMPLETE"
    assert "hush" not in str(world.rows("SELECT * FROM resource"))


def test_a_preview_after_a_failed_adoption_promises_no_replacement(world, cloud):
    template = {"heat_template_version": "2021-04-16", "resources": {"a": cloud_thing()}}
    adopt(world, {"template": template, "resources": {"a": {"resource_id": "gone"}}})
    world.deliver_all()
    [item] = preview_update(world.context, world.stack_row("s"), Body(b"{}"), patch=True).items["replaced"]
    assert (item.expected.name, item.expected.certain) == ("a", False)
