"""Resources and events over HTTP (docs/internals/rest-api.md §7, §8)."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import datetime as dt
import threading
import uuid

import psycopg
import pytest

from orchestrator.store.events.events import event_id, event_uuid
from tests.integration.api_world import START, Client, Made, World, api, project, root, world  # noqa: F401 - fixtures


@pytest.fixture
def made(world: World, project: str) -> Made:
    """A stack of three: `b` and `c` require `a`."""
    stack = world.stack(project, "s")
    world.resource(stack, "a", physical_id="pa", action="CREATE", attributes={"open": 1, "shut": "secret"})
    world.resource(stack, "b", ["a"], action="CREATE", status="FAILED", status_reason="no luck")
    world.resource(stack, "c", ["a"], updated_at=START + dt.timedelta(minutes=1))
    return stack


def test_a_list_shows_the_fields_of_a_list(api: Client, made: Made) -> None:
    listed = api.get(f"{made.path}/resources")["resources"]
    assert [resource["resource_name"] for resource in listed] == ["a", "b", "c"]
    place = f"http://localhost/v1{made.path}"
    assert listed[0] == {
        "resource_name": "a",
        "logical_resource_id": "a",
        "physical_resource_id": "pa",
        "resource_type": "Test::Plain",
        "resource_status": "CREATE_COMPLETE",
        "resource_status_reason": "state changed",
        "creation_time": "2026-01-01T12:00:00Z",
        "updated_time": "2026-01-01T12:00:00Z",
        "required_by": ["b", "c"],
        "links": [{"rel": "self", "href": f"{place}/resources/a"}, {"rel": "stack", "href": place}],
    }
    assert (listed[1]["resource_status"], listed[1]["physical_resource_id"]) == ("CREATE_FAILED", "")
    assert (listed[2]["resource_status"], listed[2]["required_by"]) == ("INIT_COMPLETE", [])
    assert listed[2]["updated_time"] == "2026-01-01T12:01:00Z"


def test_a_detailed_list_adds_description_and_attributes(api: Client, made: Made) -> None:
    first, second, _ = api.get(f"{made.path}/resources?with_detail=true")["resources"]
    assert first["description"] == "The a"
    assert first["attributes"] == {"open": 1, "shut": "******"}
    assert second["attributes"] == {"open": None, "shut": None}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=a&name=c", ["a", "c"]),
        ("status=FAILED", ["b"]),
        ("action=CREATE", ["a", "b"]),
        ("type=Test::Plain", ["a", "b", "c"]),
        ("type=Other", []),
        ("physical_resource_id=pa", ["a"]),
        ("id=nonsense", []),
        ("nested_depth=3&name=", ["a", "b", "c"]),
    ],
)
def test_resource_filters(api: Client, made: Made, query: str, names: list[str]) -> None:
    assert api.names(f"{made.path}/resources?{query}", "resources", "resource_name") == names


def test_unknown_filters_are_refused(api: Client, made: Made) -> None:
    text = api.message("GET", f"{made.path}/resources?zz=1&name=a", 400)
    assert text == "Invalid filter parameters ['zz']"
    assert api.message("GET", f"{made.path}/resources?nested_depth=x", 400) == (
        "Only integer is acceptable by 'nested_depth'."
    )


def test_the_current_resource_of_a_replaced_pair_is_shown(api: Client, world: World, made: Made) -> None:
    new = world.resource(made, "d", physical_id="new")
    world.resource(made, "d", physical_id="old", deposed=True, replaced_by=new)
    listed = api.get(f"{made.path}/resources?name=d")["resources"]
    assert [resource["physical_resource_id"] for resource in listed] == ["new"]
    assert api.get(f"{made.path}/resources/d")["resource"]["physical_resource_id"] == "new"


def test_show_has_description_attributes_and_dependents(api: Client, made: Made) -> None:
    shown = api.get(f"{made.path}/resources/a?with_attr=more")["resource"]
    assert shown["description"] == "The a"
    assert shown["required_by"] == ["b", "c"]
    assert shown["attributes"] == {"open": 1, "shut": "******", "more": None}
    assert "metadata" not in shown
    body = api.get(f"{made.path}/resources/zz", 404)
    assert body["error"]["type"] == "ResourceNotFound"
    assert body["error"]["message"] == "The Resource (zz) could not be found in Stack s."


def test_a_show_attribute_is_the_answer(api: Client, world: World, made: Made) -> None:
    world.resource(made, "e", attributes={"show": {"id": 5}, "open": 7})
    shown = api.get(f"{made.path}/resources/e?with_attr=open")["resource"]
    assert shown["attributes"] == {"id": 5, "open": 7}


def test_a_type_mapped_to_another_has_its_attributes(api: Client, world: World, made: Made) -> None:
    world.resource(made, "g", type="My::Alias", runs_as="Test::Plain", attributes={"open": 1, "shut": 2})
    shown = api.get(f"{made.path}/resources/g")["resource"]
    assert shown["resource_type"] == "My::Alias"
    assert shown["attributes"] == {"open": 1, "shut": "******"}


def test_nothing_sealed_is_shown(api: Client, world: World, made: Made) -> None:
    sealed = world.cipher.seal(
        {"attributes": {"open": "secret"}, "metadata": {"k": ["secret", {"l": "secret"}]}}
    )
    world.resource(made, "f", sealed=sealed)
    assert api.get(f"{made.path}/resources/f")["resource"]["attributes"] == {
        "open": "******",
        "shut": "******",
    }
    masked = {"metadata": {"k": ["******", {"l": "******"}]}}
    assert api.get(f"{made.path}/resources/f/metadata") == masked
    world.resource(made, "h", sealed=sealed, metadata_={"k": ["secret", {"l": "secret"}]})
    assert api.get(f"{made.path}/resources/h/metadata") == masked


def test_metadata_returns_the_stored_value(api: Client, world: World, made: Made) -> None:
    world.resource(made, "g", metadata_={"a": 1})
    assert api.get(f"{made.path}/resources/g/metadata") == {"metadata": {"a": 1}}
    assert api.get(f"{made.path}/resources/a/metadata") == {"metadata": {}}


def test_names_are_encoded_in_links_and_decoded_in_paths(api: Client, world: World, made: Made) -> None:
    world.resource(made, "ö ?#%")
    [listed] = api.get(f"{made.path}/resources", query_string={"name": "ö ?#%"})["resources"]
    href = listed["links"][0]["href"]
    assert href.endswith("/resources/%C3%B6%20%3F%23%25")
    assert api.get(href.removeprefix("http://localhost/v1"))["resource"]["resource_name"] == "ö ?#%"


def test_a_child_stack_is_linked(api: Client, world: World, made: Made) -> None:
    resource_id = world.resource(made, "n")
    child = world.stack(
        made.project,
        "s-n",
        owner_id=made.id,
        root_id=made.id,
        depth=1,
        parent_resource_id=resource_id,
        parent_resource="n",
    )
    links = api.get(f"{made.path}/resources/n")["resource"]["links"]
    assert links[2] == {"rel": "nested", "href": f"http://localhost/v1{child.path}"}
    world.resource(child, "x")
    assert api.get(f"{child.path}/resources/x")["resource"]["parent_resource"] == "n"


@pytest.fixture
def told(world: World, made: Made) -> Made:
    """The stack with five events of it, all in the same second."""
    world.event(made, "s", resource_type="OS::Heat::Stack", physical_id=str(made.uuid), status="IN_PROGRESS")
    world.event(made, "a", status="IN_PROGRESS", physical_id=None)
    world.event(made, "a", properties={"p": 1})
    world.event(made, "b", status="FAILED", reason="x" * 300)
    world.event(made, "s", resource_type="OS::Heat::Stack", physical_id=str(made.uuid), status="FAILED")
    return made


def states(api: Client, path: str) -> list[str]:
    """Return the events of a listing as `name status`."""
    events = api.get(path)["events"]
    return [
        f"{event['resource_name']} {event['resource_status'].removeprefix('CREATE_')}" for event in events
    ]


IN_ORDER = ["s IN_PROGRESS", "a IN_PROGRESS", "a COMPLETE", "b FAILED", "s FAILED"]


def test_events_are_newest_first_unless_asked_otherwise(api: Client, told: Made) -> None:
    assert states(api, f"{told.path}/events") == IN_ORDER[::-1]
    assert states(api, f"{told.path}/events?sort_dir=asc") == IN_ORDER
    assert states(api, f"{told.path}/events?sort_dir=asc&sort_keys=event_time") == IN_ORDER
    by_type = states(api, f"{told.path}/events?sort_dir=asc&sort_keys=resource_type")
    assert by_type == [IN_ORDER[0], IN_ORDER[4], *IN_ORDER[1:4]]


@pytest.mark.parametrize("query", ["sort_dir=asc", "sort_dir=desc", "sort_keys=resource_type"])
def test_events_page_without_a_gap_or_a_repeat(api: Client, told: Made, query: str) -> None:
    whole, observed, path = (
        states(api, f"{told.path}/events?{query}"),
        [],
        f"{told.path}/events?{query}&limit=2",
    )
    marker = ""
    for _ in range(3):
        page = api.get(path + marker)["events"]
        observed += states(api, path + marker)
        marker = f"&marker={page[-1]['id']}"
    assert observed == whole
    assert api.get(path + marker) == {"events": []}
    assert len(api.get(f"{path}&marker={uuid.uuid4()}")["events"]) == 2


def test_an_event_of_the_stack_says_which_stack(api: Client, told: Made) -> None:
    last = api.get(f"{told.path}/events?limit=1")["events"][0]
    place = f"http://localhost/v1{told.path}"
    assert last == {
        "id": last["id"],
        "event_time": "2026-01-01T12:00:00Z",
        "resource_name": "s",
        "logical_resource_id": "s",
        "physical_resource_id": str(told.uuid),
        "resource_status": "CREATE_FAILED",
        "resource_status_reason": "state changed",
        "sequence": last["sequence"],
        "links": [
            {"rel": "self", "href": f"{place}/resources/s/events/{last['id']}"},
            {"rel": "resource", "href": f"{place}/resources/s"},
            {"rel": "stack", "href": place},
        ],
    }
    deep = api.get(f"{told.path}/events?limit=1&nested_depth=1")["events"][0]
    assert deep["links"][3] == {"rel": "root_stack", "href": place}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("resource_status=COMPLETE", [2]),
        ("resource_status=COMPLETE&resource_status=FAILED", [2, 3, 4]),
        ("resource_action=DELETE", []),
        ("resource_name=a", [1, 2]),
        ("resource_type=OS::Heat::Stack&resource_status=FAILED", [4]),
        ("whatever=1", [0, 1, 2, 3, 4]),
    ],
)
def test_event_filters(api: Client, told: Made, query: str, found: list[int]) -> None:
    assert states(api, f"{told.path}/events?sort_dir=asc&{query}") == [IN_ORDER[number] for number in found]


def test_events_of_a_resource_can_be_listed_or_are_empty(api: Client, told: Made) -> None:
    assert states(api, f"{told.path}/resources/a/events") == ["a COMPLETE", "a IN_PROGRESS"]
    body = api.get(f"{told.path}/resources/zz/events", 404)
    assert body["error"]["message"] == "No events found for resource zz"


def test_an_event_is_shown_in_full_under_its_resource(api: Client, told: Made) -> None:
    newest = api.get(f"{told.path}/resources/a/events")["events"][0]
    place = newest["links"][0]["href"].removeprefix("http://localhost/v1")
    shown = api.get(place)["event"]
    assert (shown["resource_type"], shown["resource_properties"]) == ("Test::Plain", {"p": 1})
    for invalid in (
        f"{told.path}/resources/b/events/{newest['id']}",
        f"{told.path}/resources/a/events/{uuid.uuid4()}",
    ):
        wrong_id = invalid.rpartition("/")[2]
        assert api.message("GET", invalid, 404) == f"No event {wrong_id} found"
    api.get(f"{told.path}/resources/a/events/nonsense", 404)


def test_a_long_reason_is_not_cut(api: Client, told: Made) -> None:
    [event] = api.get(f"{told.path}/events?resource_name=b")["events"]
    assert event["resource_status_reason"] == "x" * 300


def test_a_follower_never_misses_an_event_committed_late(api: Client, world: World, project: str) -> None:
    """A transaction that began earlier commits later: the marker must not have gone past it."""
    stack = world.stack(project, "busy", status="IN_PROGRESS")
    path = f"{stack.path}/events?sort_dir=asc"
    insert = (
        "INSERT INTO event (stack_id, resource_name, resource_type, action, status, reason)"
        " VALUES (%s, %s, 't', 'CREATE', 'COMPLETE', '')"
    )
    world.event(stack, "first")
    assert states(api, path) == ["first COMPLETE"]
    with psycopg.connect(world.database.url) as late:
        late.execute(insert, (stack.id, "late"))
        world.event(stack, "early")
        observed = api.get(path)["events"]
        assert [event["resource_name"] for event in observed] == ["first"]
        assert states(api, f"{stack.path}/events")[0] == "early COMPLETE"  # the newest first hides nothing
        late.commit()
    assert states(api, f"{path}&marker={observed[-1]['id']}") == ["late COMPLETE", "early COMPLETE"]


def test_a_finished_stack_shows_its_last_event_despite_later_output(
    api: Client, world: World, project: str
) -> None:
    stack = world.stack(project, "done")
    with psycopg.connect(world.database.url) as other:
        other.execute("SELECT pg_current_xact_id()")
        world.event(stack, "done")
        assert states(api, f"{stack.path}/events?sort_dir=asc") == ["done COMPLETE"]


def test_an_events_id_leads_back_to_its_row_and_to_no_other_stacks() -> None:
    stack, other = uuid.uuid4(), uuid.uuid4()
    public = event_uuid(stack, 123_456_789)
    assert event_id(stack, public) == 123_456_789
    assert event_id(other, public) is None
    assert event_id(stack, str(stack)) is None or event_id(stack, str(stack)) != 123_456_789
    assert event_id(stack, "nonsense") is None


def test_many_readers_at_once_each_get_the_whole(world: World, made: Made) -> None:
    client, invalid = world.client(), []

    def read() -> None:
        http = client.http.application.test_client()
        for _ in range(5):
            response = http.get(f"/v1{made.path}/resources")
            if len(response.json["resources"]) != 3:
                invalid.append(response)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert invalid == []


@pytest.fixture
def tree(api: Client, world: World, made: Made) -> list[Made]:
    """A stack in `made`, and a stack in that, each with a resource and an event, and a second tree."""
    stacks, above = [made], made
    for number, name in enumerate(("one", "two"), start=1):
        resource_id = world.resource(above, name)
        above = world.stack(
            made.project,
            f"{above.name}-{name}",
            owner_id=above.id,
            root_id=made.id,
            depth=number,
            parent_resource_id=resource_id,
            parent_resource=name,
        )
        world.resource(above, f"in-{name}")
        stacks.append(above)
    for stack in stacks:
        world.event(stack, stack.name)
    return stacks


def test_resources_of_nested_stacks_are_listed_as_deep_as_asked(api: Client, tree: list[Made]) -> None:
    def found(depth: int, extra: str = "") -> list[tuple[str, str]]:
        listed = api.get(f"{tree[0].path}/resources?nested_depth={depth}{extra}")["resources"]
        return [(item["links"][1]["href"].split("/")[-2], item["resource_name"]) for item in listed]

    own = [("s", name) for name in ("a", "b", "c", "one")]
    assert found(0) == own
    assert found(1) == [*own, ("s-one", "in-one"), ("s-one", "two")]
    assert found(2) == [*found(1), ("s-one-two", "in-two")]
    assert found(99) == found(2)
    assert found(9, "&name=in-two") == [("s-one-two", "in-two")]


def test_resources_of_nested_stacks_name_their_parent(api: Client, tree: list[Made]) -> None:
    listed = api.get(f"{tree[0].path}/resources?nested_depth=2")["resources"]
    parents = {item["resource_name"]: item.get("parent_resource") for item in listed}
    assert (parents["one"], parents["in-one"], parents["two"], parents["in-two"]) == (
        None,
        "one",
        "one",
        "two",
    )
    inner = api.get(f"{tree[1].path}/resources?nested_depth=1")["resources"]
    assert [item["resource_name"] for item in inner] == ["in-one", "two", "in-two"]


def test_events_of_nested_stacks_are_listed_to_the_requested_depth(api: Client, tree: list[Made]) -> None:
    def found(depth: int, extra: str = "") -> list[str]:
        query = f"nested_depth={depth}&sort_dir=asc{extra}"
        return [item["resource_name"] for item in api.get(f"{tree[0].path}/events?{query}")["events"]]

    assert found(0) == ["s"]
    assert found(1) == ["s", "s-one"]
    assert found(2) == ["s", "s-one", "s-one-two"]
    reported = api.get(f"{tree[0].path}/events?nested_depth=2&sort_dir=asc&resource_name=s-one")["events"]
    links = {entry["rel"]: entry["href"] for entry in reported[0]["links"]}
    assert links["stack"].endswith(tree[1].path)
    assert links["root_stack"].endswith(tree[0].path)
    assert found(2, f"&marker={reported[0]['id']}") == ["s-one-two"]


def test_a_child_shows_its_parent(api: Client, tree: list[Made]) -> None:
    assert api.get(tree[2].path)["stack"]["parent"] == str(tree[1].uuid)
    assert api.get(tree[0].path)["stack"]["parent"] is None
