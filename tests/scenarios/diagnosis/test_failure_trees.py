"""Why a stack failed, down to the causes in nested stacks, after rollback and deletion too."""

from __future__ import annotations

from typing import Any

from tests.scenarios.stacks.test_history_api import Api
from tests.scenarios.trees import child, nested, text
from tests.scenarios.world import World, test_resource

INNER = "file:///inner.yaml"


def failing(world: World, **request: Any) -> str:
    """A stack with a failure two levels down, and a failure at the top; return its path."""
    files = {
        "file:///child.yaml": text({"inner": nested(url=INNER), "fine": test_resource("1")}),
        INNER: text({"leaf": test_resource("1", fail=True)}),
    }
    uuid = world.create("s", {"child": nested(), "fine": test_resource("1")}, files=files, **request)
    world.deliver_all()
    return f"/stacks/s/{uuid}"


def paths(collected: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Return where the leaves of a tree are."""
    leaves: list[tuple[str, ...]] = []
    for item in collected:
        leaves += paths(item["causes"]) if item["causes"] else [tuple(item["path"])]
    return leaves


def test_the_causes_are_found_at_every_depth(world: World) -> None:
    api = Api(world)
    place = failing(world)
    reported = api.get(f"{place}/failures?nested_depth=9")
    assert not reported["more"]
    [top] = reported["failures"]
    assert (top["resource_name"], top["path"]) == ("child", ["child"])
    assert top["nested_stack"]["status"] == "CREATE_FAILED"
    [middle] = top["causes"]
    [leaf] = middle["causes"]
    assert (leaf["path"], leaf["resource_type"]) == (["child", "inner", "leaf"], "OS::Heat::TestResource")
    assert leaf["reason"] == "ValueError: resources.leaf: Test Resource failed leaf"
    assert (leaf["action"], leaf["class"], leaf["error_type"], leaf["causes"]) == (
        "CREATE",
        "other",
        "ValueError",
        [],
    )
    assert leaf["attempts"] >= 1
    assert [
        item["path"] for item in api.get(f"{place}/failures?nested_depth=1")["failures"][0]["causes"]
    ] == [["child", "inner"]]


def test_they_outlive_the_rollback_and_the_deletion(world: World) -> None:
    api = Api(world)
    place = failing(world, disable_rollback=False)
    where = [("child", "inner", "leaf")]
    assert api.get(place)["stack"]["stack_status"].startswith("ROLLBACK_")
    assert child(world).state == "DELETE_COMPLETE"
    assert paths(api.get(f"{place}/failures?nested_depth=9")["failures"]) == where
    world.delete("s")
    world.deliver_all()
    assert api.get(place)["stack"]["stack_status"] == "DELETE_COMPLETE"
    assert paths(api.get(f"{place}/failures?nested_depth=9")["failures"]) == where
    assert api.get(f"{place}/failures")["failures"][0]["resource_name"] == "child"


def test_earlier_failures_are_not_causes_of_the_current_failure(world: World) -> None:
    api = Api(world)
    place = failing(world)
    files = {"file:///child.yaml": text({"other": test_resource("1", fail=True)})}
    world.update("s", {"child": nested()}, files=files)
    world.deliver_all()
    assert paths(api.get(f"{place}/failures?nested_depth=9")["failures"]) == [("child", "other")]
    first = api.get(f"{place}/failures?nested_depth=9&revision=1")["failures"]
    assert paths(first) == [("child", "inner", "leaf")]


def test_a_cause_in_a_file_has_its_line(world: World) -> None:
    api = Api(world)
    inner = (
        "heat_template_version: 2021-04-16\nresources:\n  well: {type: OS::Heat::None}\n  # the one\n  bad:\n"
    )
    inner += "    type: OS::Heat::TestResource\n    properties: {fail: true}\n"
    registry = {"resource_registry": {"My::Type": "file:///inner.yaml"}}
    uuid = world.create(
        "s", {"child": {"type": "My::Type"}, "own": test_resource("1", fail=True)},
        files={"file:///inner.yaml": inner}, environment=registry, keep_going=True,
    )  # fmt: skip
    world.deliver_all()
    reported = api.get(f"/stacks/s/{uuid}?with_diagnostics=true")["stack"]["diagnostics"]
    assert {
        item["path"]: (item["file"], item["line"], item["column"], item["excerpt"]) for item in reported
    } == {
        "resources.child.resources.bad": ("file:///inner.yaml", 5, 3, "  bad:"),
        "resources.own": ("", None, None, ""),
    }


def test_a_stack_and_a_resource_show_their_causes_when_asked(world: World) -> None:
    api = Api(world)
    place = failing(world)
    [item] = api.get(f"{place}?with_diagnostics=true")["stack"]["diagnostics"]
    assert item["path"] == "resources.child.resources.inner.resources.leaf"
    assert (item["code"], item["message"]) == (
        "other",
        "ValueError: resources.leaf: Test Resource failed leaf",
    )
    assert item["hint"]
    assert item["line"] is not None
    assert item["file"].startswith("file:///")
    assert "leaf" in item["excerpt"]
    resource = api.get(f"{place}/resources/child?with_diagnostics=true")["resource"]
    assert resource["diagnostics"] == [item]
    assert api.get(f"{place}/resources/fine?with_diagnostics=true")["resource"]["diagnostics"] == []
    assert "diagnostics" not in api.get(place)["stack"]
