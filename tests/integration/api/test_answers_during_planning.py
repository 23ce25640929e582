"""Every reader knows the resources of an accepted template before they are planned.

Messages are delivered by the test: until then the workers seem to be away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator import config
from orchestrator.security.key_pairs import create_key_pair
from tests.integration.api.test_cfn_query import asked
from tests.integration.api.test_snapshots_and_adoption import KEY, PATH, Installation
from tests.integration.api_world import Client
from tests.scenarios.world import test_resource

VERSION = "2021-04-16"
INNER = {
    "heat_template_version": VERSION,
    "resources": {"leaf": test_resource("x"), "other": test_resource("y")},
}


def template(*names: str, **resources: Any) -> dict[str, Any]:
    """Return a template of a chain of resources; a condition omits a resource."""
    chain = {name: test_resource("v", requires=names[place - 1 : place]) for place, name in enumerate(names)}
    return {
        "heat_template_version": VERSION,
        "parameters": {"extra": {"type": "boolean", "default": False}},
        "conditions": {"more": {"get_param": "extra"}},
        "resources": {**chain, "omitted": {**test_resource("v"), "condition": "more"}, **resources},
    }


@pytest.fixture(params=[10_000_000, 400], ids=["parsed", "sliced"])
def world(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Installation]:
    """An installation whose templates are small, or large ones stored in slices."""
    monkeypatch.setattr("tests.scenarios.world.new_key", lambda: KEY)
    made = Installation(postgres_url)
    monkeypatch.setattr(config, "INLINE_BODY_SIZE", request.param)  # of the API; a worker plans in place
    yield made
    made.close()


@pytest.fixture
def api(world: Installation) -> Client:
    return world.client()


@pytest.fixture
def cfn(world: Installation) -> Callable[..., dict[str, Any]]:
    """The CloudFormation API."""
    client = world.client(auth="token")
    keys = create_key_pair(world.database, world.cipher, "p1", roles=["member", "reader"], name="ci")
    return lambda **params: asked(client, keys, **params)


def names(entries: list[dict[str, Any]], key: str = "resource_name") -> list[str]:
    return [entry[key] for entry in entries]


def pages(api: Client, path: str, limit: int) -> list[str]:
    found: list[str] = []
    while True:
        marker = f"&marker={found[-1]}" if found else ""
        page = names(api.get(f"{path}/resources?limit={limit}{marker}")["resources"])
        found += page
        if len(page) < limit:
            return found


def every_reader_knows(
    api: Client, cfn: Callable[..., dict[str, Any]], path: str, states: dict[str, str]
) -> None:
    """Compare each reader of a stack's resources with the expected states by name."""
    expected = sorted(states)
    listed = api.get(f"{path}/resources")["resources"]
    assert {item["resource_name"]: item["resource_status"] for item in listed} == states
    assert names(listed) == expected
    for query in ("with_detail=true", "nested_depth=2", "type=OS::Heat::TestResource", "search=&limit=50"):
        assert names(api.get(f"{path}/resources?{query}")["resources"]) == expected, query
    for limit in (1, 2, len(expected), 50):
        assert pages(api, path, limit) == expected
    initial = sorted(name for name, state in states.items() if state == "INIT_COMPLETE")
    assert names(api.get(f"{path}/resources?action=INIT")["resources"]) == initial
    assert names(api.get(f"{path}/resources?type=OS::Heat::None")["resources"]) == []
    assert names(api.get(f"{path}/resources?limit=1&action=INIT")["resources"]) == initial[:1]
    name = path.split("/")[-2]
    stack = {"StackName": name}
    summaries = cfn(Action="ListStackResources", **stack)["StackResourceSummaries"]
    assert names(summaries, "LogicalResourceId") == expected
    described = cfn(Action="DescribeStackResources", **stack)["StackResources"]
    assert names(described, "LogicalResourceId") == expected
    for item, state in states.items():
        place = f"{path}/resources/{item}"
        shown = api.get(place)["resource"]
        assert (shown["resource_status"], shown["resource_type"]) == (state, "OS::Heat::TestResource")
        assert names(api.get(f"{path}/resources?name={item}")["resources"]) == [item]
        assert api.get(f"{place}/metadata") == {"metadata": {}}
        why = api.get(f"{place}/why")["why"]
        assert why["resource_status"] == state
        found = api.get(f"{place}/dependencies?levels=9")["dependencies"]["resources"]
        assert {"resource_name": item, "resource_status": state}.items() <= next(
            node for node in found if node["resource_name"] == item
        ).items()
        detail = cfn(Action="DescribeStackResource", LogicalResourceId=item, **stack)["StackResourceDetail"]
        assert detail["ResourceStatus"] == state
        [one] = cfn(Action="DescribeStackResources", LogicalResourceId=item, **stack)["StackResources"]
        assert one["ResourceStatus"] == state
        if state == "INIT_COMPLETE":
            assert why["waiting"]
            body = {"mark_unhealthy": True}
            assert api.ask("PATCH", place, 409, json=body)["error"]["type"] == "ActionInProgress"
    for absent in ("omitted", "unknown"):
        for place in (absent, f"{absent}/metadata", f"{absent}/why", f"{absent}/dependencies"):
            api.ask("GET", f"{path}/resources/{place}", 404)
        api.ask("PATCH", f"{path}/resources/{absent}", 404, json={"mark_unhealthy": True})


