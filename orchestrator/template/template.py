"""A template, read and checked: the way in is `load`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.template import versions
from orchestrator.template.definition import NOTHING, OutputDefinition, ResourceDefinition
from orchestrator.template.diagnostics import Hints, Path, excerpt, path_text, source_lines
from orchestrator.template.functions import References
from orchestrator.template.parameters import PSEUDO, ParameterSchema
from orchestrator.template.parse import Limits, check_size, locate, parse
from orchestrator.template.scan import Fault, Scanner
from orchestrator.template.sections import DESCRIPTION, Sections, output

NO_FILES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Template:
    """One template. Immutable, and without values: those are `ParameterValues`."""

    version: str  # the date, never an alias
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: list[Any]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    warnings: tuple[Diagnostic, ...] = ()
    written: Mapping[str, Any] = field(
        default_factory=dict, repr=False
    )  # `parameters` and `outputs` as in the text

    def outline(self) -> dict[str, Any]:
        """Return everything that showing a stack needs, as JSON: all but the resources."""
        return {
            "version": self.version,
            "description": self.description,
            "parameters": self.written.get("parameters") or {},
            "parameter_groups": self.parameter_groups,
            "outputs": self.written.get("outputs") or {},
        }

    @classmethod
    def from_outline(cls, outline: Mapping[str, Any]) -> Template:
        """Return the template that `outline()` described, without its resources."""
        version = outline["version"]
        schemas = {
            name: ParameterSchema.from_hot(name, body, version)
            for name, body in outline["parameters"].items()
        }
        outputs = {}
        for name, body in outline["outputs"].items():
            found = References()
            Scanner(version).scan(body["value"], found)
            outputs[name] = output(name, body, found)
        return cls(
            version,
            outline.get("description") or DESCRIPTION,
            schemas,
            outline.get("parameter_groups") or [],
            {},
            outputs,
            written={"parameters": outline["parameters"], "outputs": outline["outputs"]},
        )


class FaultyTemplate(InvalidTemplate):
    """A template with faults in its language; `rest` is what could be read, for those who look for more."""

    def __init__(self, diagnostics: Sequence[Diagnostic], rest: Template) -> None:
        """Keep the faults and what was read beside them."""
        super().__init__(diagnostics)
        self.rest = rest


def load(
    source: bytes | str | Mapping[str, Any],
    limits: Limits,
    files: Mapping[str, str] = NO_FILES,  # noqa: ARG001 - nested templates will look here
) -> Template:
    """Read and check a template, from its text or from an object that was sent in its place.

    Raises:
        InvalidTemplate: with all its faults, in the order of the document; without line and column for an
        object. LimitExceeded: it is too large.
    """
    warnings: list[Diagnostic] = []
    text = None if isinstance(source, Mapping) else source
    if isinstance(source, Mapping):
        document = plain_data(source, limits)
    else:
        document = parse(source, limits, warnings=warnings)
    try:
        version = versions.version_of(document, from_text=text is not None)
    except InvalidTemplate as error:
        faults = [
            Fault(d.code, d.message, (d.path,) if d.path else (), d.hint, d.heat_type)
            for d in error.diagnostics
        ]
        raise InvalidTemplate(place(faults, document, text)) from None
    sections = Sections(document, version)
    sections.check_names()
    names = _names(document, "parameters").keys() | set(PSEUDO)
    scanner = Scanner(version, names, _names(document, "resources").keys())
    description = sections.description()
    schemas = sections.parameters()
    groups = sections.parameter_groups()
    resources = sections.resources(scanner)
    outputs = sections.outputs(scanner)
    hints = Hints()
    found = [
        replace(fault, hint=hints.near(fault.word, _names(document, fault.near).keys()))
        if fault.near
        else fault
        for fault in sections.faults + scanner.faults
    ]
    placed = place(found, document, text) if found else []
    errors = [d for d in placed if d.severity == "error"]
    template = Template(
        version,
        description,
        schemas,
        groups,
        resources,
        outputs,
        (*_quoted(warnings, text), *(d for d in placed if d.severity != "error")),
        {key: _names(document, key) for key in ("parameters", "outputs")},
    )
    if errors:
        raise FaultyTemplate(errors, template)
    return template


def plain_data(source: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Return an object sent by a client as plain dicts and lists, its size checked.

    Raises:
        InvalidTemplate: it is nested too deep or holds what JSON cannot.
    """
    document = dict(source)
    check_size(document, limits, "template")
    return document


def place(faults: Iterable[Fault], document: Mapping[str, Any], text: bytes | str | None) -> list[Diagnostic]:
    """Return the faults as diagnostics in document order, with line and column when there is a text."""
    order = _Order(document)
    faults = sorted(faults, key=lambda fault: order.of(fault.path))
    places = {} if text is None else locate(text, [fault.path for fault in faults])
    lines = [] if text is None else source_lines(text)
    placed = []
    for fault in faults:
        line, column = places.get(fault.path, (None, None))
        placed.append(
            Diagnostic(
                code=fault.code,
                message=fault.message,
                path=path_text(fault.path),
                line=line,
                column=column,
                excerpt=excerpt(lines, line, column)[0],
                hint=fault.hint,
                severity="warning" if fault.warning else "error",
                heat_type=fault.heat_type,
            )
        )
    return placed


class _Order:
    """Orders paths as the document does."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._positions: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        """Return a key to sort by."""
        value: Any = self._document
        places = []
        for part in path:
            if isinstance(value, dict) and part in value:
                known = self._positions.get(id(value))
                if known is None:
                    known = self._positions[id(value)] = {key: index for index, key in enumerate(value)}
                places.append(known[str(part)])
                value = value[part]
            elif isinstance(value, list) and isinstance(part, int):
                places.append(part)
                value = value[part] if part < len(value) else None
            else:
                break
        return tuple(places)


def _names(document: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    body = document.get(section)
    return body if isinstance(body, dict) else NOTHING


def _quoted(warnings: list[Diagnostic], text: bytes | str | None) -> list[Diagnostic]:
    """Return the parser's warnings with their source lines."""
    lines = source_lines(text) if text is not None and warnings else []
    return [replace(d, excerpt=excerpt(lines, d.line, d.column)[0]) for d in warnings]
