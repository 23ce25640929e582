"""Definitions of workflows in Mistral's language, and faults that Mistral would report. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from orchestrator.json_types import JsonMapping, JsonObject

SECTIONS: Final = ("type", "description", "tags", "output")
# Members of a task that have another form in the definition.
SPECIAL: Final = frozenset({"name", "policies"})


def definition(name: str, props: JsonMapping) -> str:
    """Return the definition of a workflow in YAML."""
    body: JsonObject = {key: props[key] for key in SECTIONS if props.get(key) is not None}
    if props.get("input") is not None:
        body["input"] = list(props["input"])
    body["tasks"] = {task["name"]: _task(task) for task in props["tasks"]}
    if props.get("task_defaults") is not None:
        given = props["task_defaults"].items()
        body["task-defaults"] = {_key(key): value for key, value in given if value}
    return str(yaml.safe_dump({"version": "2.0", name: body}, sort_keys=False))


def _task(task: JsonMapping) -> JsonObject:
    merged = {**task, **(task.get("policies") or {})}
    return {_key(key): value for key, value in merged.items() if key not in SPECIAL and value is not None}


def _key(name: str) -> str:
    return name.replace("_", "-")


def faults(props: JsonMapping, written: JsonMapping) -> Iterator[tuple[str, str]]:
    """Yield pairs of message and property. `written` are the properties of the template: a value in them may
    not be known yet.
    """
    if props.get("type") == "reverse" and not _has(written.get("params"), "task_name"):
        yield "'task_name' is not assigned in 'params' in case of reverse type workflow.", "params"
    tasks = written.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, Mapping):
            for message in _task_faults(task, props.get("type")):
                yield message, "tasks"


def _task_faults(task: Mapping[str, Any], kind: Any) -> Iterator[str]:
    given = {key for key, value in task.items() if value is not None}
    if {"workflow", "action"} <= given:
        yield "Cannot define the following properties at the same time: workflow, action."
    elif not {"workflow", "action"} & given:
        yield "At least one of the following properties must be specified: workflow, action."
    if "requires" in given and kind == "direct":
        yield (
            f"task {task.get('name')} contains property 'requires' in case of direct workflow. "
            "Only reverse workflows can contain property 'requires'."
        )
    policies = task.get("policies")
    for item in policies if isinstance(policies, Mapping) else ():
        if item in given:
            yield f"Property policies and {item} cannot be used both at one time."
    if "concurrency" in given and "with_items" not in given:
        yield "concurrency cannot be specified without with_items."


def _has(value: Any, key: str) -> bool:
    """Return whether a map has a member; a function may return any map."""
    if not isinstance(value, Mapping):
        return False
    return bool(value.get(key)) or (len(value) == 1 and next(iter(value)).startswith(("get_", "Fn::", "Ref")))
