"""Faults of a nested template, told as faults of the one that it is nested in
(docs/internals/hot-language.md §10).

A fault keeps its file, line and column; its path and message begin with the resources on the way down, each
with the address of its template: ``resources.a<t.yaml>.resources.b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.graph.build import build
from orchestrator.resources.template_type import NestedTemplate
from orchestrator.template.fault_locations import placed
from orchestrator.template.template import Template

MOST_LEVELS: Final = 250  # that a path is taken to have
_PROPERTIES: Final = re.compile(r"\.[Pp]roperties\b")
_JOINT: Final = re.compile(r"[.\[]")
# What may stand before the place, or the text, in a message.
_LABEL: Final = re.compile(r"(?:[A-Z][A-Za-z ]* error|[A-Z]\w+): ")
_PLACE: Final = re.compile(
    r"(?:parameters|parameter_groups|conditions|resources|outputs|"
    r"Parameters|Mappings|Conditions|Resources|Outputs)\."
)


def nested_path(fault: Diagnostic, prefix: str) -> Diagnostic:
    """Return a fault of a nested template as one of the template around it; `prefix` is the way there.

    A fault of another kind than most names its kind in the message.
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
    """Return a fault's message as it reaches Heat's clients: what it begins with has two colons.

    On the way from Heat's engine to its API the error is taken apart and made again, and label and place
    bring their colons with them: ``Property error: : resources.a.properties.b: : No such thing``. Clients and
    Heat's own tests compare with that.
    """
    if fault.heat_type != "StackValidationFailed":
        return fault.message
    label = _LABEL.match(fault.message)
    head, rest = (label[0], fault.message[label.end() :]) if label else ("", fault.message)
    end, place = rest.find(": "), ""
    if _PLACE.match(rest):
        place = rest[: max(end, 0)]
    while end >= 0 and fault.path.startswith(rest[:end]):  # a name may hold a colon
        place = rest[:end]
        end = rest.find(": ", end + 1)
    if place:
        rest = rest[len(place) + 2 :]
        if (
            fault.code == "wrong-value" and ">" in place
        ):  # Heat names no property where a value inside is wrong
            way, end_of_way, inside = place.rpartition(">")
            head, place = "", way + end_of_way + _PROPERTIES.split(inside)[0]
        rest = f"{place}: : {rest}"
    return f"{head}: {rest}" if place and head else f"{head}{rest}"


def in_file(faults: Iterable[Diagnostic], template: NestedTemplate) -> list[Diagnostic]:
    """Return faults of a nested template with their places in its text, where they have none yet."""
    here = [fault for fault in faults if not fault.file]
    if not here:
        return list(faults)
    found = iter(placed(here, template.text, template.document))
    return [fault if fault.file else _somewhere(replace(next(found), file=template.url)) for fault in faults]


CHOSEN: Final = re.compile(r"\.(if|Fn::If)\[\d\]")


def not_yet_reported(known: Iterable[Diagnostic], more: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the faults that are not at, in or around a place already known to be wrong."""
    # Where a branch was chosen, what looks at values does not see the choice.
    wrong = {path for fault in known for path in (fault.path, CHOSEN.sub("", fault.path))}
    around = {outer for path in wrong for outer in _around(path)}
    return [
        fault
        for fault in more
        if fault.path not in wrong and fault.path not in around and wrong.isdisjoint(_around(fault.path))
    ]


def nested_cycles(template: Template) -> list[Diagnostic]:
    """Return the fault of a template whose resources wait for each other, if they do."""
    resources: Mapping[str, Any] = template.resources
    try:
        build(list(resources), [definition.requires for definition in resources.values()])
    except InvalidTemplate as error:
        return list(error.diagnostics)
    return []


def _around(path: str) -> Iterator[str]:
    """Yield the places that a place is in; of a path with names full of dots not all."""
    for cut in islice(_JOINT.finditer(path), MOST_LEVELS):
        yield path[: cut.start()]


def _somewhere(fault: Diagnostic) -> Diagnostic:
    """Return a fault with a place in its own file, whatever is done with its path later."""
    return fault if fault.line is not None else replace(fault, line=1, column=1)
