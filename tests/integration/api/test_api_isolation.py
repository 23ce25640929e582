"""Isolation of projects: every route, requested with the ids of another project."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from collections.abc import Iterator

import pytest
from werkzeug.routing import Rule

from api.request_steps import PUBLIC, UNVERSIONED
from orchestrator.security.tokens import create_token
from tests.integration.api_world import Client, Made, World, root, world  # noqa: F401 - fixtures

# Identical for every caller: data of the installation, not of a project.
SHARED = {
    "catalogue.type_index",
    "catalogue.type_schema",
    "catalogue.type_template",
    "catalogue.build_info",
    "catalogue.services",
    "templates.version_index",
    "templates.function_index",
    "templates.validate",
}
OWN = {  # answers of the caller's own project
    "stacks.index",
    "stacks.detail",
    "stacks.create",
    "previews.create",
    "software_configs.index",
    "software_deployments.index",
    "software_deployments.metadata",
    "events.of_project",
    "events.stream_of_project",
    "observations.history",
    "overview.show",
    "observations.index",
    "webhooks.index",
    "observation_policies.index",
    "repairs.index",
}
REFUSED = {
    "webhooks.create",
    "observation_policies.create",
    "observations.notify",
    "observation_policies.effective",
    "software_configs.create",
    "software_deployments.create",
}  # without a body, before anything is read
WORKING = {  # these routes act on the request; their own tests cover them
    "stacks.act",
    "snapshots.create",
    "snapshots.show",
    "snapshots.delete",
    "snapshots.restore",
    "adoption.export",
    "adoption.abandon",
    "catalogue.services",
    "software_configs.show",
    "software_configs.delete",
    "software_deployments.show",
    "software_deployments.update",
    "software_deployments.delete",
    "events.stream",
    "events.stream_of_project",
    "webhooks.show",
    "webhooks.delete",
    "webhooks.test",
    "webhooks.rearm",
    "observation_policies.show",
    "repairs.show",
    "repairs.approve",
    "repairs.decline",
    "observation_policies.delete",
}
OPEN = UNVERSIONED | PUBLIC
# Signed requests: tests/scenarios/keystone/test_signal_access.py, test_access_keys.py.
OPEN |= {"cfn.wait_condition", "cfn.signal", "cfn.query"}


@pytest.fixture(scope="module")
def theirs(world: World) -> Made:
    """Another project's stack with something of everything."""
    stack = world.stack("their project", "their-stack", revision={"traversal": 1})
    world.resource(stack, "thing")
    world.event(stack, "thing")
    return stack


def requests(api: Client, theirs: Made, project: str) -> Iterator[tuple[Rule, str, str]]:
    """Yield every route and method, filled in with their ids, under a project's path."""
    values = {
        "project_id": project,
        "stack_name": theirs.name,
        "stack_id": str(theirs.uuid),
        "resource_name": "thing",
        "event_id": str(theirs.uuid),
        "key": "it",
        "snapshot_id": str(theirs.uuid),
        "webhook_id": str(theirs.uuid),
        "repair_id": str(theirs.uuid),
        "rule_id": str(theirs.uuid),
        "config_id": str(theirs.uuid),
        "deployment_id": str(theirs.uuid),
        "server_id": str(theirs.uuid),
        "number": 1,
        "before": 1,
        "after": 1,
        "rest": f"openstack:heat::{project}:stacks/{theirs.name}/{theirs.uuid}",
        "type_name": "Test::Plain",
        "version": "heat_template_version.2021-04-16",
    }
    app = api.http.application
    adapter = app.url_map.bind("localhost")
    for rule in app.url_map.iter_rules():
        assert rule.arguments <= values.keys(), f"{rule} has an argument this test does not know"
        path = adapter.build(rule.endpoint, {name: values[name] for name in rule.arguments})
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            yield rule, method, path


def test_a_foreign_token_gets_404_under_its_own_path(world: World, theirs: Made) -> None:
    api = world.client(auth="token")
    headers = {"X-Auth-Token": create_token(world.database, "my project", "me")}
    for rule, method, path in requests(api, theirs, "my project"):
        if rule.endpoint not in OPEN | SHARED | OWN | REFUSED:
            api.ask(method, path, 404, headers=headers)
    assert api.get(f"{root('my project')}/stacks?show_nested=true&show_deleted=true", headers=headers) == {
        "stacks": []
    }


def test_without_authentication_a_project_sees_only_itself(world: World, theirs: Made) -> None:
    api = world.client()
    for rule, method, path in requests(api, theirs, "my project"):
        if rule.endpoint not in OPEN | SHARED | OWN | REFUSED:
            api.ask(method, path, 404)
    assert api.get(f"{root('my project')}/stacks") == {"stacks": []}


def test_the_owner_reaches_every_route(world: World, theirs: Made) -> None:
    """So that the refusals above are for being foreign, and not for a wrong path."""
    api = world.client()
    for rule, method, path in requests(api, theirs, "their project"):
        if rule.endpoint in OPEN | {"events.show"} | WORKING | REFUSED:
            continue
        response = api.http.open(api.base + path, method=method)
        assert response.status_code in {200, 201, 202, 204, 302}, (rule, method, path, response.text)


def test_filters_do_not_reach_into_another_project(world: World, theirs: Made) -> None:
    api = world.client()
    for query in (f"id={theirs.uuid}", "name=their-stack", "tenant=their project", f"marker={theirs.uuid}"):
        assert api.names(f"{root('my project')}/stacks?{query}") == []
