"""Verdicts over HTTP: of a project, a stack and a resource; filters, pages, isolation."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import select, update

from orchestrator.store.observation import counts
from orchestrator.store.tables.graph import Resource
from orchestrator.store.tables.observation import (
    ObservationFault,
    ObservationGroup,
    ResourceVerdict,
    VerdictHistory,
)
from tests.integration.api_world import START, Client, Made, World, api, project, root, world
from tests.scenarios.plans import explained

__all__ = ["api", "project", "world"]

LATER = START + dt.timedelta(hours=1)
CHANGED = [{"property": "metadata.a", "expected": "1", "found": "2"}]


class Watched:
    """A project with an observed service."""

    def __init__(self, world: World, project: str) -> None:
        self.world, self.project = world, project
        self.stack = world.stack(project, "s", revision={"resource_count": 3})
        self.ids = {
            name: world.resource(self.stack, name, physical_id=f"{name}-id")
            for name in ("one", "two", "three")
        }
        group = {"service": "nova", "kind": "lists", "types": ["Test::Plain"], "region": "R"}
        self.group(project_id=project, observed_at=LATER, **group)

    def group(self, **values: Any) -> None:
        self.world.insert(ObservationGroup, values)

    def change_group(self, **values: Any) -> None:
        with self.world.database.engine.begin() as connection:
            connection.execute(
                update(ObservationGroup).where(ObservationGroup.project_id == self.project).values(**values)
            )

    def deviates(self, name: str, verdict: str = "MISSING", stack: Made | None = None, **values: Any) -> None:
        of = stack or self.stack
        row = {
            "resource_id": self.ids[name],
            "stack_id": of.id,
            "root_id": of.id,
            "project_id": self.project,
            "group_id": 0,
            "name": name,
            "type": "Test::Plain",
            "service": "nova",
            "verdict": verdict,
            "confirmed": True,
            "reason": "" if verdict == "MODIFIED" else "why",
            "differences": CHANGED if verdict == "MODIFIED" else [],
            "since": START,
            "physical_id": f"{name}-id",
            "observed_at": LATER,
            **values,
        }
        self.world.insert(ResourceVerdict, row)


@pytest.fixture
def watched(world: World, project: str) -> Watched:
    return Watched(world, project)


def listed(api: Client, watched: Watched, query: str = "") -> list[str]:
    found = api.get(f"{root(watched.project)}/observations{query}")["observations"]
    return [f"{row['resource_name']} {row['verdict']}" for row in found]


def shown(api: Client, watched: Watched, name: str) -> Any:
    return api.get(f"{watched.stack.path}/resources/{name}")["resource"].get("observation")


def test_a_project_lists_what_is_not_in_sync(api: Client, watched: Watched):
    assert listed(api, watched) == []
    watched.deviates("one")
    watched.deviates("two", "MODIFIED")
    watched.deviates("three", "FAILED", unknown_since=LATER, unknown_reason="503")
    assert listed(api, watched) == ["one MISSING", "two MODIFIED", "three UNKNOWN"]
    [_, changed, unknown] = api.get(f"{root(watched.project)}/observations")["observations"]
    assert changed["differences"] == CHANGED
    assert (unknown["reason"], unknown["since"]) == ("503", "2026-01-01T13:00:00Z")
    assert unknown["differences"] == []


def test_filters_and_pages(api: Client, watched: Watched):
    watched.deviates("one")
    watched.deviates("two", "MODIFIED")
    assert listed(api, watched, "?verdict=MODIFIED") == ["two MODIFIED"]
    assert listed(api, watched, "?type=Other") == []
    assert listed(api, watched, "?service=nova&resource=one") == ["one MISSING"]
    page = api.get(f"{root(watched.project)}/observations?limit=1")
    assert [row["resource_name"] for row in page["observations"]] == ["one"]
    following = page["links"][0]["href"].partition("?")[2]
    assert listed(api, watched, f"?{following}") == ["two MODIFIED"]


def test_bad_queries_are_refused(api: Client, watched: Watched):
    place = f"{root(watched.project)}/observations"
    assert "Unknown verdict: gone" in api.message("GET", f"{place}?verdict=gone", 400)
    assert "Invalid marker" in api.message("GET", f"{place}?marker=x", 400)
    assert "Unknown query parameter" in api.message("GET", f"{place}?colour=red", 400)


def test_other_projects_see_nothing(world: World, api: Client, watched: Watched):
    watched.deviates("one")
    body = api.get(f"{root(world.project())}/observations")
    assert (body["observations"], body["services"]) == ([], [])
    api.get(watched.stack.path.replace("project", "other") + "/observations", 404)


def test_an_unconfirmed_error_is_not_shown(api: Client, watched: Watched):
    watched.deviates("one", "FAILED", confirmed=False)
    assert listed(api, watched) == []
    assert shown(api, watched, "one")["verdict"] == "IN_SYNC"


@pytest.mark.parametrize(
    "change", [{"physical_id": "new"}, {"observed": "ready", "observed_at": LATER + dt.timedelta(seconds=1)}]
)
def test_a_verdict_is_void_after_an_operation(
    world: World, api: Client, watched: Watched, change: dict[str, Any]
):
    watched.deviates("one")
    with world.database.engine.begin() as connection:
        connection.execute(update(Resource).where(Resource.id == watched.ids["one"]).values(**change))
    assert listed(api, watched) == []
    assert shown(api, watched, "one")["verdict"] == "IN_SYNC"


def test_a_stack_has_counts(api: Client, watched: Watched):
    place = f"{watched.stack.path}/observations"
    empty = {"IN_SYNC": 3, "MODIFIED": 0, "MISSING": 0, "FAILED": 0, "UNKNOWN": 0}
    assert api.get(place)["counts"] == empty
    assert "observation" not in api.get(watched.stack.path)["stack"]
    watched.deviates("one")
    assert api.get(place)["counts"] == empty | {"IN_SYNC": 2, "MISSING": 1}
    assert api.get(watched.stack.path)["stack"]["observation"] == empty | {"IN_SYNC": 2, "MISSING": 1}


class Tree(NamedTuple):
    """A root stack, the stacks below it, and a stack beside the tree."""

    root: Made
    levels: list[Made]  # each below the one before
    beside: Made


@pytest.fixture
def tree(world: World, watched: Watched) -> Tree:
    """Three levels below a root stack without its own deviation; each of them has one."""
    made = [watched.stack]
    for level in (1, 2, 3):
        owner = made[-1]
        values = {"owner_id": owner.id, "root_id": watched.stack.id, "depth": level}
        child = world.stack(
            watched.project,
            f"s-{level}",
            revision={"resource_count": 2},
            parent_resource="x",
            parent_resource_id=world.resource(owner, f"x{level}"),
            **values,
        )
        name = f"r{level}"
        watched.ids[name] = world.resource(child, name, physical_id=f"{name}-id")
        watched.deviates(name, ("MODIFIED", "MISSING", "MISSING")[level - 1], child, root_id=watched.stack.id)
        made.append(child)
    beside = world.stack(watched.project, "beside", revision={"resource_count": 1})
    watched.ids["b"] = world.resource(beside, "b", physical_id="b-id")
    watched.deviates("b", "FAILED", beside, unknown_since=LATER, unknown_reason="503")
    return Tree(watched.stack, made[1:], beside)


def test_the_counts_of_a_stack_include_every_level_below_it(api: Client, tree: Tree):
    none = {"MODIFIED": 0, "FAILED": 0, "UNKNOWN": 0}
    place = f"{tree.root.path}/observations"
    assert api.get(place)["counts"] == none | {"IN_SYNC": 6, "MODIFIED": 1, "MISSING": 2}
    assert api.get(tree.root.path)["stack"]["observation"]["MISSING"] == 2
    below = api.get(f"{tree.levels[1].path}/observations")
    assert below["counts"] == none | {"IN_SYNC": 2, "MISSING": 2}
    assert [row["resource_name"] for row in below["observations"]] == ["r2", "r3"]


def test_a_list_of_stacks_has_the_drift_of_every_level_below_them(api: Client, watched: Watched, tree: Tree):
    place = f"{root(watched.project)}/stacks"
    assert "drift" not in api.get(place)["stacks"][0]
    found = {row["stack_name"]: row["drift"] for row in api.get(f"{place}?with_drift=true")["stacks"]}
    none = {"MODIFIED": 0, "MISSING": 0, "FAILED": 0}
    assert found == {"s": none | {"MODIFIED": 1, "MISSING": 2}, "beside": none}
    nested = api.get(f"{place}?with_drift=true&show_nested=true&owner_id={tree.root.uuid}")["stacks"]
    assert [row["drift"] for row in nested] == [none | {"MODIFIED": 1, "MISSING": 2}]


def test_the_drift_of_a_list_is_not_shown_without_the_right(world: World, watched: Watched, tmp_path: Path):
    rules = tmp_path / "policy.yaml"
    rules.write_text("observations:index: []\n")
    api, place = world.client(policy_file=rules), f"{root(watched.project)}/stacks"
    assert len(api.get(place)["stacks"]) == 1
    api.get(f"{place}?with_drift=true", 403)


# Root stacks with a missing resource each.
CROWD = """
WITH x AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('stack', 'id')) AS stack_id,
        nextval(pg_get_serial_sequence('resource', 'id')) AS id, i
    FROM generate_series(1, 5000) i
), s AS (
    INSERT INTO stack (id, root_id, uuid, project_id, name, action, status) OVERRIDING SYSTEM VALUE
    SELECT stack_id, stack_id, gen_random_uuid(), %(project)s, 'crowd-' || i, 'CREATE', 'COMPLETE' FROM x
), r AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, physical_id) OVERRIDING SYSTEM VALUE
    SELECT id, gen_random_uuid(), stack_id, 'r', 'Test::Plain', 'p' || i FROM x
)
INSERT INTO resource_verdict (resource_id, stack_id, root_id, project_id, group_id, name, type, service,
    verdict, confirmed, since, physical_id, observed_at)
