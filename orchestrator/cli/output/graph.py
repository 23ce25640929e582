"""Dependency graphs of templates and stacks, in the languages of Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import orjson
import yaml

from orchestrator.cli.exit_codes import Failure, one_line
from orchestrator.json_types import JsonMapping

RESOURCES: Final = ("resources", "Resources")
STYLES: Final = {"FAILED": "#f8d7da", "IN_PROGRESS": "#fff3cd", "COMPLETE": "#d4edda"}  # fill colours


@dataclass(frozen=True, slots=True)
class Graph:
    """Resources with their types, the requirements of each, and statuses where known."""

    types: Mapping[str, str]
    requires: Mapping[str, list[str]]
    statuses: Mapping[str, str]


class _Loader(yaml.SafeLoader):
    """YAML without timestamps and with unknown tags ignored, as far as a graph needs it."""


_Loader.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def of_resources(resources: Iterable[JsonMapping]) -> Graph:
    """Return the graph of a stack's resources, as the API lists them."""
    listed = {str(resource["resource_name"]): resource for resource in resources}
    requires: dict[str, list[str]] = {name: [] for name in listed}
    for name, resource in listed.items():
        for dependent in resource.get("required_by") or ():
            if dependent in requires:
                requires[dependent].append(name)
    return Graph(
        {name: str(resource["resource_type"]) for name, resource in listed.items()},
        {name: sorted(names) for name, names in requires.items()},
        {name: str(resource["resource_status"]) for name, resource in listed.items()},
    )


def of_template(text: str, name: str) -> Graph:
    """Return the graph of a template in HOT or CloudFormation form.

    Raises:
        Failure: it is not YAML or JSON, or has no resources.
    """
    try:
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        raise Failure(f"{name}{place}: not valid YAML: {one_line(error.problem or '')}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Failure(f"{name} is not valid YAML: {one_line(error)}") from error
    sections = document if isinstance(document, dict) else {}
    resources = next((sections[key] for key in RESOURCES if isinstance(sections.get(key), dict)), None)
    if resources is None:
        raise Failure(f"{name} has no section resources")
    definitions = {str(key): value for key, value in resources.items() if isinstance(value, dict)}
    types = {
        key: str(definition.get("type") or definition.get("Type") or "?")
        for key, definition in definitions.items()
    }
    requires = {
        key: sorted(
            {
                reference
                for reference in _references(definition)
                if reference in definitions and reference != key
            }
        )
        for key, definition in definitions.items()
    }
    return Graph(types, requires, {})


def _references(definition: JsonMapping) -> Iterator[str]:
    """Yield the names that a definition refers to, by function or by `depends_on`."""
    for key in ("depends_on", "DependsOn"):
        names = definition.get(key)
        yield from (str(name) for name in (names if isinstance(names, list) else [names]) if name)
    waiting: list[object] = [definition]
    visited: set[int] = set()  # aliases can make cycles
    while waiting:
        value = waiting.pop()
        if not isinstance(value, dict | list) or id(value) in visited:
            continue
        visited.add(id(value))
        if isinstance(value, dict):
            yield from _called(value)
            waiting.extend(value.values())
        else:
            waiting.extend(value)


def _called(value: Mapping[object, object]) -> Iterator[str]:
    for function, argument in value.items():
        match function, argument:
            case (("get_resource" | "Ref"), str(name)):
                yield name
            case (("get_attr" | "Fn::GetAtt"), [str(name), *_]):
                yield name


def mermaid(graph: Graph) -> str:
    """Return the graph as a Mermaid flowchart."""
    ids = {name: f"r{number}" for number, name in enumerate(graph.types)}
    lines = ["graph TD"]
    for name, type_name in graph.types.items():
        label = f"{name}<br/>{type_name}".replace('"', "#quot;")
        lines.append(f'    {ids[name]}["{label}"]')
    lines += [
        f"    {ids[required]} --> {ids[name]}" for name, names in graph.requires.items() for required in names
    ]
    for status, colour in STYLES.items():
        members = [ids[name] for name, state in graph.statuses.items() if state.endswith(f"_{status}")]
        if members:
            lines += [f"    classDef {status} fill:{colour}", f"    class {','.join(members)} {status}"]
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """Return the graph in Graphviz's language."""
    lines = ["digraph stack {", "    rankdir=TB;", "    node [shape=box, style=filled, fillcolor=white];"]
    for name, type_name in graph.types.items():
        status = graph.statuses.get(name, "")
        colour = next((colour for end, colour in STYLES.items() if status.endswith(f"_{end}")), "")
        fill = f", fillcolor={_quoted(colour)}" if colour else ""
        lines.append(f"    {_quoted(name)} [label={_quoted(f'{name}{chr(10)}{type_name}')}{fill}];")
    lines += [
        f"    {_quoted(required)} -> {_quoted(name)};"
        for name, names in graph.requires.items()
        for required in names
    ]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
