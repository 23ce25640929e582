"""The history over HTTP, on the real engine: lists, a revision, its documents, differences, rollback,
failures.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from api.app import operations
from api.dependencies import Dependencies
from api.routes import assemble
from orchestrator import config
from orchestrator.operations import offload
from orchestrator.resources.registry import Registry
from tests.scenarios.world import World, test_resource

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


class Api:
    """The application over a world, whose messages the test delivers."""

    def __init__(self, world: World) -> None:
        self.world = world
        publish: Any = world.messages.extend
        made_of = Dependencies(
            world.settings, world.database, world.cipher, Registry.of(), operations(), publish
        )
        self.http: FlaskClient = assemble(made_of).test_client()

    def ask(self, method: str, path: str, status: int = 200, project: str = "p1") -> Any:
        answer = self.http.open(f"/v1/{project}{path}", method=method, follow_redirects=method == "GET")
        assert answer.status_code == status, answer.get_data(as_text=True)
        return answer.get_json() if answer.data else None

    def get(self, path: str, status: int = 200, **options: Any) -> Any:
        return self.ask("GET", path, status, **options)

    def message(self, method: str, path: str, status: int, **options: Any) -> tuple[str, str]:
        error = self.ask(method, path, status, **options)["error"]
        return error["type"], error["message"]


@pytest.fixture
def api(world: World) -> Api:
    return Api(world)


def made(world: World) -> str:
    """A stack with three revisions, the last of which failed; return its path."""
    parameters = {
        "p": {"type": "string", "default": "d"},
        "h": {"type": "string", "hidden": True},
    }
    values = {"p": "1", "h": "secret-one"}
    joined = {"list_join": ["-", [{"get_param": "p"}, {"get_param": "h"}]]}
    shared = {"parameters": parameters, "files": {"f": "text of f"}}
    uuid = world.create(
        "s",
        {"a": test_resource(joined), "b": test_resource("1")},
        environment={"parameters": values},
        **shared,
    )
    world.deliver_all()
    other = {"a": test_resource(joined), "c": test_resource("1", requires=("a",))}
    shared["files"] = {"f": "another text"}
    values = {"p": "2", "h": "secret-two"}
    world.update("s", other, environment={"parameters": values}, outputs={"o": {"value": 1}}, **shared)
    world.deliver_all()
    values = {"p": "2", "h": "secret-two"}
    bad = {**other, "bad": test_resource("1", fail=True)}
    world.update("s", bad, environment={"parameters": values}, **shared)
    world.deliver_all()
    return f"/stacks/s/{uuid}"


def test_the_history_is_listed_the_newest_first_and_page_by_page(world: World, api: Api):
    place = made(world)
    listed = api.get(f"{place}/revisions")["revisions"]
    keywords = [
        (item["number"], item["action"], item["outcome"], item["is_desired"], item["is_last_good"])
        for item in listed
    ]
    assert keywords == [
        (3, "UPDATE", "failed", True, False),
        (2, "UPDATE", "complete", False, True),
        (1, "CREATE", "complete", False, False),
    ]
    for item in listed:
        assert item["created_by"] == "tester"
        assert TIME.fullmatch(item["creation_time"])
        assert TIME.fullmatch(item["ended_time"])
        assert 0 < item["seconds"] < 600
        assert (
            api.get(item["links"][0]["href"].partition("/v1/p1")[2])["revision"]["number"] == item["number"]
        )
    assert [item["number"] for item in api.get("/stacks/s/revisions?limit=2")["revisions"]] == [3, 2]
    assert [item["number"] for item in api.get(f"{place}/revisions?limit=2&marker=2")["revisions"]] == [1]
    assert api.message("GET", f"{place}/revisions?limit=-1", 400)[0] == "HTTPBadRequest"


def test_a_revision_is_shown_with_its_effects_and_without_hidden_values(world: World, api: Api):
    place = made(world)
    shown = api.get(f"{place}/revisions/2")["revision"]
    assert shown["resources"] == {"created": 1, "updated": 1, "replaced": 0, "deleted": 1, "failed": 0}
    assert shown["reason"] == "Stack UPDATE completed successfully"
    assert (shown["parameters"]["p"], shown["parameters"]["h"]) == ("2", "******")
    assert shown["files"] == ["f"]
    failed = api.get(f"{place}/revisions/3")["revision"]
    assert (failed["failures"], failed["resources"]["failed"]) == (1, 1)
    assert failed["reason"] == "Resource UPDATE failed: ValueError: resources.bad: Test Resource failed bad"
    world.update("s", {"a": test_resource("1")})
    running = api.get(f"{place}/revisions/4")["revision"]
    assert (running["outcome"], running["ended_time"], running["seconds"]) == (None, None, None)


def test_a_revisions_documents_are_its_own(world: World, api: Api):
    place = made(world)
    assert set(api.get(f"{place}/revisions/1/template")["resources"]) == {"a", "b"}
    assert set(api.get(f"{place}/revisions/2/template")["resources"]) == {"a", "c"}
    assert api.get(f"{place}/revisions/1/files") == {"f": "text of f"}
    assert api.get(f"{place}/revisions/2/files") == {"f": "another text"}
    environment = api.get(f"{place}/revisions/1/environment")
    assert environment["parameters"] == {"p": "1", "h": "******"}
    assert api.get(f"{place}/revisions/3/environment") == api.get(f"{place}/environment")


@pytest.mark.parametrize("apart", [False, True])
def test_two_revisions_are_compared(world: World, api: Api, apart: bool, monkeypatch: pytest.MonkeyPatch):
    place = made(world)
    if apart:  # as it is done for large templates, short of the process
        monkeypatch.setattr(config, "INLINE_BODY_SIZE", 1)

        def run(context: Any, path: Any, work: Any, _size: Any = None) -> Any:
            job = offload._Job(context.settings, context.database.url, context.caller, path, 60, 0)
            sent: list[Any] = []
            monkeypatch.setattr(offload, "_context", lambda _: context)
            work(job, type("Answer", (), {"send": lambda _, value: sent.append(value)})())
            return sent[0]

        monkeypatch.setattr(offload, "_run_in_subprocess", run)
    body = api.get(f"{place}/revisions/1/diff/2")["diff"]
    assert (body["before"], body["after"]) == (1, 2)
    sections = body["sections"]
    assert list(sections) == ["parameters", "resources", "outputs", "files"]
    kind = "OS::Heat::TestResource"
    assert sections["resources"] == {
        "added": [{"name": "c", "type": kind}],
        "removed": [{"name": "b", "type": kind}],
        "changed": [],
    }
    assert [(parameter["name"], parameter["changes"]) for parameter in sections["parameters"]["changed"]] == [
        ("p", [{"path": "value", "before": "1", "after": "2"}]),
        ("h", [{"path": "value", "before": "******", "after": "******"}]),
    ]
    assert [parameter["name"] for parameter in sections["files"]["changed"]] == ["f"]
    assert sections["outputs"]["added"] == [{"name": "o"}]
    assert api.get(f"{place}/revisions/2/diff/2")["diff"]["sections"] == {}


def test_a_condition_that_flips_shows_in_the_resources(world: World, api: Api):
    resources = {
        "on": {**test_resource("x"), "condition": "c"},
        "v": test_resource({"if": ["c", "yes", "no"]}),
    }
    shared = {
        "conditions": {"c": {"get_param": "p"}},
        "parameters": {"p": {"type": "boolean", "default": False}},
    }
    uuid = world.create("s", resources, **shared)
    world.patch("s", parameters={"p": True})
    shared["conditions"] = {"c": {"not": {"get_param": "p"}}}
    world.update("s", resources, **shared)
    sections = api.get(f"/stacks/s/{uuid}/revisions/1/diff/2")["diff"]["sections"]
    assert [resource["name"] for resource in sections["resources"]["added"]] == ["on"]
    assert sections["resources"]["changed"] == [
        {
            "name": "v",
            "changes": [{"path": "properties.value", "before": "no", "after": "yes"}],
            "more": 0,
        }
    ]
    assert "conditions" not in sections
    sections = api.get(f"/stacks/s/{uuid}/revisions/2/diff/3")["diff"]["sections"]
    assert [resource["name"] for resource in sections["conditions"]["changed"]] == ["c"]
    assert "resources" not in sections


def test_a_stack_is_brought_back_over_http(world: World, api: Api):
    place = made(world)
    assert api.ask("POST", f"{place}/revisions/1/rollback", 202) is None
    world.deliver_all()
    stack = api.get(place)["stack"]
    assert stack["stack_status"] == "ROLLBACK_COMPLETE"
    assert stack["parameters"]["p"] == "1"
    newest = api.get(f"{place}/revisions?limit=1")["revisions"][0]
    assert (newest["number"], newest["copy_of"], newest["action"]) == (4, 1, "ROLLBACK")
    assert api.get(f"{place}/revisions/1/diff/4")["diff"]["sections"] == {}


def test_missing_objects_are_404_in_heats_format(world: World, api: Api):
    place = made(world)
    for number in ("7", "0", "-1", "x", "1.0", "9" * 30, "%C2%B2"):
        kind, said = api.message("GET", f"{place}/revisions/{number}", 404)
        assert (kind, said.startswith("The Revision (")) == ("EntityNotFound", True)
    assert api.message("POST", f"{place}/revisions/7/rollback", 404) == (
        "EntityNotFound",
        "The Revision (7) could not be found.",
    )
    assert api.message("GET", f"{place}/revisions/1/diff/9", 404)[1] == "The Revision (9) could not be found."
    assert api.message("GET", f"{place}/failures?revision=9", 404)[0] == "EntityNotFound"
    assert len(api.get(f"{place}/revisions")["revisions"]) == 3


def test_suspended_stacks_do_not_roll_back_and_deleted_stacks_keep_their_history(world: World, api: Api):
    place = made(world)
    with world.database.connect() as db:
        db.execute("UPDATE stack SET action = 'SUSPEND', status = 'COMPLETE'")
    assert api.message("POST", f"{place}/revisions/1/rollback", 400) == (
        "NotSupported",
        "Rolling back a stack when it is suspended is not supported.",
    )
    with world.database.connect() as db:
        db.execute("UPDATE stack SET action = 'UPDATE'")
    world.delete("s")
    world.deliver_all()
    assert api.message("POST", f"{place}/revisions/1/rollback", 404) == (
        "EntityNotFound",
        "The Stack (s) could not be found.",
    )
    assert len(api.get(f"{place}/revisions")["revisions"]) == 3
    assert api.get(f"{place}/revisions/1/files") == {"f": "text of f"}


def test_other_projects_see_and_do_nothing(world: World, api: Api):
    place = made(world)
    for path in ("revisions", "revisions/1", "revisions/1/template", "revisions/1/diff/2", "failures"):
        assert api.message("GET", f"{place}/{path}", 404, project="p2")[0] == "EntityNotFound"
    assert api.message("POST", f"{place}/revisions/1/rollback", 404, project="p2")[0] == "EntityNotFound"
    assert world.messages == []


def test_failures_belong_to_the_current_or_the_rolled_back_traversal(world: World, api: Api):
    place = made(world)
    [item] = api.get(f"{place}/failures")["failures"]
    assert (item["resource_name"], item["revision"]) == ("bad", 3)
    assert item["reason"] == "ValueError: resources.bad: Test Resource failed bad"
    assert TIME.fullmatch(item["failure_time"])
    world.update("s", {"a": test_resource("1")}, disable_rollback=False)
    world.deliver_all()
    assert api.get(f"{place}/failures")["failures"] == []
    assert len(api.get(f"{place}/failures?revision=3")["failures"]) == 1
    worse = {name: test_resource("1", fail=True) for name in "xyz"}
    world.update("s", {"a": test_resource("1"), **worse}, disable_rollback=False)
    world.deliver_all()
    assert api.get(place)["stack"]["stack_status"] == "ROLLBACK_COMPLETE"
    body = api.get("/stacks/s/failures")["failures"]
    assert 1 <= len(body) <= 3
    assert {item["revision"] for item in body} == {5}
    page = api.get(f"{place}/failures?limit=1")["failures"]
    assert page == body[:1]
    assert api.get(f"{place}/failures?marker={page[0]['id']}")["failures"] == body[1:]


def test_a_late_cause_of_a_rolled_back_update_hides_no_other_cause(world: World, api: Api):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.execute(text("UPDATE stack SET action = 'ROLLBACK', traversal = 3"))
        for traversal, name in ((2, "b"), (3, "a"), (2, "late")):
            connection.execute(
                text(
                    "INSERT INTO failure (stack_id, traversal, resource_name, reason) "
                    "SELECT id, :t, :n, 'why' FROM stack"
                ),
                {"t": traversal, "n": name},
            )
    result, marker = [], ""
    while page := api.get(f"/stacks/s/{uuid}/failures?limit=1&marker={marker}")["failures"]:
        result.append(page[0]["resource_name"])
        marker = page[0]["id"]
    assert result == ["b", "a", "late"]
