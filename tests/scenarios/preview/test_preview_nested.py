"""The preview of changes inside nested stacks."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.preview.create import CreatePreview, PlannedResource, preview_create
from orchestrator.operations.preview.update import UpdatePreview, preview_update
from tests.scenarios.children.test_nested_stacks import URL, child_text, nested
from tests.scenarios.world import World, test_resource

OUTER = "file:///outer.yaml"


def outer_text(size: Any = "large") -> str:
    """A template with a nested stack in it."""
    resources = {"inner": nested(size)}
    return orjson.dumps({"heat_template_version": "2021-04-16", "resources": resources}).decode()


def created(world: World, resources: dict[str, Any], **request: Any) -> CreatePreview:
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    template |= {key: request.pop(key) for key in ("parameters",) if key in request}
    body = orjson.dumps({"stack_name": "s", "template": template, **request})
    return preview_create(world.context, Body(body))


def resource_named(resources: Any, name: str) -> PlannedResource:
    [result] = [resource for resource in resources if resource.name == name]
    return result


def test_a_create_preview_shows_the_contents_of_nested_stacks(world: World) -> None:
    files = {URL: child_text(), OUTER: outer_text()}
    result = created(
        world, {"outer": {"type": OUTER}, "after": test_resource(requires=["outer"])}, files=files
    )
    outer = resource_named(result.resources, "outer").nested
    assert outer is not None
    assert outer.name == "s-outer"
    inner = resource_named(outer.resources, "inner").nested
    assert inner is not None
    assert inner.name == "s-outer-inner"
    assert [resource.name for resource in inner.resources] == ["first", "second"]
    assert resource_named(inner.resources, "second").properties["value"] == "large"
    assert resource_named(inner.resources, "first").required_by == ["second"]


def test_unknown_values_are_null_inside_nested_stacks_and_not_the_default(world: World) -> None:
    resources = {"a": test_resource(), "child": nested({"get_attr": ["a", "output"]})}
    result = created(world, resources, files={URL: child_text()})
    child = resource_named(result.resources, "child").nested
    assert child is not None
    assert (
        resource_named(child.resources, "second").properties["value"] == "test_string"
    )  # the property's own


def test_secrets_are_masked_inside_nested_stacks(world: World) -> None:
    hidden = {"size": {"type": "string", "hidden": True, "default": "s3cr3t"}}
    result = created(
        world, {"child": nested({"get_param": "size"})}, files={URL: child_text()}, parameters=hidden
    )
    child = resource_named(result.resources, "child").nested
    assert child is not None
    assert resource_named(child.resources, "second").properties["value"] == "******"
    assert "s3cr3t" not in repr(result)


def test_only_the_secret_parts_of_a_value_are_masked(world: World) -> None:
    hidden = {"p": {"type": "string", "hidden": True, "default": "s3cr3t"}}
    secret = {"get_param": "p"}
    value = {"list": ["open", secret], "joined": {"list_join": ["-", ["open", secret]]}, "plain": 1}
    resource = {
        "type": "OS::Heat::Value",
        "properties": {"type": "json", "value": value},
        "metadata": {"m": secret, "n": 2},
    }
    result = resource_named(created(world, {"v": resource}, parameters=hidden).resources, "v")
    assert result.properties["value"] == {"list": ["open", "******"], "joined": "******", "plain": 1}
    assert result.metadata == {"m": "******", "n": 2}


def test_a_translated_secret_masks_only_its_own_property(world: World) -> None:
    hidden = {"p": {"type": "string", "hidden": True, "default": "s3cr3t"}}
    resource = {"type": "OS::Heat::RandomString", "properties": {"length": 7, "salt": {"get_param": "p"}}}
    result = resource_named(created(world, {"r": resource}, parameters=hidden).resources, "r")
    assert (result.properties["length"], result.properties["salt"]) == (7, "******")


def test_a_create_preview_of_nested_stacks_makes_nothing(world: World) -> None:
    created(world, {"child": nested()}, files={URL: child_text()})
    assert world.rows("SELECT 1 FROM stack") == []


def updated(world: World, resources: dict[str, Any], **request: Any) -> UpdatePreview:
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    body = orjson.dumps({"template": template, **request})
    return preview_update(world.context, world.stack_row("s"), Body(body), show_nested=True)


def lists(preview: UpdatePreview) -> dict[str, dict[str, list[str]]]:
    """The forecast: for each stack, by the resource that it belongs to, names by action."""
    result: dict[str, dict[str, list[str]]] = {}
    for item in (preview, *preview.nested):
        turns = {turn: sorted(i.expected.name for i in items) for turn, items in item.items.items()}
        turns["unchanged"] = sorted([*item.unchanged, *turns.get("unchanged", [])])
        result[item.parent or "root"] = {turn: names for turn, names in turns.items() if names}
    return result


def rested(world: World, resources: dict[str, Any], **request: Any) -> None:
    world.create("s", resources, **request)
    world.deliver_all()


def test_the_same_template_changes_nothing_anywhere(world: World) -> None:
    files = {URL: child_text(), OUTER: outer_text()}
    rested(world, {"outer": {"type": OUTER}}, files=files)
    assert lists(updated(world, {"outer": {"type": OUTER}}, files=files)) == {
        "root": {"unchanged": ["outer"]},
        "outer": {"unchanged": ["inner"]},
        "inner": {"unchanged": ["first", "second"]},
    }


def test_a_changed_property_is_followed_into_the_child(world: World) -> None:
    rested(world, {"child": nested("a")}, files={URL: child_text()})
    preview = updated(world, {"child": nested("b")}, files={URL: child_text()})
    assert lists(preview) == {
        "root": {"updated": ["child"]},
        "child": {"updated": ["second"], "unchanged": ["first"]},
    }
    [second] = preview.nested[0].items["updated"]
    assert second.expected.changed == {"value": ("a", "b")}
    assert second.expected.certain


def test_a_changed_file_is_an_update_all_the_way_down(world: World) -> None:
    rested(world, {"outer": {"type": OUTER}}, files={URL: child_text(), OUTER: outer_text()})
    preview = updated(world, {"outer": {"type": OUTER}}, files={URL: child_text("w"), OUTER: outer_text()})
    assert lists(preview) == {
        "root": {"updated": ["outer"]},
        "outer": {"updated": ["inner"]},
        "inner": {"updated": ["first"], "unchanged": ["second"]},
    }
    assert preview.items["updated"][0].expected.because.startswith("the inputs of its stack change")


def test_new_and_gone_children_are_listed_whole(world: World) -> None:
    rested(world, {"old": nested()}, files={URL: child_text()})
    preview = updated(world, {"new": nested()}, files={URL: child_text()})
    assert lists(preview) == {
        "root": {"added": ["new"], "deleted": ["old"]},
        "new": {"added": ["first", "second"]},
        "old": {"deleted": ["first", "second"]},
    }


def test_a_child_of_another_template_is_changed_in_place(world: World) -> None:
    other = "file:///other.yaml"
    rested(world, {"child": nested()}, files={URL: child_text()})
    preview = updated(world, {"child": {"type": other}}, files={other: child_text()})
    assert lists(preview) == {
        "root": {"updated": ["child"]},
        "child": {"updated": ["second"], "unchanged": ["first"]},
    }


def test_a_child_whose_place_another_kind_of_type_takes_is_replaced(world: World) -> None:
    rested(world, {"child": nested()}, files={URL: child_text()})
    preview = updated(world, {"child": test_resource()})
    assert lists(preview) == {"root": {"replaced": ["child"]}, "child": {"deleted": ["first", "second"]}}


def test_a_nested_stack_that_a_user_marked_unhealthy_is_replaced(world: World) -> None:
    rested(world, {"child": nested()}, files={URL: child_text()})
    world.mark("s", "child")
    preview = updated(world, {"child": nested()}, files={URL: child_text()})
    assert lists(preview)["root"] == {"replaced": ["child"]}
    inside = {turn: len(items) for item in preview.nested for turn, items in item.items.items()}
    assert inside == {"added": 2, "deleted": 2}
    assert preview.items["replaced"][0].expected.because.startswith("it is unhealthy: ")


def test_nested_values_from_a_changing_resource_may_change(world: World) -> None:
    def resources(value: str) -> dict[str, Any]:
        fixed = test_resource("a", update_replace_value=value)
        return {"base": fixed, "child": nested({"get_resource": "base"})}

    rested(world, resources("1"), files={URL: child_text()})
    preview = updated(world, resources("2"), files={URL: child_text()})
    assert lists(preview)["child"] == {"updated": ["second"], "unchanged": ["first"]}
    [second] = preview.nested[0].items["updated"]
    assert (second.expected.certain, second.expected.unknown) == (False, ("value",))


def test_a_failed_child_is_gone_on_with(world: World) -> None:
    rested(world, {"child": nested()}, files={URL: child_text(fail=True)})
    preview = updated(world, {"child": nested()}, files={URL: child_text()})
    assert lists(preview)["root"] == {"updated": ["child"]}
    assert lists(preview)["child"] == {"replaced": ["first"], "added": ["second"]}
    assert preview.items["updated"][0].expected.because.startswith("it has failed")


def test_a_changed_facade_is_followed_into_the_child(world: World) -> None:
    text = child_text(
        facade={"type": "OS::Heat::Value", "properties": {"value": {"resource_facade": "metadata"}}}
    )
    rested(world, {"child": {**nested(), "metadata": {"a": 1}}}, files={URL: text})
    preview = updated(world, {"child": {**nested(), "metadata": {"a": 2}}}, files={URL: text})
    assert lists(preview)["child"] == {"updated": ["facade"], "unchanged": ["first", "second"]}
    same = updated(world, {"child": {**nested(), "metadata": {"a": 1}}}, files={URL: text})
    assert lists(same)["child"] == {"unchanged": ["facade", "first", "second"]}


def test_descendants_are_omitted_unless_requested(world: World) -> None:
    rested(world, {"child": nested()}, files={URL: child_text()})
    template = {"heat_template_version": "2021-04-16", "resources": {"child": nested("x")}}
    body = Body(orjson.dumps({"template": template, "files": {URL: child_text()}}))
    assert preview_update(world.context, world.stack_row("s"), body).nested == ()


@pytest.mark.parametrize("seed", range(4))
def test_an_update_of_a_tree_matches_its_preview(world: World, seed: int) -> None:
    dice = random.Random(seed)

    def drawn() -> tuple[dict[str, Any], dict[str, str]]:
        names = [name for name in ("a", "b", "c") if dice.random() < 0.8]
        resources: dict[str, Any] = {name: nested(dice.choice("xy")) for name in names}
        resources["outer"] = {"type": OUTER, "metadata": {"n": dice.choice("12")}}
        files = {URL: child_text(dice.choice("vw")), OUTER: outer_text(dice.choice("xy"))}
        return resources, files

    resources, files = drawn()
    rested(world, resources, files=files)
    for _ in range(4):
        resources, files = drawn()
        preview = updated(world, resources, files=files)
        reported = {row.uuid: row.n for row in world.rows(EVENTS)}
        world.update("s", resources, files=files)
        world.deliver_all()
        for entry in (preview, *preview.nested):
            if entry.stack is None:
                continue
            [row] = world.rows("SELECT id, deleted_at FROM stack WHERE uuid = :u", u=str(entry.stack.uuid))
            events = world.events(str(entry.stack.uuid))[reported[str(entry.stack.uuid)] :]
            did = {event.split()[0] for event in events} - {entry.name}
            said = {item.expected.name for items in entry.items.values() for item in items}
            assert all(item.expected.certain for items in entry.items.values() for item in items)
            assert said == did, entry.parent
            assert (row.deleted_at is not None) == (set(entry.items) == {"deleted"})


EVENTS = (
    "SELECT s.uuid::text AS uuid, count(*) AS n FROM stack s JOIN event e ON e.stack_id = s.id GROUP BY 1"
)


def test_nested_faults_refuse_the_preview_with_or_without_details(world: World) -> None:
    def child(id_: str) -> str:
        return child_text(known={"type": "OS::Heat::TestResource", "external_id": id_})

    rested(world, {"outer": {"type": OUTER}}, files={URL: child("one"), OUTER: outer_text()})
    expected = {"heat_template_version": "2021-04-16", "resources": {"outer": {"type": OUTER}}}
    body = orjson.dumps({"template": expected, "files": {URL: child("two"), OUTER: outer_text()}})
    for reported in (True, False):
        with pytest.raises(InvalidTemplate) as refused:
            preview_update(world.context, world.stack_row("s"), Body(body), show_nested=reported)
        [fault] = refused.value.diagnostics
        assert fault.path == "resources.outer.resources.inner.resources.known.external_id"
        told_words = "Update to property external_id of known (OS::Heat::TestResource) is not supported."
        assert fault.message == told_words
    world.update("s", expected["resources"], files={URL: child("two"), OUTER: outer_text()})
    world.deliver_all()
    assert world.state(str(world.stack_row("s").uuid)) == "UPDATE_FAILED"  # as it said
