"""From files on this machine to the body of a request: template, environments, and the files they name.

The template travels as text, unchanged, so that the server can point at its lines. Files are sent under the
names the template uses for them, read relative to the file that names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from orchestrator.cli.failure import Failure
from orchestrator.errors import OrchestratorError
from orchestrator.template.parse import Limits, parse

NESTED = (".yaml", ".yml", ".template", ".json")
_KEY = object()  # the place in a mapping where a key comes next
SECTIONS = frozenset(
    {
        "parameters",
        "parameter_defaults",
        "resource_registry",
        "encrypted_param_names",
        "event_sinks",
        "parameter_merge_strategies",
    }
)


@dataclass(frozen=True, slots=True)
class Source:
    """A template as read: where from, and its text."""

    path: Path
    text: str
    files: Mapping[str, str]


def read_template(path: Path) -> Source:
    """Read a template and every file that it, or a template nested in it, names."""
    text = _read(path, "template")
    files: dict[str, str] = {}
    _collect(path, text, files)
    return Source(path, text, files)


def request_body(
    source: Source, environments: Sequence[Path], parameters: Mapping[str, Any], **more: object
) -> dict[str, Any]:
    """Return the body of a create or validate request; values of `more` that are None are left out."""
    body: dict[str, Any] = {"template": source.text}
    if environments:
        body["environment"] = merge_environments(environments)
    if parameters:
        body["parameters"] = dict(parameters)
    if source.files:
        body["files"] = dict(source.files)
    return body | {key: value for key, value in more.items() if value is not None}


def merge_environments(paths: Sequence[Path]) -> str | dict[str, Any]:
    """Return one environment: the text of a single file, or several laid over each other, the last on top."""
    if len(paths) == 1:
        return _read(paths[0], "environment")
    merged: dict[str, Any] = {}
    for path in paths:
        try:
            one = parse(_read(path, "environment"), Limits(), "environment")
        except OrchestratorError as error:
            raise Failure(f"{path}: {error}") from error
        if not SECTIONS & one.keys():
            one = {"parameters": one}  # a bare mapping holds parameters
        for section, value in one.items():
            held = merged.get(section)
            merged[section] = (
                {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
            )
    return merged


def _collect(path: Path, text: str, files: dict[str, str]) -> None:
    for name, nested in named_files(text):
        if "://" in name:
            continue  # the server decides what it fetches
        content = _read(path.parent / name, f"file named by {path}")
        if files.get(name, content) != content:
            raise Failure(f"two different files are called {name}; give one of them another name")
        if name not in files:
            files[name] = content
            if nested:
                _collect(path.parent / name, content, files)


def named_files(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the names in a template's `get_file` calls and nested `type`s, and which is a nested template.

    A text that cannot be read yields nothing: the server says what is wrong with it, and where.
    """
    if "get_file" not in text and not any(ending in text for ending in NESTED):
        return
    try:
        yield from _from_value(orjson.loads(text))
    except orjson.JSONDecodeError:
        try:
            yield from list(_from_events(text))  # all or nothing
        except yaml.YAMLError:
            return


def _from_value(value: object) -> Iterator[tuple[str, bool]]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as mapping:
                for key, item in mapping.items():
                    yield from _named(key, item)
                    waiting.append(item)
            case list() as items:
                waiting.extend(items)


def _from_events(text: str) -> Iterator[tuple[str, bool]]:
    """Walk the parser's events: nothing is built, so no text can make this large."""
    depth: list[object] = []  # one entry per open collection: None for a list, else the key last read or _KEY
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        match event:
            case yaml.ScalarEvent(value=value):
                if depth and depth[-1] is not None:
                    if depth[-1] is _KEY:
                        depth[-1] = value
                    else:
                        yield from _named(depth[-1], value)
                        depth[-1] = _KEY
            case yaml.AliasEvent():
                _value_ended(depth)
            case yaml.MappingStartEvent():
                depth.append(_KEY)
            case yaml.SequenceStartEvent():
                depth.append(None)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                depth.pop()
                _value_ended(depth)


def _value_ended(depth: list[object]) -> None:
    if depth and depth[-1] is not None:
        depth[-1] = "" if depth[-1] is _KEY else _KEY  # a collection as a key is nobody's file name


def _named(key: object, value: object) -> Iterator[tuple[str, bool]]:
    if not isinstance(value, str):
        return
    if key == "get_file":
        yield value, False
    elif key == "type" and value.endswith(NESTED):
        yield value, True


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot read the {what} {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise Failure(f"the {what} {path} is not UTF-8 text") from error
