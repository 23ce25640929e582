"""Every unfinished node reports its blocker; a stack reports its current work, and the allowed actions."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from orchestrator.engine.states import STACK_ACTIONS, STATUSES, accepted
from orchestrator.errors import NotFound, OrchestratorError
from orchestrator.operations.diagnosis.explain import Explanation, explain, summarize
from orchestrator.operations.stacks.actions import ACTIONS, QUEUEABLE
from orchestrator.store.stacks import blockers
from orchestrator.store.stacks import stacks as stored_stacks
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.plans import watched
from tests.scenarios.world import World, test_resource

RETRY_LIMIT = 5


def nodes(world: World, name: str = "s", limit: int = 100) -> dict[str, blockers.Unfinished]:
    page = blockers.unfinished(world.database, world.stack_row(name), None, limit)
    assert page.marker is None
    return {node.name: node for node in page.nodes}


def because(world: World, resource: str, name: str = "s") -> Explanation:
    return explain(nodes(world, name)[resource], world.stack_row(name), RETRY_LIMIT)


def summary(world: World, name: str = "s") -> Any:
    stack = world.stack_row(name)
    return summarize(stack, blockers.standing(world.database, stack), 3_600)


def at_rest(world: World, most: int = 50) -> None:
    """Deliver all messages, without letting time pass."""
    for _ in range(most):
        if not world.deliver():
            return
    raise AssertionError("it never comes to rest")


def test_a_stack_that_is_just_asked_for_waits_for_its_plan(world: World):
    world.create("s", {"a": cloud_thing()})
    assert because(world, "plan").word == "being-planned"
    assert summary(world).word == "planning"


def test_blocked_nodes_name_their_blockers_and_running_nodes_name_their_dependents(world: World):
    slow = cloud_thing(looks=99)
    world.create("s", {"a": slow, "b": slow, "c": cloud_thing(("a", "b")), "d": cloud_thing(("c",))})
    at_rest(world)
    result = nodes(world)
    assert set(list(result)[:2]) == {"a", "b"}
    assert [held.name for held in result["c"].waits_for] == ["a", "b"]
    assert because(world, "c").text == "waits for a, b"
    assert because(world, "d").text == "waits for c"
    assert result["a"].holds_up == ("c",)
    assert because(world, "a").word == "waiting-until"
    assert because(world, "a").text.startswith("CREATE is in progress since ")
    assert result["a"].due_at is not None
    assert summary(world).word == "working"
    assert summary(world).timeout_at is not None


def test_only_unfinished_nodes_are_listed(world: World):
    world.create("s", {"a": cloud_thing(), "b": cloud_thing(looks=99), "c": cloud_thing(("a", "b"))})
    at_rest(world)
    assert because(world, "c").text == "waits for b"


def test_an_update_waits_only_for_visited_requirements(world: World):
    steady = {"a": cloud_thing(type="Cloud::Server"), "b": cloud_thing(type="Cloud::Server")}
    world.create("s", {**steady, "c": cloud_thing(("a", "b"), type="Cloud::Server", value="1")})
    world.deliver_all()
    changed = cloud_thing(type="Cloud::Server", value="2", looks=99)
    world.update("s", {**steady, "b": changed, "c": cloud_thing(("a", "b"), type="Cloud::Server", value="2")})
    at_rest(world)
    assert because(world, "c").text == "waits for b"
    assert "a" not in nodes(world)


def test_a_wide_join_is_looked_through_to_the_names_behind_it(world: World):
    leaves = {f"leaf{n:04}": test_resource() for n in range(600)}
    world.create("s", {**leaves, "top": test_resource(requires=leaves)})
    world.deliver()
    blocker = blockers.of_resource(world.database, world.stack_row("s"), "top")
    assert blocker is not None
    (top,) = blocker.nodes
    assert (top.blocked_by, top.waits_for_count) == (2, 600)
    assert {held.name for held in top.waits_for} <= leaves.keys()
    assert len(top.waits_for) == blockers.NAMES
    blocker = blockers.of_resource(world.database, world.stack_row("s"), "leaf0007")
    assert blocker is not None
    assert blocker.nodes[0].holds_up == ("top",)


def test_a_delete_waits_for_its_dependents(world: World, cloud: Cloud):
    world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",)), "c": cloud_thing(("a",))})
    world.deliver_all()
    cloud.on["delete"] = lambda ctx: setattr(cloud, "busy", True)
    world.delete("s")
    at_rest(world)
    assert because(world, "a").text == "waits for b, c"
    assert nodes(world)["b"].kind == "cleanup"


def test_a_delete_finds_its_dependents_behind_join_nodes(world: World):
    upper = {f"n{number:04}": test_resource(requires=["a"]) for number in range(600)}
    world.create("s", {"a": test_resource(), **upper})
    world.deliver_all()
    world.delete("s")
    world.deliver()
    blocker = blockers.of_resource(world.database, world.stack_row("s"), "a")
    assert blocker is not None
    (removal,) = blocker.nodes
    assert removal.state == "blocked"
    assert {held.name for held in removal.waits_for} <= upper.keys()
    assert removal.waits_for_count == 600


def test_a_provider_without_an_answer_is_reported_with_its_error_and_the_attempts(world: World, cloud: Cloud):
    cloud.busy = True
    world.create("s", {"a": cloud_thing()})
    at_rest(world)
    reported = because(world, "a")
    assert reported.word == "unreachable"
    assert reported.text.startswith("1 attempt in a row got no answer: ProviderError: nobody answers. Next ")
    assert reported.text.endswith(", until the timeout of the stack")
    assert (nodes(world)["a"].unreachable_tries, nodes(world)["a"].retry_count) == (1, 0)


def test_an_object_in_error_reports_its_reason_time_and_count(world: World):
    world.create("s", {"a": cloud_thing(errors=1)})
    at_rest(world)
    reported = because(world, "a")
    assert reported.word == "retrying"
    assert reported.text.startswith("try 2 of 6 at 20")
    assert reported.text.endswith("the last attempt failed: ResourceInError: it broke")
    assert nodes(world)["a"].retry_count == 1


def test_running_operations_of_an_older_traversal_are_listed_with_their_blocked_nodes(
    world: World, cloud: Cloud
):
    world.create("s", {"a": cloud_thing(type="Cloud::Server")})
    reported: list[tuple[str, str]] = []

    def overtake(_ctx: Any) -> None:
        if reported:
            return
        reported.append(("", ""))
        world.update("s", {"a": cloud_thing(type="Cloud::Server", value="2")})
        while world.messages:
            world.deliver()
        page = blockers.unfinished(world.database, world.stack_row("s"), None, 10)
        reported[:] = [
            (str(node.traversal), explain(node, world.stack_row("s"), RETRY_LIMIT).word)
            for node in page.nodes
        ]

    cloud.on["create"] = overtake
    world.deliver_all()
    assert sorted(reported) == [("1", "holding"), ("2", "held")]


def test_paused_nodes_are_listed_before_blocked_nodes(world: World):
    world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    world.deliver()
    with world.database.engine.begin() as connection:
        pause = "state = 'paused', hooks = '{pre-create}', enqueued_at = NULL"
        connection.execute(text(f"UPDATE graph_node SET {pause} WHERE label = 'a'"))
    assert list(nodes(world)) == ["a", "b"]
    assert because(world, "a").text == "paused until the hook pre-create is cleared"


def test_a_resource_that_waits_for_a_signal_reports_it(world: World):
    world.create("s", {"a": test_resource()})
    world.deliver()
    with world.database.engine.begin() as connection:
        wait = "state = 'waiting', due_at = 'infinity', enqueued_at = NULL"
        connection.execute(text(f"UPDATE graph_node SET {wait} WHERE label = 'a'"))
    assert because(world, "a").word == "waiting-to-be-told"


@pytest.mark.parametrize("walk", [20_000, 3])
def test_all_pages_together_have_every_unfinished_node_once(
    world: World, walk: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(blockers, "SCAN_LIMIT", walk)
    things = {f"t{n}": cloud_thing(looks=99) for n in range(6)}
    ready = {f"r{n}": test_resource() for n in range(20)}
    above = {f"u{n}": cloud_thing((f"t{n % 6}",)) for n in range(10)}
    world.create("s", {**things, **ready, **above})
    at_rest(world)
    pages: list[list[str]] = []
    marker = None
    while True:
        page = blockers.unfinished(world.database, world.stack_row("s"), marker, 4)
        pages.append([node.name for node in page.nodes])
        marker = page.marker
        if marker is None:
            break
    names = [name for page in pages for name in page]
    assert sorted(names) == sorted([*things, *above])
    assert set(names[:6]) == set(things)
    assert max(map(len, pages)) == 4


def test_a_failure_is_reported_while_the_rest_drains(world: World):
    bad = cloud_thing(errors=9, final=True)
    bad["depends_on"] = ["x"]
    slow = cloud_thing(looks=3)
    uuid = world.create("s", {"a": slow, "b": bad, "c": cloud_thing(("a",)), "x": test_resource()})
    at_rest(world)
    stack = world.stack_row("s")
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    reason = "Stack CREATE is winding down: ResourceInError: resources.b: it broke"
    assert stack.status_reason == reason
    reported = summary(world)
    assert reported.word == "winding-down"
    assert reported.text == "CREATE is winding down after a failure: 1 operation still running"
    assert list(nodes(world)) == ["a"]
    given_up = blockers.of_resource(world.database, stack, "c")
    assert given_up is not None
    assert explain(given_up.nodes[0], stack, RETRY_LIMIT).word == "given-up"
    (cause,) = blockers.standing(world.database, stack).causes
    assert (cause.name, cause.reason) == ("b", "ResourceInError: resources.b: it broke")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_FAILED"
    assert (
        world.stack_row("s").status_reason == "Resource CREATE failed: ResourceInError: resources.b: it broke"
    )
    reported = summary(world)
    assert nodes(world) == {}
    assert reported.word == "failed"
    assert reported.text.startswith("no action in progress: CREATE_FAILED since 20")
    assert "because of 1 failure" in reported.text
    blocker = blockers.of_resource(world.database, stack, "b")
    assert blocker is not None
    assert explain(blocker.nodes[0], stack, RETRY_LIMIT).word == "failed"


def test_a_stack_at_rest_waits_for_nothing(world: World):
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    assert nodes(world) == {}
    assert summary(world).text.startswith("no action in progress: CREATE_COMPLETE since 20")
    world.delete("s")
    row = world.stack_row("s")
    world.deliver_all()
    gone = stored_stacks.find(world.database, "p1", str(row.uuid))
    assert gone is not None
    reported = summarize(gone, blockers.standing(world.database, gone), 3_600)
    assert (reported.word, reported.accepts) == ("gone", ())


def test_exactly_the_listed_actions_are_accepted(world: World):
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    put = text("UPDATE stack SET action = :a, status = :s, deleted_at = :d WHERE name = 's'")
    for action in STACK_ACTIONS:
        for status in STATUSES:
            if (action, status) == ("DELETE", "COMPLETE"):
                continue
            for operation in ("update", "delete", *ACTIONS, *sorted(QUEUEABLE)):
                with world.database.engine.begin() as connection:
                    connection.execute(put, {"a": action, "s": status, "d": None})
                reported = operation in accepted(action, status)
                assert is_accepted(world, operation) == reported, (operation, action, status)
    assert accepted("DELETE", "COMPLETE") == ()


def is_accepted(world: World, operation: str) -> bool:
    try:
        match operation:
            case "update":
                world.update("s", {"a": test_resource()})
            case "delete":
                world.delete("s")
            case _:
                world.act("s", operation)
    except NotFound:
        raise
    except OrchestratorError:
        return False
    return True


SYNTHETIC = """
WITH s AS (SELECT id, traversal FROM stack WHERE name = 's'), made AS (
    INSERT INTO resource (id, uuid, stack_id, name, type, action, status)
    OVERRIDING SYSTEM VALUE
    SELECT 1000000 + n, gen_random_uuid(), s.id, 'r' || n, 'OS::Heat::TestResource', 'INIT', 'COMPLETE'
    FROM s, generate_series(1, :many) AS n RETURNING id
), defined AS (
    INSERT INTO resource_definition (id, stack_id, name, digest, body, requires, valid_from)
    OVERRIDING SYSTEM VALUE
    SELECT 1000000 + n, s.id, 'r' || n, 'd', '{}', CASE WHEN n > 1 THEN ARRAY['r' || (n - 1)] ELSE '{}' END, 1
    FROM s, generate_series(1, :many) AS n RETURNING id
)
INSERT INTO graph_node (id, stack_id, root_id, traversal, kind, resource_id, definition_id, queue, label,
    needed_by, blocked_by, state, observed_ready, observed_ready_at, due_at)
