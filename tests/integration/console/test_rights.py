"""Pages for callers whose role permits nothing."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import re

from flask import Flask

from api.console.app import BLUEPRINTS, PUBLIC
from orchestrator.security.tokens import create_token
from tests.integration.api_world import World, project, world  # noqa: F401 - fixtures
from tests.integration.console.console_world import NAVIGATION, Browser


def test_a_role_without_rights_sees_no_page(world: World, project: str) -> None:
    """Every page in the catalogue of routes."""
    catalogue, stack = Flask("routes"), world.stack(project, "mine")
    browser = Browser(world.client(auth="token"))
    for blueprint in BLUEPRINTS:
        catalogue.register_blueprint(blueprint)
    visitor = create_token(world.database, project, "v", None, ["visitor"])
    browser.submit("/ui/sign-in", {"token": visitor})
    values = {
        "project": project,
        "name": stack.name,
        "stack_id": str(stack.uuid),
        "resource": "r",
        "action": "delete",
        "number": "1",
        "before": "1",
        "after": "1",
    }
    shown = {}
    for rule in catalogue.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.endpoint not in PUBLIC and rule.endpoint != "static":
            path = "/ui" + re.sub(r"<(?:\w+:)?(\w+)>", lambda found: values.get(found[1], "1"), rule.rule)
            answer = browser.http.get(path, headers=NAVIGATION)
            if answer.status_code < 300:
                shown[rule.endpoint] = answer.status_code
    assert shown == {}
