"""Add line, column and excerpt to faults that have a path; called only if there are faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from orchestrator.errors import Diagnostic
from orchestrator.json_types import JsonMapping
from orchestrator.template.diagnostics import Path, excerpt, source_lines
from orchestrator.template.source_locator import locate

INDEX = re.compile(r"\[(\d+)\]")
JOINT = re.compile(r"[.\[]")
MAX_NAME_ENDS: Final = 250  # of a path, as potential ends of a name


def placed(faults: Iterable[Diagnostic], source: object, document: JsonMapping) -> list[Diagnostic]:
    """Return the faults with their places in `source`; unchanged when that is no text but an object a client
    sent.
    """
    faults = list(faults)
    if not isinstance(source, str | bytes):
        return faults
    paths = [keys_of(fault.path, document) for fault in faults]
    places = locate(source, paths)
    lines = source_lines(source)
    result = []
    for fault, path in zip(faults, paths, strict=True):
        line, column = places.get(path, (None, None))
        if fault.line is None and path and line is not None:
            quoted = excerpt(lines, line, column)[0]
            result.append(replace(fault, line=line, column=column, excerpt=quoted))
        else:
            result.append(fault)
    return result


def keys_of(path: str, document: Any) -> Path:
    """Return the keys of a dotted path, as far as they exist in the document; names may contain dots."""
    keys: list[str | int] = []
    here = document
    while path:
        index = INDEX.match(path)
        if index and isinstance(here, list) and int(index[1]) < len(here):
            keys.append(int(index[1]))
            here, path = here[int(index[1])], path[index.end() :].removeprefix(".")
            continue
        name = _longest_name(path, here) if isinstance(here, Mapping) else None
        if name is None:
            break
        keys.append(name)
        here, path = here[name], path[len(name) :].removeprefix(".")
    return tuple(keys)


def _longest_name(path: str, names: JsonMapping) -> str | None:
    """Return the longest name at the start of the path; with many dots only the first are considered."""
    ends = [joint.start() for joint in islice(JOINT.finditer(path), MAX_NAME_ENDS)]
    for size in reversed(ends if len(ends) == MAX_NAME_ENDS else [*ends, len(path)]):
        if size and path[:size] in names:
            return path[:size]
    return None
