"""The parent resource as seen by a nested template: `resource_facade`."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from tests.scenarios.world import World, test_resource

URL = "file:///child.yaml"
KEYS = ("metadata", "deletion_policy", "update_policy")


def child_text(*keys: str) -> str:
    """A template that outputs the values of its facade, and creates a thing from each."""
    return orjson.dumps(
        {
            "heat_template_version": "2021-04-16",
            "resources": {key: value({"resource_facade": key}) for key in keys or KEYS},
            "outputs": {key: {"value": {"resource_facade": key}} for key in keys or KEYS},
        }
    ).decode()


def value(expression: Any) -> dict[str, Any]:
    return {"type": "OS::Heat::Value", "properties": {"value": expression}}


def nested(**facade: Any) -> dict[str, Any]:
    return {"type": URL, **facade}


def outputs(world: World) -> dict[str, Any]:
    """The outputs of the only child."""
    [row] = world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
    return world.outputs(row.name)


def traversals(world: World) -> list[int]:
    return [row.traversal for row in world.rows("SELECT traversal FROM stack WHERE owner_id IS NOT NULL")]


def test_a_child_reads_the_definition_of_its_resource(world: World) -> None:
    world.create(
        "s",
        {
            "child": nested(
                metadata={"of": {"get_attr": ["base", "output"]}},
                deletion_policy="retain",
                depends_on="base",
            ),
            "base": test_resource("below"),
        },
        files={URL: child_text()},
    )
    world.deliver_all()
    reported = {"metadata": {"of": "below"}, "deletion_policy": "Retain", "update_policy": {}}
    assert outputs(world) == reported


def test_missing_sections_of_a_resource_are_empty(world: World) -> None:
    world.create("s", {"child": nested()}, files={URL: child_text()})
    world.deliver_all()
    assert outputs(world) == {"metadata": {}, "deletion_policy": "Delete", "update_policy": {}}


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"metadata": {"a": 2}}, {"metadata"}),
        ({"deletion_policy": "Retain"}, {"deletion_policy"}),
    ],
)
def test_a_change_of_the_facade_updates_its_users_in_the_child(
    world: World, change: dict[str, Any], changed: set[str]
) -> None:
    uuid = world.create("s", {"child": nested(metadata={"a": 1})}, files={URL: child_text()})
    world.deliver_all()
    [child] = world.rows("SELECT uuid::text FROM stack WHERE owner_id IS NOT NULL")
    before = len(world.events(child.uuid))
    world.update("s", {"child": nested(**{"metadata": {"a": 1}, **change})}, files={URL: child_text()})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    reported = {event.split()[0] for event in world.events(child.uuid)[before:]}
    assert reported - {event for event in reported if event.startswith("s-child-")} == changed
    [key] = changed
    assert outputs(world)[key] == change[key]


def test_an_unchanged_facade_leaves_the_child_alone(world: World) -> None:
    resources = {"child": nested(metadata={"a": 1})}
    world.create("s", resources, files={URL: child_text()})
    world.deliver_all()
    world.update("s", {**resources, "other": test_resource()}, files={URL: child_text()})
    world.deliver_all()
    assert traversals(world) == [1]


def test_metadata_that_another_resource_moves_reach_the_child(world: World) -> None:
    def stack(value: str) -> dict[str, Any]:
        child = nested(metadata={"of": {"get_attr": ["base", "output"]}})
        return {"child": child, "base": test_resource(value)}

    world.create("s", stack("one"), files={URL: child_text()})
    world.deliver_all()
    world.update("s", stack("two"), files={URL: child_text()})
    world.deliver_all()
    assert outputs(world)["metadata"] == {"of": "two"}


def test_a_rollback_gives_the_child_its_old_facade(world: World) -> None:
    world.create("s", {"child": nested(metadata={"a": 1})}, files={URL: child_text()}, disable_rollback=False)
    world.deliver_all()
    bad = test_resource(fail=True, requires=["child"])
    world.update(
        "s",
        {"child": nested(metadata={"a": 2}), "bad": bad},
        files={URL: child_text()},
        disable_rollback=False,
    )
    world.deliver_all()
    assert outputs(world)["metadata"] == {"a": 1}
    [row] = world.rows("SELECT properties->'value' AS v FROM resource WHERE name = 'metadata'")
    assert row.v == {"a": 1}


def test_a_secret_facade_stays_sealed(world: World) -> None:
    world.create(
        "s",
        {"child": nested(metadata={"key": {"get_param": "key"}})},
        files={URL: child_text()},
        parameters={"key": {"type": "string", "hidden": True, "default": "s3cr3t"}},
    )
    world.deliver_all()
    assert outputs(world)["metadata"] == {"key": "s3cr3t"}
    for table in ("resource", "revision", "event"):
        query = f"SELECT t::text AS body FROM {table} t"
        if table == "revision":
            query += " WHERE stack_id IN (SELECT id FROM stack WHERE owner_id IS NOT NULL)"
        assert not [row for row in world.rows(query) if "s3cr3t" in row.body]


def test_a_child_that_is_updated_by_itself_keeps_its_facade(world: World) -> None:
    world.create("s", {"child": nested(metadata={"a": 1})}, files={URL: child_text()})
    world.deliver_all()
    [child] = world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
    world.update(child.name, {"more": value({"resource_facade": "metadata"})})
    world.deliver_all()
    [additional] = world.rows("SELECT properties->'value' AS v FROM resource WHERE name = 'more'")
    assert additional.v == {"a": 1}


def test_secret_parameters_stay_secret_when_the_child_is_patched(world: World) -> None:
    text = orjson.dumps(
        {
            "heat_template_version": "2021-04-16",
            "parameters": {"key": {"type": "string"}},
            "resources": {"r": test_resource({"get_param": "key"})},
        }
    ).decode()
    world.create(
        "s",
        {"child": nested(properties={"key": {"get_param": "key"}})},
        files={URL: text},
        parameters={"key": {"type": "string", "hidden": True, "default": "s3cr3t"}},
    )
    world.deliver_all()
    [child] = world.rows("SELECT name FROM stack WHERE owner_id IS NOT NULL")
    world.patch(child.name, tags="x")
    world.deliver_all()
    query = (
        "SELECT t::text AS body FROM revision t JOIN stack s ON s.id = t.stack_id "
        "WHERE s.owner_id IS NOT NULL"
    )
    texts = [row.body for row in world.rows(query)]
    assert len(texts) == 2
    assert not [text for text in texts if "s3cr3t" in text]


def test_a_root_stack_has_no_facade(world: World) -> None:
    with pytest.raises(InvalidTemplate, match="not a nested stack"):
        world.create("s", {"r": test_resource({"resource_facade": "metadata"})})


def test_a_parameter_cannot_take_the_place_of_a_facade(world: World) -> None:
    with pytest.raises(InvalidTemplate, match="reserved"):
        world.create("s", {}, parameters={"OS::facade::metadata": {"type": "json", "default": {}}})


def test_the_other_dialect_reads_it_too(world: World) -> None:
    text = orjson.dumps(
        {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Resources": {
                "r": {
                    "Type": "OS::Heat::TestResource",
                    "Properties": {"value": {"Fn::ResourceFacade": "DeletionPolicy"}},
                }
            },
        }
    ).decode()
    world.create("s", {"child": nested(deletion_policy="Retain")}, files={URL: text})
    world.deliver_all()
    [row] = world.rows("SELECT properties->>'value' AS v FROM resource WHERE name = 'r'")
    assert row.v == "Retain"
