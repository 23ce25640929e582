"""The search for the tasks of a resource, with Flower's own search."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from flower.utils.search import TaskSearchEngine

from orchestrator_console.flower import search

ROOT = {"stack_name": "web", "id": "5f0c", "parent": None}
NESTED = {"stack_name": "web-group-abcdef", "id": "77aa", "parent": "5f0c"}


def found(stack: dict[str, str | None], name: str, tasks: dict[str, tuple[str, str]]) -> set[str]:
    """Return the tasks that the search of a link finds; tasks have arguments and a root."""
    engine, state = TaskSearchEngine(), {}
    for task_id, (arguments, root) in tasks.items():
        state[task_id] = SimpleNamespace(
            uuid=task_id, name="check", args=arguments, kwargs=f"{{'root_stack': '{root}'}}"
        )
        engine.upsert(state[task_id])
    return set(engine.search(state, f"name:{search(stack, name)}").task_ids)


def test_the_search_finds_the_tasks_of_a_resource_before_and_after_the_check() -> None:
    tasks = {
        "begun": ("(db)", "5f0c"),
        "finished": ("(web/db CREATE create)", "5f0c"),
        "shared": ("(web/a CREATE create, web/db CREATE create)", "5f0c"),
        "other-resource": ("(web/db2 CREATE create)", "5f0c"),
        "other-stack": ("(web/db CREATE create)", "0000"),
    }
    assert found(ROOT, "db", tasks) == {"begun", "finished", "shared"}


def test_a_nested_stack_is_found_by_its_name() -> None:
    tasks = {
        "nested": ("(web-group-abcdef/0 CREATE create)", "5f0c"),
        "parent": ("(web/0 CREATE create)", "5f0c"),
    }
    assert found(NESTED, "0", tasks) == {"nested"}


@pytest.mark.parametrize("name", ["a", 'quo"te', "back\\slash", "paren(s) AND OR", "NOT"])
def test_names_are_no_operators_of_the_search(name: str) -> None:
    tasks = {"own": (f"(web/{name} CREATE create)", "5f0c"), "other": ("(web/b CREATE create)", "5f0c")}
    assert found(ROOT, name, tasks) == {"own"}
