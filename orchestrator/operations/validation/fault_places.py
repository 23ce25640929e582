"""The places of faults in the texts of a request: template, environment, environment files, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.request_body import StackRequest
from orchestrator.template.environment import NAME as ENVIRONMENT
from orchestrator.template.fault_locations import placed
from orchestrator.template.parameters import ParameterSchema
from orchestrator.template.parse import Limits, parse
from orchestrator.template.template import Draft

PARAMETERS: Final = "parameters"  # stands for the request's own parameters in the place of a fault
MAX_SHOWN_FAULTS: Final = 100  # warnings, or errors of a valid template, in a response
FAULT_KEYS: Final = ("code", "message", "path", "line", "column", "file", "excerpt", "hint", "severity")
OF_VALUES: Final = frozenset({"invalid-parameter", "unknown-parameter"})
SECTIONS: Final = ("parameters", "parameter_defaults")


@dataclass(frozen=True, slots=True)
class _Source:
    """A text, or a section without a text, that may set parameters."""

    file: str
    text: str | bytes | None
    document: JsonMapping

    def path(self, name: str) -> str | None:
        """Return the path of a parameter's value."""
        for section in SECTIONS:
            values = self.document.get(section)
            if isinstance(values, Mapping) and name in values:
                return f"{section}.{name}"
        return None


def located(
    faults: Sequence[Diagnostic], request: StackRequest, draft: Draft, limits: Limits
) -> list[Diagnostic]:
    """Return faults with their places; a fault of a value is located where the value is written, and names
    the declaration of its parameter in the hint.
    """
    assert request.template is not None
    open_faults = [fault for fault in faults if not fault.file]
    in_template = placed(open_faults, request.template, draft.document)
    moved = dict(zip(map(id, open_faults), in_template, strict=True))
    if any(fault.code in OF_VALUES for fault in open_faults):
        sources = [*_sources(request, limits)]
        for fault in open_faults:
            if fault.code in OF_VALUES:
                moved[id(fault)] = _at_value(fault, moved[id(fault)], sources, draft.parameters)
    return [moved.get(id(fault), fault) for fault in faults]


def _sources(request: StackRequest, limits: Limits) -> Iterator[_Source]:
    """Yield the texts that set parameters, the one that prevails first."""
    own = _Source(PARAMETERS, None, {"parameters": request.parameters})
    if not request.environment_files or request.parameters_win:
        yield own
    for name in reversed(request.environment_files):
        yield _read(name, request.files.get(name), limits)
    if request.environment_files and not request.parameters_win:
        yield own
    if not request.environment_files:
        yield _read(ENVIRONMENT, request.environment, limits)


def _read(name: str, content: object, limits: Limits) -> _Source:
    if isinstance(content, str | bytes):
        try:
            return _Source(name, content, parse(content, limits, ENVIRONMENT))
        except InvalidTemplate:  # reported when it was read
            return _Source(name, None, {})
    return _Source(name, None, content if isinstance(content, Mapping) else {})


def _at_value(
    fault: Diagnostic,
    in_template: Diagnostic,
    sources: Sequence[_Source],
    schemas: Mapping[str, ParameterSchema],
) -> Diagnostic:
    """Return a fault at the value in the request; a default of the template, and a value of an earlier
    request, have no other place than the declaration.
    """
    name = fault.path.removeprefix("parameters.")
    for source in sources:
        path = source.path(name)
        if path is None:
            continue
        made = replace(fault, file=source.file, path=path, hint=fault.hint or _declared(in_template, schemas))
        schema = schemas.get(name)
        if source.text is None or (schema is not None and schema.hidden):  # the line contains the value
            return made
        return placed([made], source.text, source.document)[0]
    return in_template


def _declared(in_template: Diagnostic, schemas: Mapping[str, ParameterSchema]) -> str:
    name = in_template.path.removeprefix("parameters.")
    if in_template.line is None or name not in schemas:
        return ""
    return f"{name} is declared in the template at line {in_template.line}, column {in_template.column}"


def shown_faults(faults: Sequence[Diagnostic]) -> list[JsonObject]:
    """Return the first faults as responses show them, with the number of the others."""
    shown: list[JsonObject] = [
        {key: getattr(fault, key) for key in FAULT_KEYS if getattr(fault, key) is not None}
        for fault in faults[:MAX_SHOWN_FAULTS]
    ]
    if (others := len(faults) - len(shown)) > 0:
        text = f"and {others} more"
        shown.append({"code": "more", "message": text, "severity": faults[0].severity})
    return shown
