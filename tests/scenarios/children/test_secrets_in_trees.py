"""A secret is hidden wherever it is used, and nothing else is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.scenarios.stacks.test_history_api import Api
from tests.scenarios.world import World, test_resource

SECRET = "Tr0ub4dor-9"
HIDDEN = {
    "parameters": {"pw": {"type": "string", "hidden": True}, "open": {"type": "string", "default": "open"}},
    "environment": {"parameters": {"pw": SECRET}},
}
CHILD = orjson.dumps(
    {
        "heat_template_version": "2021-04-16",
        "parameters": {"pw": {"type": "string"}, "open": {"type": "string"}},
        "resources": {"x": test_resource({"get_param": "pw"}), "y": test_resource({"get_param": "open"})},
        "outputs": {"o": {"value": {"get_param": "open"}}},
    }
).decode()
PAIR = {"pw": {"get_param": "pw"}, "open": {"get_param": "open"}}


@pytest.fixture
def api(world: World) -> Api:
    return Api(world)


def created(world: World, resources: dict[str, Any]) -> str:
    uuid = world.create("s", resources, files={"child.yaml": CHILD}, **HIDDEN)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return f"/stacks/s/{uuid}"


def everything(api: Api, path: str) -> str:
    """Return the answers about a stack that may contain values."""
    texts = [str(api.get(f"{path}{end}")) for end in ("", "/environment", "/template")]
    texts.append(str(api.get(f"{path}/resources?with_detail=true")))
    for event in api.get(f"{path}/events")["events"]:
        name = event["resource_name"]
        if event["resource_name"] != event.get("stack_name") and event["physical_resource_id"]:
            found = [link["href"] for link in event["links"] if link["rel"] == "self"]
            if "/resources/" in found[0]:
                texts.append(str(api.get(found[0].partition("/p1")[2])))
        assert name
    return "\n".join(texts)


def child_of(api: Api, path: str, name: str) -> str:
    found = api.get(f"{path}/resources/{name}")["resource"]
    [nested] = [link["href"] for link in found["links"] if link["rel"] == "nested"]
    return nested.partition("/p1")[2]


def last_event(api: Api, path: str, name: str) -> dict[str, Any]:
    [event] = [
        event
        for event in api.get(f"{path}/resources/{name}/events")["events"]
        if event["resource_status"] == "CREATE_COMPLETE"
    ]
    return api.get(f"{path}/resources/{name}/events/{event['id']}")["event"]["resource_properties"]


def test_a_container_with_a_secret_stays_readable(api: Api, world: World) -> None:
    value = {
        "user": "web",
        "hosts": ["a", {"get_param": "pw"}],
        "login": {"list_join": ["", ["x-", PAIR["pw"]]]},
    }
    path = created(world, {"a": {"type": "OS::Heat::Value", "properties": {"type": "json", "value": value}}})
    shown = {"user": "web", "hosts": ["a", "******"], "login": "******"}
    assert last_event(api, path, "a")["value"] == shown
    assert api.get(f"{path}/resources/a")["resource"]["attributes"]["value"] == shown
    assert SECRET not in everything(api, path)


def test_a_nested_stack_hides_the_parameters_with_secrets_alone(api: Api, world: World) -> None:
    path = created(world, {"b": {"type": "child.yaml", "properties": PAIR}})
    nested = child_of(api, path, "b")
    parameters = api.get(nested)["stack"]["parameters"]
    assert (parameters["pw"], parameters["open"]) == ("******", "open")
    assert last_event(api, path, "b") == {"pw": "******", "open": "open"}
    assert api.get(f"{path}/resources/b")["resource"]["attributes"]["o"] == "open"
    assert last_event(api, nested, "y")["value"] == "open"
    assert SECRET not in everything(api, path) + everything(api, nested)


def test_a_member_of_a_group_hides_its_secrets_alone(api: Api, world: World) -> None:
    member = {"type": "child.yaml", "properties": {"pw": PAIR["pw"], "open": "number-%index%"}}
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 1, "resource_def": member}}
    path = created(world, {"g": group})
    inside = child_of(api, path, "g")
    assert last_event(api, inside, "0") == {"pw": "******", "open": "number-0"}
    shown = api.get(f"{inside}/template")["resources"]["0"]["properties"]
    assert shown == {"pw": "******", "open": "number-0"}
    nested = child_of(api, inside, "0")
    parameters = api.get(nested)["stack"]["parameters"]
    assert (parameters["pw"], parameters["open"]) == ("******", "number-0")
    assert SECRET not in "".join(everything(api, place) for place in (path, inside, nested))


def test_a_dependent_is_secret_only_if_it_uses_a_secret(api: Api, world: World) -> None:
    a = test_resource(PAIR["pw"], client_name="readable")
    resources = {
        "a": a,
        "by_id": test_resource({"get_resource": "a"}),
        "by_value": test_resource({"get_attr": ["a", "output"]}),
    }
    path = created(world, resources)
    assert last_event(api, path, "by_id")["value"] != "******"
    assert last_event(api, path, "by_value")["value"] == "******"
    assert last_event(api, path, "a")["client_name"] == "readable"
    assert SECRET not in everything(api, path)


def test_a_secret_of_the_past_is_hidden_until_no_value_contains_it(api: Api, world: World) -> None:
    path = created(world, {"a": test_resource(PAIR["pw"])})
    world.update("s", {"a": test_resource("open", client_name=SECRET[:4])}, **HIDDEN)
    world.deliver_all()
    shown = api.get(f"{path}/resources/a")["resource"]["attributes"]
    assert shown["output"] == "open"
    assert SECRET not in everything(api, path)
