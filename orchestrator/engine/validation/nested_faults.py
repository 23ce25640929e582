"""Faults of a nested template, reported as faults of its parent template (docs/internals/hot-language.md
§10).

A fault keeps its file, line and column; its path and message are prefixed with the resources on the way down,
each with the URL of its template: ``resources.a<t.yaml>.resources.b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.graph.build import build
from orchestrator.json_types import JsonMapping
from orchestrator.resources.template_type import NestedTemplate
from orchestrator.template.fault_locations import placed
from orchestrator.template.template import Template

MAX_PATH_LEVELS: Final = 250  # of a path
_PROPERTIES: Final = re.compile(r"\.[Pp]roperties\b")
_JOINT: Final = re.compile(r"[.\[]")
# Prefixes that may precede the path, or the text, in a message.
_LABEL: Final = re.compile(r"(?:[A-Z][A-Za-z ]* error|[A-Z]\w+): ")
_PLACE: Final = re.compile(
    r"(?:parameters|parameter_groups|conditions|resources|outputs|"
    r"Parameters|Mappings|Conditions|Resources|Outputs)\."
)


def nested_path(fault: Diagnostic, prefix: str) -> Diagnostic:
    """Return a nested template's fault as a fault of its parent template; `prefix` is the path of the
    resource.

    A fault with an unusual error type names that type in the message.
    """
    label = _LABEL.match(fault.message)
    head, rest = (label[0], fault.message[label.end() :]) if label else ("", fault.message)
    if fault.heat_type != "StackValidationFailed":
        head, rest = f"{fault.heat_type}: ", fault.message
    joint = "." if _PLACE.match(rest) else ": "
    return replace(
        fault,
        message=f"{head}{prefix}{joint}{rest}",
        path=f"{prefix}.{fault.path}" if fault.path else prefix,
        heat_type="StackValidationFailed",
    )


def as_parent_fault(fault: Diagnostic) -> str:
    """Return a fault with its message in the form that Heat's clients receive: two colons after the prefix.

    Between Heat's engine and its API the error is disassembled and rebuilt, and label and path keep their
    colons: ``Property error: : resources.a.properties.b: : No such thing``. Clients and Heat's own tests
    compare with that text.
    """
    if fault.heat_type != "StackValidationFailed":
        return fault.message
    label = _LABEL.match(fault.message)
    head, rest = (label[0], fault.message[label.end() :]) if label else ("", fault.message)
    end, place = rest.find(": "), ""
    if _PLACE.match(rest):
        place = rest[: max(end, 0)]
    while end >= 0 and fault.path.startswith(rest[:end]):  # a name may contain a colon
        place = rest[:end]
        end = rest.find(": ", end + 1)
    if place:
        rest = rest[len(place) + 2 :]
        if (
            fault.code == "wrong-value" and ">" in place
        ):  # Heat names no property for a fault inside its value
            way, end_of_way, inside = place.rpartition(">")
            head, place = "", way + end_of_way + _PROPERTIES.split(inside)[0]
        rest = f"{place}: : {rest}"
    return f"{head}: {rest}" if place and head else f"{head}{rest}"


def in_file(faults: Iterable[Diagnostic], template: NestedTemplate) -> list[Diagnostic]:
    """Return faults of a nested template with locations in its text, where they have none yet."""
    here = [fault for fault in faults if not fault.file]
    if not here:
        return list(faults)
    located = iter(placed(here, template.text, template.document))
    return [
        fault if fault.file else _somewhere(replace(next(located), file=template.url)) for fault in faults
    ]


CHOSEN: Final = re.compile(r"\.(if|Fn::If)\[\d\]")


def not_yet_reported(reported: Iterable[Diagnostic], faults: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the faults that are not at, in or around a path with a reported fault."""
    # Checks of values do not see which branch of a condition was taken.
    reported_paths = {path for fault in reported for path in (fault.path, CHOSEN.sub("", fault.path))}
    enclosing = {outer for path in reported_paths for outer in _enclosing_paths(path)}
    return [
        fault
        for fault in faults
        if fault.path not in reported_paths
        and fault.path not in enclosing
        and reported_paths.isdisjoint(_enclosing_paths(fault.path))
    ]


def nested_too_deep(most: int) -> Diagnostic:
    """Return the fault of a stack nested deeper than `most` levels."""
    limit = f"Request limit exceeded: Recursion depth exceeds {most}."
    return Diagnostic("nested-too-deep", limit, heat_type="RequestLimitExceeded")


def nested_cycles(template: Template) -> list[Diagnostic]:
    """Return the fault of a cycle among a template's resources, if there is one."""
    resources: JsonMapping = template.resources
    try:
        build(list(resources), [definition.requires for definition in resources.values()])
    except InvalidTemplate as error:
        return list(error.diagnostics)
    return []


def _enclosing_paths(path: str) -> Iterator[str]:
    """Yield the ancestors of a path; for names with many dots, not all of them."""
    for cut in islice(_JOINT.finditer(path), MAX_PATH_LEVELS):
        yield path[: cut.start()]


def _somewhere(fault: Diagnostic) -> Diagnostic:
    """Return a fault with a location in its own file, independent of later changes to its path."""
    return fault if fault.line is not None else replace(fault, line=1, column=1)


def as_refusal(fault: Diagnostic) -> Diagnostic:
    """Return an error as a warning of a lenient check: a create would be refused."""
    return replace(fault, severity="warning", refused=True) if fault.severity == "error" else fault
