"""Find everything wrong with a request before a row is written for it.

The language's faults, the parameters', the resource types' and a cycle are looked for one after the other,
each as far as the others let it, and answered together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from orchestrator.config import Settings
from orchestrator.engine.validate import validate_stack
from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.graph.build import build
from orchestrator.operations.context import OperationContext
from orchestrator.operations.parameters import pseudo
from orchestrator.operations.request import StackRequest
from orchestrator.telemetry import logger
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits, parse
from orchestrator.template.places import placed
from orchestrator.template.template import FaultyTemplate, Template, load

log = logger()


@dataclass(frozen=True, slots=True)
class Vetted:
    """A request with nothing wrong in it."""

    document: Mapping[str, Any]  # the template as data
    template: Template
    environment: Environment
    values: ParameterValues


def vet(context: OperationContext, request: StackRequest, *, stack_uuid: str, strict: bool = True) -> Vetted:
    """Return a request's parts, checked; `strict` where parameter values must be complete.

    Raises:
        InvalidTemplate: with every fault found, the first being the one Heat would tell.
        LimitExceeded: the template is too large or has too many resources.
    """
    settings = context.settings
    limits = Limits.of(settings)
    _check_size(request, settings.max_template_size)
    environment = Environment.parse(request.environment, limits)
    supplied = {**environment.parameters, **request.parameters}
    given = pseudo(stack_uuid, request.stack_name, context.caller.project_id)
    document, template, faults = _read(request, limits)
    broken = bool(faults)
    if len(template.resources) > settings.max_resources_per_stack:
        raise LimitExceeded("Maximum resources per stack exceeded.")
    schemas, defaults = template.parameters, environment.parameter_defaults
    try:
        values = ParameterValues.build(schemas, supplied, defaults, given, missing_ok=not strict)
    except InvalidTemplate as error:
        faults += _beside(faults, error.diagnostics)
        values, strict = ParameterValues.build(schemas, {}, {}, given, missing_ok=True), False
    timeout = _timeout_seconds(request, settings)
    try:
        found = validate_stack(template, values, context.types, strict=strict, stack_timeout_seconds=timeout)
        faults += _beside(faults, [*_cycle(template), *found])
    except (TypeError, ValueError, LookupError, AttributeError):
        if not broken:
            raise
        log.info("vetting_cut_short", fault=faults[0].message)  # what is broken cannot always be looked into
    if faults:
        raise InvalidTemplate(placed(faults, request.template, document))
    return Vetted(document, template, environment, values)


def _read(request: StackRequest, limits: Limits) -> tuple[Mapping[str, Any], Template, list[Diagnostic]]:
    """Return the template as data and as a definition, with the faults of its language.

    A text is parsed once, and again only to find where it is wrong.
    """
    source = request.template
    assert source is not None
    document = parse(source, limits) if isinstance(source, str) else source
    try:
        return document, load(document, limits, request.files), []
    except FaultyTemplate as error:
        return document, error.rest, list(error.diagnostics)


def _beside(known: Collection[Diagnostic], more: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the faults that are not at, in or around a place already known to be wrong."""
    return [fault for fault in more if not any(_overlap(fault.path, place.path) for place in known)]


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith((f"{other}.", f"{other}[")) or other.startswith(f"{one}.")


def _cycle(template: Template) -> list[Diagnostic]:
    names = list(template.resources)
    try:
        build(names, [template.resources[name].requires for name in names])
    except InvalidTemplate as error:
        return list(error.diagnostics)
    return []


def _timeout_seconds(request: StackRequest, settings: Settings) -> float:
    return request.timeout_mins * 60.0 if request.timeout_mins else float(settings.stack_action_timeout)


def _check_size(request: StackRequest, limit: int) -> None:
    for text in (request.template, *request.files.values()):
        size = len(text.encode()) if isinstance(text, str) else len(orjson.dumps(text))
        if size > limit:
            raise LimitExceeded(f"Template size ({size} bytes) exceeds maximum allowed size ({limit} bytes).")
