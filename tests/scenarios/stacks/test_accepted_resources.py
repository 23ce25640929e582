"""Resources of an accepted template that have no rows yet: slices, pages and concurrent plans."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator import config
from orchestrator.operations.stacks import accepted_template
from orchestrator.operations.stacks.resources import get_resource, list_resources
from orchestrator.store.stacks import accepted_resources
from orchestrator.store.stacks import resources as rows_of
from tests.scenarios.world import World, test_resource

TREE = Path(__file__).resolve().parents[3]
READERS = {"get_resource", "list_resources", "list_tree"}
# the functions that add the accepted resources; a preview, which lists the rows that it has compared
ALLOWED = {"orchestrator/operations/stacks/resources.py", "api/v1/previews.py"}


@pytest.fixture
def sliced(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose templates are large and have slices of three resources."""
    monkeypatch.setattr(accepted_resources, "PART_LENGTH", 3)
    monkeypatch.setattr(config, "INLINE_BODY_SIZE", 100)
    return world


def listed(world: World, name: str, **options: Any) -> list[tuple[str, str]]:
    rows = list_resources(world.context, world.stack_row(name), **options)
    return [(row.name, row.state) for row in rows]


def test_no_reader_leaves_out_the_accepted_resources() -> None:
    for package in ("api", "orchestrator", "tasks"):
        for file in (TREE / package).rglob("*.py"):
            imported = {
                alias.name
                for node in ast.walk(ast.parse(file.read_text()))
                if isinstance(node, ast.ImportFrom) and node.module == "orchestrator.store.stacks.resources"
                for alias in node.names
            }
            assert not imported & READERS or str(file.relative_to(TREE)) in ALLOWED, file


def test_slices_are_stored_with_a_revision_and_copied_by_a_rollback(sliced: World) -> None:
    names = [f"r{number}" for number in range(8)]
    sliced.create("s", {name: test_resource() for name in names})
    sliced.deliver_all()
    sliced.update("s", {"a": test_resource()})
    sliced.act("s", "cancel_update")
    slices = sliced.rows(
        "SELECT v.number, a.last_name FROM accepted_resources a JOIN revision v ON v.id = a.revision_id"
        " ORDER BY 1, 2"
    )
    last = ["r2", "r5", "r7"]
    assert slices == [*((1, name) for name in last), (2, "a"), *((3, name) for name in last)]
    assert [name for name, _ in listed(sliced, "s")] == names
    sliced.deliver_all()
    sliced.delete("s")
    sliced.deliver_all()


def test_a_small_template_has_no_slices(world: World) -> None:
    world.create("s", {"a": test_resource()})
    assert world.rows("SELECT 1 FROM accepted_resources") == []


@pytest.mark.parametrize("seed", range(20))
def test_pages_of_rows_and_accepted_resources_are_those_of_the_whole_list(sliced: World, seed: int) -> None:
    chosen = random.Random(seed)
    names = [f"r{number}" for number in range(12)]
    sliced.create("s", {name: test_resource() for name in chosen.sample(names, 6)})
    sliced.deliver_all()
    present = dict(listed(sliced, "s"))
    wanted = chosen.sample(names, 7)
    sliced.update("s", {name: test_resource("new") for name in wanted})
    expected = sorted({**dict.fromkeys(wanted, "INIT_COMPLETE"), **present}.items())
    assert listed(sliced, "s") == expected
    assert listed(sliced, "s", with_values=True) == expected
    for limit in (1, 2, 5, 13):
        found: list[tuple[str, str]] = []
        while page := listed(sliced, "s", after=found[-1][0] if found else None, limit=limit):
            assert len(page) <= limit
            found += page
        assert found == expected
    for filters in ({"action": ["INIT"]}, {"status": ["COMPLETE"]}, {"action": ["CREATE"]}):
        [(key, [value])] = filters.items()
        matching = [item for item in expected if value in item[1]]
        assert listed(sliced, "s", filters=filters) == matching
        assert listed(sliced, "s", filters=filters, limit=2) == matching[:2], key


@pytest.mark.parametrize("read", ["list", "page", "show"])
def test_a_plan_that_is_written_during_a_read_hides_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    world.create("s", {"a": test_resource(), "b": test_resource(requires=["a"])})
    stack = world.stack_row("s")

    def plan_after(owner: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def planned_after(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            found = list(found) if name == "list_resources" else found
            while not world.rows("SELECT 1 FROM resource"):
                world.deliver_one(world.messages.pop(0))
            return found

        monkeypatch.setattr(owner, name, planned_after)

    plan_after(rows_of, "get_resource")
    plan_after(rows_of, "list_resources")
    plan_after(accepted_resources, "existing")
    if read == "show":
        found = get_resource(world.context, stack, "b")
        assert found is not None
        assert found.name == "b"
        return
    limit = 5 if read == "page" else None
    assert [row.name for row in list_resources(world.context, stack, limit=limit)] == ["a", "b"]


def test_a_stack_at_rest_is_read_by_the_statements_for_its_rows_only(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("s", {"a": test_resource()})
    world.deliver_all()

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(accepted_resources, "planning", refuse)
    assert listed(world, "s") == [("a", "CREATE_COMPLETE")]
    assert get_resource(world.context, world.stack_row("s"), "unknown") is None


def test_a_template_is_parsed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("s", {"a": test_resource()})
    parsed = accepted_template.load_stored
    calls: list[int] = []

    def counted(*args: Any) -> Any:
        calls.append(1)
        return parsed(*args)

    monkeypatch.setattr(accepted_template, "load_stored", counted)
    for _ in range(3):
        assert listed(world, "s", limit=1) == [("a", "INIT_COMPLETE")]
    assert len(calls) == 1


def test_actions_without_a_template_add_nothing(world: World) -> None:
    world.create("s", {"a": test_resource()})
    world.act("s", "cancel_without_rollback")
    world.delete("s")
    assert listed(world, "s") == []
