"""The pages of stacks: contents, bounds, secrets and markup."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from orchestrator.security.tokens import create_token
from orchestrator.store.tables.events import Progress
from orchestrator.store.tables.graph import Failure, GraphNode
from orchestrator.store.tables.observation import ResourceVerdict, VerdictHistory
from orchestrator.store.traversals.traversals import RevisionChanged
from tests.integration.api_world import START, Made, World, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import Browser, links, words

MARKUP = "<script>alert(1)</script>"
TABS = ("", "/resources", "/events", "/failures", "/drift", "/outputs")
PICTURES = ("/field", "/map", "/history", "/history?step=0", "/revisions")


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world.client())


def page_of(stack: Made, rest: str = "") -> str:
    return f"/ui{stack.path}{rest}"


def test_the_list_shows_stacks_by_page_with_search_tags_and_nested_stacks(
    browser: Browser, world: World, project: str
) -> None:
    for number in range(30):
        world.stack(project, f"web-{number:02}", age=number, tags=["blue"] if number % 2 else ["green"])
    top = world.stack(project, "TOP", age=99)
    world.stack(
        project, "below", owner_id=top.id, root_id=top.id, depth=1, parent_resource="x", parent_resource_id=1
    )
    first = browser.text(f"/ui/{project}/stacks")
    assert "31 stacks" in words(first)
    assert "below" in words(first)
    [following] = {link for link in links(first) if "marker=" in link}
    assert "web-00" in words(browser.text(following.replace("&amp;", "&")))
    assert "web-00" not in words(first)
    assert "TOP" in words(browser.text(f"/ui/{project}/stacks?search=top"))
    assert "1 stack" in words(browser.text(f"/ui/{project}/stacks?search=EB-07&tags=blue"))
    assert "No stack matches" in browser.text(f"/ui/{project}/stacks?search=%25")


def test_the_list_shows_the_progress_of_stacks_in_progress(
    browser: Browser, world: World, project: str
) -> None:
    for total in (2, 4):
        stack = world.stack(project, f"busy-{total}", status="IN_PROGRESS", traversal=1)
        for number in range(total):
            state = {"state": "queued", "observed_ready": False, "observed_ready_at": None}
            if not number:
                state = {"state": "ready", "observed_ready": True, "observed_ready_at": START}
            visit = {"stack_id": stack.id, "root_id": stack.id, "traversal": 1, "kind": "update"}
            resource = world.resource(stack, f"r{number}")
            world.insert(
                GraphNode, {**visit, **state, "resource_id": resource, "queue": "check", "label": "r"}
            )
    page = words(browser.text(f"/ui/{project}/stacks"))
    assert "50 %" in page
    assert "25 %" in page


def test_the_batches_of_a_group_are_shown_with_the_progress(
    browser: Browser, world: World, project: str
) -> None:
    stack = world.stack(project, "rolling", status="IN_PROGRESS", traversal=1)
    rollout = {"resource_name": "workers", "stack_name": "rolling-workers", "stack_id": str(stack.uuid)}
    rollout |= {"batch": 3, "batches": 10, "updated": 60, "total": 200}
    counts = {"ready": 60, "waiting": 20, "blocked": 121}
    count = {"stack_id": stack.id, "traversal": 1, "counts": counts, "seconds": 1.0, "rollouts": [rollout]}
    world.insert(Progress, count)
    listed = words(browser.text(f"/ui/{project}/stacks"))
    assert "29 %" in listed
    assert "batch 3 of 10" in listed
    page = words(browser.text(f"/ui/{project}/stacks/rolling/{stack.uuid}"))
    assert "60 of 201 resources are ready, 20 at work, 121 waiting" in page
    assert "workers : batch 3 of 10, 60 of 200 updated" in page.replace("workers:", "workers :")


def test_the_list_shows_the_drift_of_every_nested_level(browser: Browser, world: World, project: str) -> None:
    stack = top = world.stack(project, "top")
    for level in (1, 2, 3):
        owner, place = stack, {"root_id": top.id, "depth": level, "parent_resource": "x"}
        parent = world.resource(owner, "x")
        stack = world.stack(project, f"level-{level}", owner_id=owner.id, parent_resource_id=parent, **place)
    for name in "ab":
        found = {"resource_id": world.resource(stack, name, physical_id=name), "physical_id": name}
        where = {"stack_id": stack.id, "root_id": top.id, "project_id": project, "group_id": 0, "name": name}
        what = {"type": "Test::Plain", "service": "nova", "verdict": "MISSING", "confirmed": True}
        world.insert(ResourceVerdict, {**found, **where, **what, "since": START, "observed_at": START})
    past = {key: value for key, value in where.items() if key != "group_id"}
    past |= {"fault_id": 1, "verdict": "FAILED", "reason": "broken", "type": "Old::Type", "service": "nova"}
    world.insert(VerdictHistory, {**found, **past, "first_seen_at": START, "last_seen_at": START})
    page = browser.text(f"/ui/{project}/stacks")
    lines = [words(line) for line in page.split("<tr")[1:]]
    for name in ("top", "level-1"):
        [line] = [line for line in lines if f"{name} " in line]
        assert "≠ 2 " in line
    drift = words(browser.text(page_of(top, "/drift")))
    assert "2 MISSING" in drift
    assert "Old::Type in level-3 FAILED broken" in drift
    assert "2 MISSING" in words(browser.text(page_of(stack, "/drift")))


@pytest.mark.parametrize("rest", [*TABS, *PICTURES])
def test_every_page_of_a_stack_has_its_status_in_the_heading(
    browser: Browser, world: World, project: str, rest: str
) -> None:
    stack = world.stack(project, "headed", status="FAILED")
    world.resource(stack, "one")
    [heading] = re.findall(r"<h1>.*?</h1>", browser.text(page_of(stack, rest)), re.DOTALL)
    assert "create failed" in words(heading)


def test_every_page_of_a_stack_opens_and_shows_markup_as_text(
    browser: Browser, world: World, project: str
) -> None:
    stack = world.stack(project, "page", status="FAILED", status_reason=MARKUP, tags=[MARKUP])
    world.resource(
        stack, "one", status="FAILED", action="CREATE", status_reason=MARKUP, attributes={"open": MARKUP}
    )
    world.resource(stack, "two", ["one"])
    world.event(stack, "one", reason=MARKUP, properties={"p": MARKUP})
    world.insert(
        Failure,
        {"stack_id": stack.id, "traversal": 0, "resource_name": "one", "reason": MARKUP, "action": "CREATE"},
    )
    for rest in (*TABS, "/resources/one", "/resources/two?levels=2", "/actions/update", "/actions/delete"):
        page = browser.text(page_of(stack, rest))
        assert MARKUP not in page, rest
    assert "one" in words(browser.text(page_of(stack, "/resources/two")))
    assert "awaited" in words(browser.text(page_of(stack, "/resources/two")))


def test_a_root_cause_three_stacks_below_is_two_clicks_away(
    browser: Browser, world: World, project: str
) -> None:
    stacks = [world.stack(project, "level-0", status="FAILED", traversal=1)]
    for depth, name in enumerate(("a", "b", "c"), 1):
        above = stacks[-1]
        resource = world.resource(above, name, status="FAILED", action="CREATE")
        stacks.append(
            world.stack(
                project,
                f"level-{depth}",
                owner_id=above.id,
                root_id=stacks[0].id,
                depth=depth,
                parent_resource=name,
                parent_resource_id=resource,
                status="FAILED",
                traversal=1,
            )
        )
    world.resource(stacks[3], "disk", status="FAILED", action="CREATE")
    failure(world, stacks[3], "disk", "No valid host was found")
    for above, name, below in zip(stacks[2::-1], "cba", stacks[:0:-1], strict=True):
        failure(world, above, name, f"resources.{name}: see below", physical_id=str(below.uuid))
    start = browser.text(page_of(stacks[0]))
    [first] = {link for link in links(start) if link.endswith("/failures")}
    second = browser.text(first)
    assert "a › b › c › disk" in words(second)
    assert "No valid host was found" in words(second)


def failure(world: World, stack: Made, name: str, reason: str, **values: str) -> None:
    world.insert(
        Failure,
        {
            "stack_id": stack.id,
            "traversal": 1,
            "resource_name": name,
            "reason": reason,
            "action": "CREATE",
            **values,
        },
    )


def test_long_values_are_folded(browser: Browser, world: World, project: str) -> None:
    stack = world.stack(project, "long")
    rules = [{"direction": "ingress", "port": number} for number in range(20)]
    world.resource(stack, "one", action="CREATE", status="COMPLETE", attributes={"open": rules})
    page = browser.text(page_of(stack, "/resources/one"))
    assert "<details><summary>" in page.split("Attributes")[1]
    assert "characters" in words(page)
    assert "ingress" in page


def test_secrets_are_masked_as_in_the_api(browser: Browser, world: World, project: str) -> None:
    stack = world.stack(project, "page")
    world.resource(stack, "one", attributes={"open": "plain", "shut": "hidden-value"})
    page = browser.text(page_of(stack, "/resources/one"))
    assert "plain" in page
    assert "hidden-value" not in page


@pytest.mark.parametrize(
    "rest", ["/", "/stacks", "/create", "/stacks/x", *(f"/stacks/x/y{tab}" for tab in TABS)]
)
def test_unknown_stacks_and_addresses_have_a_page(browser: Browser, project: str, rest: str) -> None:
    status = 200 if rest in {"/", "/stacks", "/create"} else 404
    page = browser.text(f"/ui/{project}{rest}", status)
    assert "</main>" in page


def test_a_deleted_stack_is_shown_without_actions(browser: Browser, world: World, project: str) -> None:
    from tests.integration.api_world import START

    stack = world.stack(project, "gone", action="DELETE", deleted_at=START)
    page = browser.text(page_of(stack))
    assert "The stack is deleted." in page
    assert "/actions/" not in page


def test_actions_beyond_the_role_are_not_offered(world: World, project: str) -> None:
    browser = Browser(world.client(auth="token"))
    stack = world.stack(project, "mine")
    browser.submit("/ui/sign-in", {"token": create_token(world.database, project, "r", None, ["reader"])})
    page = browser.text(page_of(stack))
    assert "Your role does not permit it." in page
    assert "/actions/delete" not in page
    assert "/create" not in browser.text(f"/ui/{project}/stacks")
    answer = browser.submit(page_of(stack, "/actions/delete"), {"intent": "start"}, 403)
    assert "not" in words(answer.text)


def test_pages_of_foreign_stacks_do_not_exist(world: World, project: str) -> None:
    browser = Browser(world.client(auth="token"))
    foreign = world.stack(world.project(), "theirs")
    browser.submit("/ui/sign-in", {"token": create_token(world.database, project, "r", None, ["member"])})
    mine = f"/ui/{project}/stacks/{foreign.name}/{foreign.uuid}"
    for rest in (*TABS, "/resources/one", "/events/stream", "/actions/update"):
        browser.open(page_of(foreign, rest), 404)
        browser.open(mine + rest, 404)


def test_a_form_creates_a_stack_and_a_rejected_form_keeps_its_texts(
    browser: Browser, world: World, project: str
) -> None:
    values = {"stack_name": "new", "template": "a: 1\n", "parameters": "x=1", "tags": "t", "intent": "create"}
    world.neighbour.refuses = None
    response = browser.submit(f"/ui/{project}/create", values)
    assert "/stacks/new/" in (response.location or "")
    rejected = browser.submit(f"/ui/{project}/create", values | {"parameters": "oops"}, 400).text
    assert "Parameters, line 1" in rejected
    assert "oops" in rejected
    assert "a: 1" in rejected


def test_a_form_that_is_too_large_says_what_to_do(browser: Browser, project: str) -> None:
    values: dict[str, Any] = {"stack_name": "new", "template": "x" * (17 << 20), "intent": "create"}
    assert "command line" in browser.submit(f"/ui/{project}/create", values, 413).text


def test_actions_are_sent_with_the_form_of_the_own_page_only(
    browser: Browser, world: World, project: str
) -> None:
    stack = world.stack(project, "mine")
    browser.submit(page_of(stack, "/actions/suspend"), {"intent": "start"})
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    browser.submit(page_of(stack, "/actions/delete"), {"intent": "start"}, 403, headers=foreign)
    browser.submit(page_of(stack, "/actions/delete"), {"intent": "start"})
    browser.open(page_of(stack, "/actions/unknown"), 404)


def test_an_update_of_another_revision_than_the_forms_is_refused(
    browser: Browser, world: World, project: str
) -> None:
    stack = world.stack(project, "mine")
    place, values = page_of(stack, "/actions/update"), {"template": "a: 1", "intent": "update"}
    world.neighbour.error = RevisionChanged("mine", 1, 7)
    page = browser.submit(place, values | {"revision": "7"}, 409).text
    assert "It has revision 1, the form began with 7" in words(page).replace("it has", "It has")
    assert "a: 1" in page
    assert '<input type="hidden" name="revision" value="1">' in page
    world.neighbour.error = None
    browser.submit(place, values | {"revision": "1"})
    assert orjson.loads(world.neighbour.bodies[-1])["expected_revision"] == 1
    assert "a: 1" in browser.submit(place, values | {"revision": "x"}, 400).text


def test_a_revision_shows_its_template_and_offers_a_rollback(
    browser: Browser, world: World, project: str
) -> None:
    stack = world.stack(project, "mine")
    assert browser.open(page_of(stack, "/template"), 303).location == page_of(stack, "/revisions/1")
    page = browser.text(page_of(stack, "/revisions/1"))
    assert "2021-04-16" in page
    assert "******" in page  # the hidden parameter
    assert "1" in words(browser.text(page_of(stack, "/revisions")))
    assert f'href="{page_of(stack, "/template")}" aria-current="page"' in page
    browser.submit(page_of(stack, "/revisions/1/rollback"), {})
    browser.open(page_of(stack, "/revisions/9"), 404)
    browser.open(page_of(stack, "/revisions?marker=x"), 400)
    browser.open(page_of(stack, "/diff?before=1&after=1%00"), 400)


def test_the_overview_groups_failures_by_cause(browser: Browser, world: World, project: str) -> None:
    for number in range(3):
        stack = world.stack(project, f"full-{number}", status="FAILED", traversal=1)
        failure(world, stack, "server", "Quota exceeded for instances" if number else MARKUP)
    world.stack(project, "slow", status="IN_PROGRESS")
    page = browser.text(f"/ui/{project}/")
    assert "quota : 2 failures in 2 stacks" in words(page)
    assert "slow" in words(page)
    assert "Workers" in page
    assert MARKUP not in page


def test_the_workers_are_for_operators(world: World, project: str) -> None:
    api = world.client(auth="token")
    headers = {"X-Auth-Token": create_token(world.database, project, "r", None, ["member"])}
    assert api.get(f"/{project}/overview", headers=headers)["overview"]["workers"] is None
    headers = {"X-Auth-Token": create_token(world.database, project, "a", None, ["admin"])}
    assert api.get(f"/{project}/overview", headers=headers)["overview"]["workers"] is not None


def test_the_form_of_an_update_has_no_masked_values(browser: Browser, world: World, project: str) -> None:
    parameters = {"password": "secret-value", "size": 3}
    stack = world.stack(project, "mine", revision={"environment": {"parameters": parameters}})
    page = browser.text(page_of(stack, "/actions/update"))
    assert "******" not in page
    assert "secret-value" not in page
    assert "&#34;size&#34;: 3" in page


def test_events_of_nested_stacks_have_the_name_of_their_stack(
    browser: Browser, world: World, project: str
) -> None:
    root = world.stack(project, "outer")
    child = world.stack(project, "inner", owner_id=root.id, root_id=root.id, depth=1, parent_resource="x")
    world.event(root, "a")
    world.event(child, "b")
    world.event(child, "inner", physical_id=str(child.uuid))
    page = words(browser.text(page_of(root, "/events")))
    assert "Time Status Resource Reason" in page  # a phone shows two columns
    assert page.count("in inner") == 1
    assert "b in inner" in page
    assert "in inner" not in words(browser.text(page_of(child, "/events")))


def test_the_summary_has_states_in_words(browser: Browser, world: World, project: str) -> None:
    page = words(browser.text(page_of(world.stack(project, "done"))))
    assert "create complete" in page
    assert "CREATE_COMPLETE" not in page
