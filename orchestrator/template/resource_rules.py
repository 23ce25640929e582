"""The static rules of a resource's snippet, and the definition it becomes
(docs/internals/hot-language.md §7).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template import versions
from orchestrator.template.conditions import DROPPED, Conditions
from orchestrator.template.definition import NO_ATTRIBUTES, NO_NAMES, ResourceDefinition, frozen
from orchestrator.template.diagnostics import Path
from orchestrator.template.expression_scanner import Scanner
from orchestrator.template.functions import FunctionError, References
from orchestrator.template.section_rules import Sections

POLICIES: Final = ("Delete", "Retain", "Snapshot")
MAX_NAME_LENGTH: Final = 255  # characters; a name is part of a key in the database
LATER_KEYS: Final = ("condition", "external_id")
# Keys of a definition whose references define no order: the names must exist, nothing more.
WITHOUT_ORDER: Final = ("update_policy", "deletion_policy", "external_id")


class ResourceReader:
    """Parses the resources of a template whose conditions can be decided."""

    def __init__(self, sections: Sections, conditions: Conditions) -> None:
        """Select the resources whose condition is true."""
        self.sections, self.conditions = sections, conditions
        self.faults, self.keywords, self.form = sections.faults, sections.keywords, sections.form
        self.included: dict[str, JsonObject] = {}
        self.absent: dict[str, JsonObject] = {}  # resources whose condition is false
        section = self.keywords.resources
        for name, body in sections.section(section):
            if not body:
                self._typeless((section, name))
            elif not isinstance(body, dict):
                sections.not_a_map(section, name, body)
            elif sections.is_included(body, (section, name), conditions):
                self.included[name] = body
            else:
                self.absent[name] = body
        self._meanings = self.keywords.resource_keys()
        self._known_keys = frozenset(self._meanings)
        self._as_written = all(key == meaning for key, meaning in self._meanings.items())
        self._ordinary = frozenset(
            {self.keywords.type, self.keywords.properties, self.keywords.metadata, self.keywords.depends_on}
        )

    def read(self, scanner: Scanner) -> dict[str, ResourceDefinition]:
        """Return the resources that can be read."""
        parameters = self.sections.names(self.keywords.parameters)
        section = self.keywords.resources
        made = {}
        for name, body in self.included.items():
            path: Path = (section, name)
            if name in parameters:
                self.faults.add("duplicate-name", f"Duplicate names {{{name!r}}}", path)
            if fault := _wrong_name(name):
                self.faults.add("bad-name", f"Resource name may not {fault}", path)
            made[name] = self._resource(name, body, path, scanner)
        aside = scanner.of_absent()
        for name, body in self.absent.items():
            self._resource(name, body, (section, name), aside)
        return made

    def _resource(self, name: str, body: JsonMapping, path: Path, scanner: Scanner) -> ResourceDefinition:
        keywords, references = self.keywords, References()
        if not body.keys() <= self._known_keys and not self.form.ignores_unknown_keys:
            self._unknown_keys(body, path)
        type_name = body.get(keywords.type)
        if type_name is None:
            self._typeless(path)
        elif not isinstance(type_name, str):
            self._wrong_type(path, keywords.type, "string")
        unused = References() if keywords.external_id and body.get(keywords.external_id) is not None else None
        for key, called in ((keywords.properties, "Properties"), (keywords.metadata, "Metadata")):
            if key in body:
                part = body[key]
                if part.__class__ is not dict:
                    self._wrong_type(path, key, "object")
                elif key == keywords.properties and unused is not None:
                    scanner.of_absent().scan(part, unused, (*path, key))
                else:
                    scanner.scan(part, references, (*path, key), f"{name}.{called}")
        macros = references.macros or (unused is not None and unused.macros)
        if not body.keys() <= self._ordinary:
            macros = self._policies(name, body, path, references, scanner) or macros
        needs = frozenset(references.requires)
        if keywords.depends_on in body:
            needs |= frozenset(
                self._depends_on(name, body[keywords.depends_on], (*path, keywords.depends_on))
            )
        return ResourceDefinition(
            name,
            str(type_name),
            self._normal(body, macros),
            needs,
            frozen(references.attributes) if references.attributes else NO_ATTRIBUTES,
            frozenset(references.parameters) if references.parameters else NO_NAMES,
            frozenset(references.files) if references.files else NO_NAMES,
            frozenset(references.mappings) if references.mappings else NO_NAMES,
        )

    def _normal(self, body: JsonMapping, macros: bool) -> JsonMapping:
        """Return a snippet under HOT's keys, its macros replaced, without its condition."""
        if self._as_written and not macros and "condition" not in body:
            return body
        made = {}
        for key, meaning in self._meanings.items():
            if key in body and meaning != "condition":
                value = body[key]
                if macros:
                    try:
                        value = self.conditions.expand(value)
                    except FunctionError:
                        value = None  # reported by the scanner
                if value is not DROPPED:
                    made[meaning] = value
        return made

    def _policies(
        self, name: str, body: JsonMapping, path: Path, references: References, scanner: Scanner
    ) -> bool:
        """Check the rarely used keys; return whether they contain macros."""
        keywords, aside = self.keywords, References()
        if keywords.description in body and not isinstance(body[keywords.description], str):
            self._wrong_type(path, keywords.description, "string")
        if (
            keywords.external_id
            and keywords.external_id in body
            and not self._may_be_text(body[keywords.external_id])
        ):
            self._wrong_type(path, keywords.external_id, "string")
        for meaning in WITHOUT_ORDER:
            key = getattr(keywords, meaning)
            if key and isinstance(body.get(key), dict | list):
                # The adopted physical resource must already exist.
                into = references if meaning == "external_id" else aside
                scanner.scan(body[key], into, (*path, key), f"{name}.{key}")
        if keywords.update_policy in body and not isinstance(body[keywords.update_policy], dict):
            self._wrong_type(path, keywords.update_policy, "object")
        deletion = body.get(keywords.deletion_policy)
        if isinstance(deletion, str):
            self._deletion_policy(deletion, (*path, keywords.deletion_policy))
        elif keywords.deletion_policy in body and not self._may_be_text(deletion):
            self._wrong_type(path, keywords.deletion_policy, "string")
        external = bool(keywords.external_id) and keywords.external_id in body
        if external and body.get(keywords.depends_on) and name not in self.absent:
            type_name, external = body.get(keywords.type), body[keywords.external_id]
            message = f"Invalid dependency with external {type_name} resource: {external}"
            self.faults.add(
                "external-id",
                message,
                (*path, keywords.depends_on),
                heat_type="InvalidExternalResourceDependency",
            )
        references.parameters |= aside.parameters
        references.files |= aside.files
        references.mappings |= aside.mappings
        return aside.macros or references.macros

    def _may_be_text(self, value: object) -> bool:
        """Return whether a value is a text, or a function that may evaluate to a text."""
        is_call = isinstance(value, dict) and len(value) == 1 and next(iter(value)) in self.form.functions
        return isinstance(value, str) or is_call

    def _deletion_policy(self, policy: str, path: Path) -> None:
        lower = self.form.family == "hot" and bool(self.form.condition_functions)
        allowed = POLICIES + tuple(p.lower() for p in POLICIES) if lower else POLICIES
        if policy not in allowed:
            hint = self.faults.hints.near(policy, allowed) or f"one of {', '.join(POLICIES)}"
            self.faults.add("bad-policy", f'Invalid deletion policy "{policy}"', path, hint)

    def _depends_on(self, name: str, value: object, path: Path) -> Iterator[str]:
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list):
            self._wrong_type(path[:-1], str(path[-1]), "list or string")
            return
        if not all(isinstance(item, str) for item in items):
            message = f"Resource {path[1]} {path[-1]} must be a list of strings"
            self.faults.add("wrong-type", message, path)
            return
        declared = self.sections.names(self.keywords.resources)
        for index, item in enumerate(items):
            if name in self.absent:
                continue
            if item in declared:
                if item in self.included:  # resources whose condition is false are not waited for
                    yield item
                continue
            self.faults.add(
                "unknown-resource",
                f'The specified reference "{item}" (in {name}) is incorrect.',
                path if isinstance(value, str) else (*path, index),
                self.faults.hints.near(item, declared.keys()),
                "InvalidTemplateReference",
            )

    def _unknown_keys(self, body: JsonMapping, path: Path) -> None:
        for key in body.keys() - self._known_keys:
            hint = self.faults.hints.near(str(key), self._known_keys)
            message = f'"{key}" is not a valid keyword inside a resource definition'
            if key in LATER_KEYS:
                hint = f"{key} was added in version {versions.WITH_CONDITIONS}"
                message = f"Invalid keyword(s) inside a resource definition: {key}"
            self.faults.add("unknown-key", message, (*path, key), hint)

    def _typeless(self, path: Path) -> None:
        called = path[0][:-1] if isinstance(path[0], str) else ""
        self.faults.add("missing-type", f"Each {called} must contain a {self.keywords.type} key.", path)

    def _wrong_type(self, path: Path, key: str, expected: str) -> None:
        message = f"Resource {path[1]} {key} type must be {expected}"
        self.faults.add("wrong-type", message, (*path, key))


def _wrong_name(name: str) -> str:
    """Return the fault in a resource's name, "" if it is valid."""
    if not name:
        return "be empty"
    if "/" in name:
        return 'contain "/"'
    return f"be longer than {MAX_NAME_LENGTH} characters" if len(name) > MAX_NAME_LENGTH else ""