def test_every_reader_knows_a_new_stack_before_its_plan(
    world: Installation, api: Client, cfn: Callable[..., dict[str, Any]]
) -> None:
    uuid = world.submit("s", template("a", "b", "c"))
    path = f"{PATH}/s/{uuid}"
    every_reader_knows(api, cfn, path, dict.fromkeys("abc", "INIT_COMPLETE"))
    world.deliver_all()
    every_reader_knows(api, cfn, path, dict.fromkeys("abc", "CREATE_COMPLETE"))


def test_every_reader_knows_an_update_before_its_plan(
    world: Installation, api: Client, cfn: Callable[..., dict[str, Any]]
) -> None:
    uuid = world.submit("s", template("a", "c", "e"))
    world.deliver_all()
    document = template("a", "b", "d", "e")
    world.update("s", document["resources"], **{k: document[k] for k in ("parameters", "conditions")})
    states = {**dict.fromkeys("ace", "CREATE_COMPLETE"), **dict.fromkeys("bd", "INIT_COMPLETE")}
    every_reader_knows(api, cfn, f"{PATH}/s/{uuid}", states)
    world.deliver_all()
    assert names(api.get(f"{PATH}/s/{uuid}/resources")["resources"]) == ["a", "b", "d", "e"]


def test_a_rollback_is_known_before_its_plan(
    world: Installation, api: Client, cfn: Callable[..., dict[str, Any]]
) -> None:
    uuid = world.submit("s", template("a", "b", "c"))
    world.deliver_all()
    world.update("s", {"a": test_resource("v" * 500)})
    world.deliver_one(world.messages.pop(0))
    world.deliver_all()
    world.update("s", {"z": test_resource("v" * 500)})
    world.act("s", "cancel_update")
    listed = api.get(f"{PATH}/s/{uuid}/resources")["resources"]
    assert names(listed) == ["a"]  # the last complete revision
    world.deliver_all()
    assert names(api.get(f"{PATH}/s/{uuid}/resources")["resources"]) == ["a"]


def test_the_condition_is_evaluated_with_the_values_of_the_request(world: Installation, api: Client) -> None:
    uuid = world.submit("s", template("a"), parameters={"extra": True})
    assert names(api.get(f"{PATH}/s/{uuid}/resources")["resources"]) == ["a", "omitted"]