SELECT id, stack_id, stack_id, %(project)s, 0, 'r', 'Test::Plain', 'nova', 'MISSING', true, now(), 'p' || i,
    now()
FROM x
"""


def test_the_cost_of_drift_does_not_depend_on_the_stacks_beside_the_tree(
    world: World, watched: Watched, tree: Tree
):
    with world.database.connect() as db:
        db.execute(CROWD, {"project": watched.project})
        db.execute("ANALYZE stack, resource, resource_verdict")
    with world.database.borrow() as db:
        values = {"roots": [tree.root.id], "stacks": [tree.root.id]}
        work = explained(db, counts.BY_STACK, values)
    assert work.rows < 40, work.scans


def test_a_service_without_an_answer_makes_its_resources_unknown(api: Client, watched: Watched):
    watched.deviates("one")
    watched.change_group(failing_since=LATER, failing_reason="503")
    counts = api.get(f"{watched.stack.path}/observations")["counts"]
    assert (counts["UNKNOWN"], counts["MISSING"], counts["IN_SYNC"]) == (2, 1, 0)
    found = shown(api, watched, "two")
    assert (found["verdict"], found["reason"]) == ("UNKNOWN", "503")
    [service] = api.get(f"{root(watched.project)}/observations")["services"]
    assert service["unknown_reason"] == "503"


def test_a_refused_credential_makes_the_stack_unknown(world: World, api: Client, watched: Watched):
    fault = {"root_id": watched.stack.id, "project_id": watched.project, "reason": "no trust"}
    world.insert(ObservationFault, fault)
    assert shown(api, watched, "one")["verdict"] == "UNKNOWN"
    assert api.get(f"{watched.stack.path}/observations")["counts"]["UNKNOWN"] == 3


def test_a_resource_shows_its_verdict(api: Client, watched: Watched):
    watched.deviates("one", "MODIFIED")
    found = shown(api, watched, "one")
    assert (found["verdict"], found["differences"]) == ("MODIFIED", CHANGED)
    assert shown(api, watched, "two") == {
        "verdict": "IN_SYNC",
        "reason": "",
        "since": "2026-01-01T12:00:00Z",
        "observed_at": "2026-01-01T13:00:00Z",
    }


def test_a_resource_that_was_not_observed_yet_is_unknown(api: Client, watched: Watched):
    watched.change_group(observed_at=None)
    assert shown(api, watched, "one")["reason"] == "it was not observed yet"


def test_a_resource_without_a_provider_has_no_verdict(world: World, api: Client, project: str):
    stack = world.stack(project, "s")
    world.resource(stack, "one", physical_id="x")
    assert "observation" not in api.get(f"{stack.path}/resources/one")["resource"]


def test_a_loss_is_shown_with_its_service(api: Client, watched: Watched):
    watched.change_group(loss_since=LATER, lost=9, lost_of=10)
    [service] = api.get(f"{root(watched.project)}/observations")["services"]
    assert service["loss"] == {"since": "2026-01-01T13:00:00Z", "lost": 9, "of": 10}


def ended(watched: Watched, stack: Made, root: Made, number: int, **values: Any) -> None:
    """Insert a verdict that has ended."""
    row = {"fault_id": number, "resource_id": number, "stack_id": stack.id, "root_id": root.id}
    row |= {"project_id": watched.project, "name": f"h{number}", "type": "Test::Plain", "service": "nova"}
    row |= {"physical_id": "x", "first_seen_at": START, "last_seen_at": LATER, "verdict": "MISSING"}
    watched.world.insert(VerdictHistory, row | values)


def test_the_history_has_the_latest_verdict_first(world: World, api: Client, watched: Watched):
    for number, verdict in enumerate(("MISSING", "MODIFIED")):
        of_one = {"resource_id": watched.ids["one"], "name": "one", "verdict": verdict}
        ended(watched, watched.stack, watched.stack, number, **of_one)
    for place in (root(watched.project), watched.stack.path):
        found = api.get(f"{place}/observations/history")["history"]
        assert [row["verdict"] for row in found] == ["MODIFIED", "MISSING"]
        page = api.get(f"{place}/observations/history?limit=1")
        following = page["links"][0]["href"].partition("?")[2]
        [row] = api.get(f"{place}/observations/history?{following}")["history"]
        assert row["verdict"] == "MISSING"
    with world.database.engine.connect() as connection:
        ended_at = connection.execute(select(VerdictHistory.ended_at).limit(1)).scalar_one()
    assert shown(api, watched, "one")["since"] == ended_at.isoformat()[:19] + "Z"


def test_the_history_of_a_stack_includes_every_level_below_it(api: Client, watched: Watched, tree: Tree):
    ended(watched, tree.beside, tree.beside, 0)
    for number, stack in enumerate((tree.root, *tree.levels, tree.root), 1):
        ended(watched, stack, tree.root, number)

    def names(stack: Made, query: str = "") -> list[tuple[str, str]]:
        rows = api.get(f"{stack.path}/observations/history{query}")["history"]
        return [(row["stack_name"], row["resource_name"]) for row in rows]

    expected = [("s", "h5"), ("s-3", "h4"), ("s-2", "h3"), ("s-1", "h2"), ("s", "h1")]
    assert names(tree.root) == expected
    assert names(tree.root, "?limit=2") == expected[:2]
    assert names(tree.root, "?resource=h2&resource=h0") == [("s-1", "h2")]
    assert names(tree.levels[1]) == expected[1:3]
    assert names(tree.levels[1], "?limit=1") == expected[1:2]
    assert names(tree.levels[2]) == expected[1:2]
    assert names(tree.beside) == [("beside", "h0")]


def test_a_list_of_resources_has_the_verdicts_that_are_not_in_sync(api: Client, watched: Watched):
    watched.deviates("one")
    for query in ("", "?limit=3", "?nested_depth=1"):
        rows = api.get(f"{watched.stack.path}/resources{query}")["resources"]
        found = {row["resource_name"]: row.get("observation") for row in rows}
        assert found["one"]["verdict"] == "MISSING"
        assert found["one"]["reason"] == "why"
        assert found["two"] is found["three"] is None


def test_a_detailed_list_has_all_verdicts(api: Client, watched: Watched):
    def verdicts() -> dict[str, str]:
        rows = api.get(f"{watched.stack.path}/resources?with_detail=true")["resources"]
        return {row["resource_name"]: row["observation"]["verdict"] for row in rows}

    watched.deviates("one", "MODIFIED")
    assert verdicts() == {"one": "MODIFIED", "three": "IN_SYNC", "two": "IN_SYNC"}
    watched.change_group(failing_since=LATER, failing_reason="down")
    assert verdicts() == {"one": "MODIFIED", "three": "UNKNOWN", "two": "UNKNOWN"}


def test_a_stack_shows_the_pause_that_is_in_force(api: Client, watched: Watched):
    path = f"{root(watched.project)}/observation_policies"

    def pause() -> Any:
        return api.get(watched.stack.path)["stack"].get("observation_pause")

    def create(**values: Any) -> str:
        body = {"kind": "pause", "reason": "storage", "until": "2999-01-01T00:00:00Z", **values}
        return str(api.ask("POST", path, 201, json=body)["observation_policy"]["id"])

    create(starts_at="2998-01-01T00:00:00Z")
    assert pause() is None
    id_ = create(stack="s")
    assert (pause()["reason"], pause()["until"], pause()["id"]) == ("storage", "2999-01-01T00:00:00Z", id_)
    api.ask("DELETE", f"{path}/{id_}", 204)
    assert pause() is None
    create(reason="everything")
    assert pause()["reason"] == "everything"


def test_a_notification_is_accepted_whatever_objects_it_names(api: Client, watched: Watched) -> None:
    path = f"{root(watched.project)}/observations"
    for objects in (["one-id"], ["unknown"], ["one-id", "unknown"]):
        assert api.ask("POST", path, 202, json={"objects": objects}) is None


@pytest.mark.parametrize("body", [{}, {"objects": [7]}, {"objects": ["a"], "project": "other"}])
def test_a_malformed_notification_is_refused(api: Client, watched: Watched, body: Any) -> None:
    api.ask("POST", f"{root(watched.project)}/observations", 400, json=body)