OVERRIDING SYSTEM VALUE
SELECT 1000000 + n, s.id, s.id, s.traversal, 'update', 1000000 + n, 1000000 + n, 'check', 'r' || n,
    ARRAY[1000000 + n + 1], CASE WHEN n > :ready + 1 THEN 1 ELSE 0 END,
    CASE WHEN n <= :ready THEN 'ready' WHEN n = :ready + 1 THEN 'waiting' ELSE 'blocked' END, n <= :ready,
    CASE WHEN n <= :ready THEN now() END, CASE WHEN n = :ready + 1 THEN now() END
FROM s, generate_series(1, :many) AS n
"""


@pytest.mark.parametrize(("many", "ready"), [(100_000, 50_000), (30_000, 0), (30_000, 29_990)])
def test_the_cost_of_a_page_depends_on_its_length(world: World, many: int, ready: int):
    world.create("s", {"a": test_resource()})
    world.deliver_all()
    with world.database.engine.begin() as connection:
        connection.execute(text("ANALYZE graph_node"))  # statistics of a few rows, as they were before
        connection.execute(text(SYNTHETIC), {"many": many, "ready": ready})
        connection.execute(text("UPDATE stack SET status = 'IN_PROGRESS'"))
    stack = world.stack_row("s")
    with watched(world.database) as work:
        page = blockers.unfinished(world.database, stack, None, 20)
    first = page.nodes[0]
    assert (first.name, first.state) == (f"r{ready + 1}", "waiting")
    if ready < 29_990 or ready == 50_000:
        assert len(page.nodes) == 20
        assert [held.name for held in page.nodes[-1].waits_for] != []
    assert work.walked == []
    assert work.rows < blockers.SCAN_LIMIT + 2_000, max(work.statements)
    with watched(world.database) as work:
        blocker = blockers.of_resource(world.database, stack, f"r{ready + 2}")
        blockers.standing(world.database, stack)
    assert blocker is not None
    assert [held.name for held in blocker.nodes[0].waits_for] == [f"r{ready + 1}"]
    assert work.walked == []
    assert work.rows < 200, max(work.statements)


def test_a_suspend_waits_for_dependents(world: World):
    world.create("s", {"a": cloud_thing(), "b": cloud_thing(("a",)), "c": cloud_thing(("a",))})
    world.deliver_all()
    world.act("s", "suspend")
    world.deliver()
    assert because(world, "a").text == "waits for b, c"
    assert nodes(world)["b"].holds_up == ("a",)