def test_resources_of_a_nested_stack_are_known_before_its_plan(world: Installation, api: Client) -> None:
    document = template("a", inner={"type": "inner.yaml"})
    uuid = world.submit("s", document, files={"inner.yaml": str(INNER).replace("'", '"')})
    path = f"{PATH}/s/{uuid}"
    assert names(api.get(f"{path}/resources?nested_depth=1")["resources"]) == ["a", "inner"]
    while not world.rows("SELECT 1 FROM stack WHERE owner_id IS NOT NULL"):
        world.deliver_one(world.messages.pop(0))
    [child] = world.rows("SELECT id, name, uuid FROM stack WHERE owner_id IS NOT NULL")
    assert not world.rows("SELECT 1 FROM resource WHERE stack_id = :id", id=child.id)
    assert names(api.get(f"{path}/resources?nested_depth=1")["resources"]) == ["a", "inner", "leaf", "other"]
    nested = f"{PATH}/{child.name}/{child.uuid}/resources"
    assert names(api.get(nested)["resources"]) == ["leaf", "other"]
    assert api.get(f"{nested}/leaf")["resource"]["resource_status"] == "INIT_COMPLETE"
    world.deliver_all()
    assert names(api.get(f"{path}/resources?nested_depth=1")["resources"]) == ["a", "inner", "leaf", "other"]


def test_the_members_of_a_group_are_known_before_its_plan(world: Installation, api: Client) -> None:
    group = {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": 12, "resource_def": {"type": "OS::Heat::TestResource"}},
    }
    world.submit("s", template(group=group))
    while not world.rows("SELECT 1 FROM stack WHERE owner_id IS NOT NULL"):
        world.deliver_one(world.messages.pop(0))
    [child] = world.rows("SELECT id, name, uuid FROM stack WHERE owner_id IS NOT NULL")
    nested, expected = f"{PATH}/{child.name}/{child.uuid}", sorted(str(number) for number in range(12))
    assert not world.rows("SELECT 1 FROM resource WHERE stack_id = :id", id=child.id)
    assert names(api.get(f"{nested}/resources")["resources"]) == expected
    assert pages(api, nested, 5) == expected
    assert api.get(f"{nested}/resources/11")["resource"]["resource_status"] == "INIT_COMPLETE"
    api.ask("GET", f"{nested}/resources/12", 404)


def test_an_answer_before_the_plan_is_the_answer_after_it(world: Installation, api: Client) -> None:
    described = {**test_resource("v"), "description": "The first", "metadata": {"k": 1}}
    mapped = {"type": "My::Thing", "properties": {"value": "v"}, "depends_on": ["a"]}
    shadowed = {"type": "My::Nested"}
    environment = {"resource_registry": {"My::Thing": "OS::Heat::TestResource", "My::Nested": "inner.yaml"}}
    files = {"inner.yaml": str(INNER).replace("'", '"')}
    document = template("a", "b", d=described, m=mapped, n=shadowed)
    uuid = world.submit("s", document, environment=environment, files=files)
    path = f"{PATH}/s/{uuid}"

    def answers() -> list[Any]:
        shown = [api.get(f"{path}/resources")["resources"], api.get(f"{path}/resources?limit=9")["resources"]]
        shown.append(api.get(f"{path}/resources?with_detail=true")["resources"])
        shown.append([api.get(f"{path}/resources/{name}")["resource"] for name in "abdmn"])
        for entries in shown:
            for entry in entries:
                for key in ("creation_time", "updated_time", *untold):
                    entry.pop(key, None)
        nearby = (api.get(f"{path}/resources/{name}/dependencies") for name in "abdmn")
        return shown if untold else [*shown, *nearby]

    # a large template does not tell dependents
    untold = ("required_by",) if config.INLINE_BODY_SIZE < 1_000 else ()
    before = answers()
    while not world.rows("SELECT 1 FROM resource"):
        world.deliver_one(world.messages.pop(0))
    assert answers() == before
