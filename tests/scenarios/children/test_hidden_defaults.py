"""Secret values in `parameter_defaults`: nested stacks receive them, and nobody reads them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.operations.adoption.export import shown_environment
from orchestrator.operations.context import Body
from orchestrator.operations.diagnosis.revision_diff import diff_revisions
from orchestrator.operations.preview.update import preview_update
from orchestrator.store.stacks import revisions
from tests.scenarios.world import World

KID = "file:///kid.yaml"
SECRET = "abcdefgh"
HIDDEN = {"pw": {"type": "string", "hidden": True}}
OPEN = {"pw": {"type": "string", "default": "of the template"}}


def kid(parameters: dict[str, Any], *, uses: bool = True) -> dict[str, str]:
    """A nested template with an output."""
    value = {"get_param": "pw"} if uses else "1"
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": parameters,
        "resources": {"v": {"type": "OS::Heat::TestResource", "properties": {"value": value}}},
        "outputs": {"o": {"value": {"get_attr": ["v", "output"]}}},
    }
    return {KID: orjson.dumps(template).decode()}


def resources() -> dict[str, Any]:
    attribute = {"get_attr": ["kid", "o"]}
    return {
        "kid": {"type": KID},
        "u": {"type": "OS::Heat::TestResource", "properties": {"value": attribute}},
    }


def request(root: dict[str, Any], nested: dict[str, Any], secret: str = SECRET) -> dict[str, Any]:
    environment = {"parameter_defaults": {"pw": secret}}
    return {"parameters": root, "files": kid(nested), "environment": environment}


def created(world: World, root: dict[str, Any], nested: dict[str, Any]) -> None:
    world.create("s", resources(), **request(root, nested))
    world.deliver_all()
    assert world.stack_row("s").status == "COMPLETE", world.stack_row("s").status_reason


def received(world: World) -> Any:
    """The value that the nested stack's resource was built with."""
    [row] = world.rows("SELECT properties, sealed FROM resource WHERE name = 'v'")
    if row.sealed is None:
        return row.properties["value"]
    return world.cipher.open(row.sealed)["properties"]["value"]


def changes(world: World, root: dict[str, Any], nested: dict[str, Any], **other: Any) -> Any:
    """The preview of an update to the same template."""
    template = {"heat_template_version": "2021-04-16", "parameters": root, "resources": resources()}
    sent = request(root, nested)
    del sent["parameters"]
    body = orjson.dumps({"template": template, **sent, **other})
    made = preview_update(world.context, world.stack_row("s"), Body(body), show_nested=True)
    return [item.expected for one in (made, *made.nested) for items in one.items.values() for item in items]


SECRETS = [(HIDDEN, HIDDEN), (HIDDEN, OPEN), (HIDDEN, {}), ({}, HIDDEN)]


@pytest.mark.parametrize(("root", "nested"), [*SECRETS, (OPEN, HIDDEN)])
def test_a_nested_stack_receives_the_value(world: World, root: dict[str, Any], nested: dict[str, Any]):
    world.create("s", resources(), **{**request(root, nested), "files": kid(nested, uses="pw" in nested)})
    world.deliver_all()
    assert world.stack_row("s").status == "COMPLETE", world.stack_row("s").status_reason
    if "pw" in nested:
        assert received(world) == SECRET


@pytest.mark.parametrize(("root", "nested"), SECRETS)
def test_no_column_has_it_in_the_open(world: World, root: dict[str, Any], nested: dict[str, Any]):
    world.create("s", resources(), **{**request(root, nested), "files": kid(nested, uses="pw" in nested)})
    world.deliver_all()
    for table in ("revision", "resource", "resource_definition", "event", "stack"):
        assert world.rows(f"SELECT 1 FROM {table} t WHERE t::text LIKE '%{SECRET}%'") == [], table
    revision = revisions.desired(world.database, world.stack_row("s"))
    assert revision is not None
    assert shown_environment(revision)["parameter_defaults"] == {"pw": "******"}


@pytest.mark.parametrize("nested", [HIDDEN, OPEN])
def test_a_preview_of_an_unchanged_stack_is_empty(world: World, nested: dict[str, Any]):
    created(world, HIDDEN, nested)
    assert changes(world, HIDDEN, nested) == []


def test_a_preview_shows_a_changed_value_masked(world: World):
    created(world, HIDDEN, HIDDEN)
    environment = {"parameter_defaults": {"pw": "othersecret"}}
    found = changes(world, HIDDEN, HIDDEN, environment=environment)
    assert {item.name for item in found} >= {"kid", "v"}
    assert "othersecret" not in repr(found)
    assert SECRET not in repr(found)


def test_a_patch_keeps_the_value(world: World):
    created(world, {**HIDDEN, "n": {"type": "string", "default": "a"}}, HIDDEN)
    world.patch("s", parameters={"n": "b"})
    world.deliver_all()
    assert world.stack_row("s").status == "COMPLETE"
    assert received(world) == SECRET


def test_a_patch_of_a_nested_stack_keeps_the_value(world: World):
    created(world, HIDDEN, HIDDEN)
    [child] = world.rows("SELECT uuid::text AS uuid FROM stack WHERE owner_id IS NOT NULL")
    world.patch(child.uuid)
    world.deliver_all()
    assert received(world) == SECRET


def test_a_changed_value_reaches_the_nested_stack_and_a_rollback_brings_the_old_one_back(world: World):
    created(world, HIDDEN, HIDDEN)
    world.update("s", resources(), **request(HIDDEN, HIDDEN, "othersecret"))
    world.deliver_all()
    assert received(world) == "othersecret"
    world.update("s", resources(), **request(HIDDEN, HIDDEN))
    world.deliver_all()
    assert received(world) == SECRET


def test_a_comparison_of_revisions_shows_that_it_changed_but_not_how(world: World):
    created(world, {}, HIDDEN)
    world.update("s", resources(), **request({}, HIDDEN, "othersecret"))
    world.deliver_all()
    result = diff_revisions(world.context, world.stack_row("s"), 1, 2)
    assert "pw" in repr(result)
    assert SECRET not in repr(result)
    assert "othersecret" not in repr(result)
