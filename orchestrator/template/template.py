"""Parsed and checked templates.

The entry point is `read`, which returns a `Draft`: the part that is independent of parameter values. Its
`define` takes the values, decides the conditions and returns the `Template`. `load` combines both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.conditions import Conditions
from orchestrator.template.definition import OutputDefinition, RepeatedDefinitions, ResourceDefinition
from orchestrator.template.diagnostics import Hints, Path, excerpt, path_text, source_lines
from orchestrator.template.expression_scanner import ANY, AllNames, Fault, Names, Scanner
from orchestrator.template.formats import Format, format_named, format_of
from orchestrator.template.functions import References
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits, check_size, locate, parse
from orchestrator.template.resource_registry_entries import is_template
from orchestrator.template.resource_rules import ResourceReader
from orchestrator.template.section_rules import DESCRIPTION, Sections, output


@dataclass(frozen=True, slots=True)
class Template:
    """A template with decided conditions. Immutable, without values: those are `ParameterValues`."""

    version: str  # the name of its format: for HOT the date, never an alias
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: list[Any]
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    warnings: tuple[Diagnostic, ...] = ()
    mappings: JsonMapping = field(default_factory=dict, repr=False)
    written: JsonMapping = field(default_factory=dict, repr=False)  # the parameters as in the text
    excluded_outputs: Mapping[str, str] = field(default_factory=dict)  # descriptions; no condition holds

    @property
    def form(self) -> Format:
        """Return the format it is written in."""
        return format_named(self.version)

    def outline(self) -> JsonObject:
        """Return all data for showing a stack, as JSON: everything except the resources."""
        resources = self.resources
        kinds = resources.samples() if isinstance(resources, RepeatedDefinitions) else resources.values()
        return {
            "version": self.version,
            "description": self.description,
            "parameters": self.written,
            "parameter_groups": self.parameter_groups,
            "outputs": {
                name: {"value": definition.value, "description": definition.description}
                for name, definition in self.outputs.items()
            },
            "unwanted_outputs": self.excluded_outputs,
            "mappings": self.mappings,
            "templates": sorted({definition.type for definition in kinds if is_template(definition.type)}),
        }

    @classmethod
    def from_outline(cls, outline: JsonMapping) -> Template:
        """Return the template that `outline()` described, without its resources."""
        form, mappings = format_named(outline["version"]), outline.get("mappings") or {}
        schemas = {
            name: form.read_parameter(name, body, form.rules) for name, body in outline["parameters"].items()
        }
        resources = AllNames(but=schemas.keys() | set(form.pseudo))  # a `Ref` may mean either
        scanner = Scanner(form, Names(ANY, resources, ANY), _no_conditions(form))
        outputs = {}
        for name, body in outline["outputs"].items():
            references = References()
            scanner.scan(body["value"], references)
            outputs[name] = output(name, body["value"], body.get("description"), references)
        return cls(
            form.name,
            outline.get("description") or DESCRIPTION,
            schemas,
            outline.get("parameter_groups") or [],
            {},
            outputs,
            mappings=mappings,
            written=outline["parameters"],
            excluded_outputs=outline.get("unwanted_outputs") or {},
        )


class FaultyTemplate(InvalidTemplate):
    """A template with language faults; `rest` is the valid part, for finding further faults."""

    def __init__(self, diagnostics: Sequence[Diagnostic], rest: Template) -> None:
        """Store the faults and the valid part."""
        super().__init__(diagnostics)
        self.rest = rest


@dataclass(frozen=True, slots=True)
class Draft:
    """The part of a template that is independent of parameter values."""

    form: Format
    document: JsonMapping = field(repr=False)
    text: bytes | str | None = field(repr=False)
    sections: Sections = field(repr=False)
    description: str
    parameters: Mapping[str, ParameterSchema]
    parameter_groups: list[Any]
    mappings: JsonMapping = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def declared(self) -> frozenset[str]:
        """The names of all parameters, readable or not."""
        return frozenset(self.sections.names(self.form.keywords.parameters))

    def define(self, values: ParameterValues | None = None) -> Template:
        """Return the template for these values; without values, dependent parts stay undecided.

        May be called once: faults are collected in the sections.

        Raises:
            InvalidTemplate: lists all faults in document order; without line and column if the template
                was an object.
        """
        sections, form, keywords = self.sections, self.form, self.form.keywords
        conditions = Conditions(form, sections.conditions(), values, self.mappings)
        sections.check_conditions(conditions)
        snippets = ResourceReader(sections, conditions)
        parameters = sections.names(keywords.parameters).keys() | set(form.pseudo)
        scanner = Scanner(form, Names(parameters, snippets.included.keys(), self.mappings.keys()), conditions)
        resources = snippets.read(scanner)
        outputs = sections.outputs(scanner, conditions)
        sections.warn_of_unused(conditions)
        placed = self._placed(sections.faults.all + scanner.faults)
        errors = [d for d in placed if d.severity == "error"]
        template = Template(
            form.name,
            self.description,
            self.parameters,
            self.parameter_groups,
            resources,
            outputs,
            (*_quoted(self.warnings, self.text), *(d for d in placed if d.severity != "error")),
            self.mappings,
            sections.names(keywords.parameters),
            sections.excluded_outputs,
        )
        if errors:
            raise FaultyTemplate(errors, template)
        return template

    def _placed(self, faults: Sequence[Fault]) -> list[Diagnostic]:
        """Return faults with suggestions and locations."""
        if not faults:
            return []
        hints = Hints()
        hinted = [replace(fault, hint=self._hint(fault, hints)) if fault.near else fault for fault in faults]
        return place(hinted, self.document, self.text)

    def _hint(self, fault: Fault, hints: Hints) -> str:
        """Return the hint for an unknown name; an existing resource is unknown if its condition is false."""
        resources = self.sections.names(self.form.keywords.resources)
        if fault.near != "mappings" and fault.name in resources:
            body = resources[fault.name]
            condition = body.get(self.form.keywords.condition) if isinstance(body, Mapping) else None
            named = f' "{condition}"' if isinstance(condition, str) else ""
            return f'the resource "{fault.name}" does not exist: its condition{named} is false'
        names = self.sections.names(getattr(self.form.keywords, fault.near))
        if fault.near == "parameters":
            return hints.near(fault.name, names.keys()) or hints.near(fault.name, resources.keys())
        return hints.near(fault.name, names.keys())


def read(source: bytes | str | JsonMapping, limits: Limits) -> Draft:
    """Read a template from a text or an object.

    Raises:
        InvalidTemplate: unreadable, or of an unknown format. `define` reports all other faults.
        LimitExceeded: it is too large.
    """
    warnings: list[Diagnostic] = []
    text = None if isinstance(source, Mapping) else source
    if isinstance(source, Mapping):
        document = plain_data(source, limits)
    else:
        document = parse(source, limits, warnings=warnings)
    return read_document(document, text, warnings)


def read_document(
    document: JsonMapping, text: bytes | str | None = None, warnings: Sequence[Diagnostic] = ()
) -> Draft:
    """Return the draft of a template parsed from `text`.

    Raises:
        InvalidTemplate: unknown format.
    """
    try:
        form = format_of(document, from_text=text is not None)
    except InvalidTemplate as error:
        faults = [
            Fault(d.code, d.message, (d.path,) if d.path else (), d.hint, d.heat_type)
            for d in error.diagnostics
        ]
        raise InvalidTemplate(place(faults, document, text)) from None
    sections = Sections(document, form)
    sections.check_names()
    return Draft(
        form,
        document,
        text,
        sections,
        sections.description(),
        sections.parameters(),
        sections.parameter_groups(),
        sections.mappings(),
        tuple(warnings),
    )


def load(
    source: bytes | str | JsonMapping, limits: Limits, values: ParameterValues | None = None
) -> Template:
    """Read a template and define it with these values; see `read` and `Draft.define`."""
    return read(source, limits).define(values)


def _no_conditions(form: Format) -> Conditions:
    return Conditions(form, {}, ParameterValues({}), {})


def plain_data(source: JsonMapping, limits: Limits) -> JsonObject:
    """Return an object of a request as plain dicts and lists of limited size.

    Raises:
        InvalidTemplate: nested too deep, or with values that JSON cannot represent.
    """
    document = dict(source)
    check_size(document, limits, "template")
    return document


def place(faults: Iterable[Fault], document: JsonMapping, text: bytes | str | None) -> list[Diagnostic]:
    """Return the faults as diagnostics in document order, with line and column if the text is available."""
    order = DocumentOrder(document)
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


class DocumentOrder:
    """Orders paths as the document does."""

    def __init__(self, document: JsonMapping) -> None:
        self._document = document
        self._positions: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        """Return a sort key."""
        value: Any = self._document
        places = []
        for part in path:
            if isinstance(value, dict) and part in value:
                position = self._positions.get(id(value))
                if position is None:
                    position = self._positions[id(value)] = {key: index for index, key in enumerate(value)}
                places.append(position[str(part)])
                value = value[part]
            elif isinstance(value, list) and isinstance(part, int):
                places.append(part)
                value = value[part] if part < len(value) else None
            else:
                break
        return tuple(places)


def _quoted(warnings: Sequence[Diagnostic], text: bytes | str | None) -> list[Diagnostic]:
    """Return the parser's warnings with their source lines."""
    lines = source_lines(text) if text is not None and warnings else []
    return [replace(d, excerpt=excerpt(lines, d.line, d.column)[0]) for d in warnings]
