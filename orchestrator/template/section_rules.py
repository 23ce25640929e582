"""The static rules of a template's sections (docs/internals/hot-language.md §3, §6).

Every violated rule becomes a `Fault` with its path; the checks never stop at the first fault. The rules of
resources are in `resource_rules.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from orchestrator.errors import InvalidTemplate
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.conditions import DROPPED, Conditions
from orchestrator.template.definition import OutputDefinition, frozen
from orchestrator.template.diagnostics import Hints, Path, path_text
from orchestrator.template.expression_scanner import Fault, Scanner
from orchestrator.template.formats import Format
from orchestrator.template.function_view import FACADE_PARAMETERS, UNKNOWN
from orchestrator.template.functions import FunctionError, References
from orchestrator.template.parameters import ParameterSchema

CONSTRAINT: Final = re.compile(r"(constraints)\[(\d+)\]")
DESCRIPTION: Final = "No description"
OUTPUT_DESCRIPTION: Final = "No description given"


class Faults:
    """Collects the faults of a template, unordered."""

    def __init__(self) -> None:
        """Start without faults."""
        self.hints = Hints()
        self.all: list[Fault] = []

    def add(
        self, code: str, message: str, path: Path, hint: str = "", heat_type: str = "StackValidationFailed"
    ) -> None:
        """Add a fault."""
        self.all.append(Fault(code, message, path, hint, heat_type))

    def warn(self, code: str, message: str, path: Path, hint: str = "") -> None:
        """Add a warning: valid, but probably not intended."""
        self.all.append(Fault(code, message, path, hint, warning=True))

    def of_function(self, error: FunctionError, path: Path) -> None:
        """Add an error of a function somewhere under `path`."""
        where = (*path, *reversed(error.keys))
        self.add(error.code, error.text(path_text(where)), where, error.hint, error.heat_type)


class Sections:
    """Parses a document section by section, as far as possible without parameter values."""

    def __init__(self, document: JsonMapping, form: Format) -> None:
        """Read no section yet."""
        self.document = document
        self.form = form
        self.keywords = form.keywords
        self.faults = Faults()
        self.excluded_outputs: dict[str, str] = {}  # descriptions of outputs whose condition is false

    def check_names(self) -> None:
        """Refuse sections that the format does not have."""
        allowed = self.keywords.sections()
        for name in self.document:
            if name not in allowed and name != self.form.key:
                self.faults.add(
                    "unknown-section",
                    f"The template section is invalid: {name}",
                    (name,),
                    self.faults.hints.near(str(name), allowed),
                    "InvalidTemplateSection",
                )

    def description(self) -> str:
        """Return the text of the description."""
        text = self.document.get(self.keywords.description)
        return DESCRIPTION if text is None else str(text)

    def parameters(self) -> dict[str, ParameterSchema]:
        """Return the declared parameters that can be read."""
        section, form = self.keywords.parameters, self.form
        made = {}
        for name, body in self.section(section):
            if name in form.reserved or name in FACADE_PARAMETERS:
                message = f"The parameter name ({name}) is reserved"
                self.faults.add("reserved-name", message, (section, name))
                continue
            try:
                made[name] = form.read_parameter(name, body, form.rules)
            except InvalidTemplate as error:
                for fault in error.diagnostics:
                    path: Path = (section, name, *_parts(fault.path))
                    self.faults.add(fault.code, fault.message, path, fault.hint, fault.heat_type)
        return made

    def parameter_groups(self) -> list[Any]:
        """Return the groups as written."""
        section = self.keywords.parameter_groups
        groups = self.document.get(section) if section else None
        if not groups:
            return []
        if not isinstance(groups, list):
            self._group_fault((section,), section, "The parameter_groups should be a list.")
            return []
        declared = self.names(self.keywords.parameters)
        grouped: set[str] = set()
        for index, group in enumerate(groups):
            path: Path = (section, index)
            if not isinstance(group, dict):
                self._group_fault(path, f"{section}[{index}]", "A parameter group must be a map.")
                continue
            label = f"{section}.{group.get('label') or ''}"
            for key in group.keys() - {"label", "description", "parameters"}:
                message = f'"{key}" is not a valid keyword inside a parameter group.'
                self.faults.warn("unknown-key", message, (*path, key))
            names = group.get("parameters")
            if names is None:
                self._group_fault(path, label, "The parameters must be provided for each parameter group.")
                continue
            if not isinstance(names, list):
                self._group_fault((*path, "parameters"), label, "The parameters should be a list.")
                continue
            for at, name in enumerate(names):
                where: Path = (*path, "parameters", at)
                if not isinstance(name, str) or name not in declared:
                    hint = self.faults.hints.near(str(name), declared.keys())
                    why = f"The grouped parameter {name} does not reference a valid parameter."
                    self._group_fault(where, label, why, hint)
                elif name in grouped:
                    why = f"The {name} parameter must be assigned to one parameter group only."
                    self._group_fault(where, label, why)
                else:
                    grouped.add(name)
        return groups

    def mappings(self) -> JsonObject:
        """Return the mappings that can be read: tables of tables."""
        section = self.keywords.mappings
        made: JsonObject = {}
        body = self.document.get(section) if section else None
        if body and not isinstance(body, dict):  # a fault only if used
            message = f"{section} must be a map of mappings; found a {type(body).__name__}"
            self.faults.warn("mapping-not-a-map", message, (section,))
            return made
        for name, table in self.section(section):
            rows = table.values() if isinstance(table, dict) else (None,)
            if isinstance(table, dict):
                made[name] = table
            if not all(isinstance(row, dict) for row in rows):  # a fault only if used
                message = f"Mapping {name} must be a map of maps"
                self.faults.warn("mapping-not-a-map", message, (section, name))
        return made

    def conditions(self) -> JsonMapping:
        """Return the conditions as written."""
        section = self.keywords.conditions
        body = self.document.get(section) if section else None
        if body is not None and not isinstance(body, dict):
            found = type(body).__name__
            message = (
                f"Conditions validation error: Condition definitions must be a map. Found a {found} instead"
            )
            self.faults.add("condition", message, (section,))
        return self.names(section)

    def check_conditions(self, conditions: Conditions) -> None:
        """Reject malformed conditions, used or not."""
        section = self.keywords.conditions
        for name in self.names(section):
            for error in conditions.faults(name):
                self.faults.of_function(error, (section, name))

    def warn_of_unused(self, conditions: Conditions) -> None:
        """Warn about unused conditions that cannot be decided."""
        section = self.keywords.conditions
        for name, error in conditions.unused():
            self.faults.warn(error.code, error.text(f"{section}.{name}"), (section, name))

    def is_included(self, body: JsonMapping, path: Path, conditions: Conditions) -> bool:
        """Return whether the condition of a resource or an output is true or unknown."""
        key = self.keywords.condition
        if not key or key not in body:
            return True
        condition = body[key]
        if path[0] == self.keywords.resources:
            if not isinstance(condition, str | bool | dict):
                kinds = "string or boolean" if self.form.family == "cfn" else "string_or_boolean"
                message = f"Resource {path[1]} {key} type must be {kinds}"
                self.faults.add("wrong-type", message, (*path, key))
                return True
        elif condition is None:
            return True
        try:
            verdict = conditions.holds(condition)
        except FunctionError as error:
            self.faults.of_function(error, (*path, key))
            return True
        return verdict is UNKNOWN or bool(verdict)

    def outputs(self, scanner: Scanner, conditions: Conditions) -> dict[str, OutputDefinition]:
        """Return the valid outputs whose condition is not false."""
        keywords, section = self.keywords, self.keywords.outputs
        allowed = {keywords.value, keywords.description, keywords.condition} - {""}
        made = {}
        for name, body in self.section(section):
            path: Path = (section, name)
            place = f"Output validation error: {section}.{name}"
            if not isinstance(body, dict):
                found_type = type(body).__name__
                message = f"{place}: Output definitions must be a map. Found a {found_type} instead"
                self.faults.add("output-not-a-map", message, path)
                continue
            for key in body.keys() - allowed:
                message = f'"{key}" is not a valid keyword inside a output definition'
                hint = self.faults.hints.near(str(key), allowed)
                self.faults.warn("unknown-key", message, (*path, key), hint)
            if keywords.value not in body:
                message = f"{place}: Each output definition must contain a {keywords.value} key."
                self.faults.add("missing-value", message, path)
                continue
            if not self.is_included(body, path, conditions):
                self.excluded_outputs[name] = output(name, None, body.get(keywords.description)).description
                continue
            value, references = body[keywords.value], References()
            scanner.scan(value, references, (*path, keywords.value))
            if references.macros:
                value = self.expanded(value, conditions)
            made[name] = output(name, value, body.get(keywords.description), references)
        return made

    def expanded(self, value: object, conditions: Conditions) -> Any:
        """Return a value with expanded macros, None if it is dropped or faulty."""
        try:
            made = conditions.expand(value)
        except FunctionError:
            return None  # reported by the scanner
        return None if made is DROPPED else made

    def section(self, section: str) -> Iterator[tuple[str, Any]]:
        """Yield the members of a section; a section that is not a map is a fault, an empty section has
        none.
        """
        body = self.document.get(section) if section else None
        if not body:
            return
        if not isinstance(body, dict):
            self.not_a_map(section, "", body)
            return
        yield from body.items()

    def names(self, section: str) -> JsonMapping:
        """Return a section, {} if it is not a map."""
        body = self.document.get(section)
        return body if isinstance(body, dict) else {}

    def not_a_map(self, section: str, name: str, body: object) -> None:
        """Report a section or member that must be a map."""
        type_name = type(body).__name__
        message = f'"{section}" must contain a map of {section[:-1]} maps. Found a [{type_name}] instead'
        path = (section, name) if name else (section,)
        self.faults.add(f"{section[:-1].lower()}-not-a-map", message, path)

    def _group_fault(self, path: Path, place: str, why: str, hint: str = "") -> None:
        self.faults.add("parameter-groups", f"Parameter Groups error: {place}: {why}", path, hint)


def output(
    name: str, value: object, description: object, references: References | None = None
) -> OutputDefinition:
    """Return an output as written, with its references."""
    references = references or References()
    return OutputDefinition(
        name,
        value,
        OUTPUT_DESCRIPTION if description is None else str(description),
        frozenset(references.requires),
        frozen(references.attributes),
        frozenset(references.parameters),
    )


def _parts(path: str) -> Path:
    """Return the parts of a path inside a parameter: ``default``, ``constraints[1]``, or none."""
    if not path:
        return ()
    constraint = CONSTRAINT.fullmatch(path)
    return (constraint[1], int(constraint[2])) if constraint else (path,)
