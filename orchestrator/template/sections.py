"""The static rules of a template's sections (spec/hot-language.md §3, §4.1, §7).

Every rule that is broken becomes a `Fault` with its path; nothing here stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.errors import InvalidTemplate
from orchestrator.template import versions
from orchestrator.template.definition import NOTHING, OutputDefinition, ResourceDefinition, frozen
from orchestrator.template.diagnostics import Hints, Path
from orchestrator.template.functions import References
from orchestrator.template.parameters import RESERVED, ParameterSchema
from orchestrator.template.scan import Fault, Scanner

DESCRIPTION: Final = "No description"
OUTPUT_DESCRIPTION: Final = "No description given"

SECTIONS: Final = ("description", "parameter_groups", "parameters", "resources", "outputs")
RESOURCE_KEYS: Final = frozenset(
    {"type", "properties", "metadata", "depends_on", "update_policy", "deletion_policy", "description"}
)
COMMON_KEYS: Final = frozenset({"type", "properties", "metadata", "depends_on"})
LATER_RESOURCE_KEYS: Final = frozenset({"condition", "external_id"})
OUTPUT_KEYS: Final = frozenset({"value", "description"})
POLICIES: Final = ("Delete", "Retain", "Snapshot")
NOBODY: Final[frozenset[str]] = frozenset()


class Sections:
    """Reads one document section by section. `faults` gathers what is wrong, in no particular order."""

    def __init__(self, document: Mapping[str, Any], version: str) -> None:
        """Look at nothing yet."""
        self._document = document
        self._version = version
        self._conditions = version >= versions.WITH_CONDITIONS
        self._hints = Hints()
        self.faults: list[Fault] = []

    def check_names(self) -> None:
        """Refuse sections that the version does not have."""
        for name, body in self._document.items():
            if name in SECTIONS or name == versions.HOT_KEY:
                continue
            if name == "conditions" and self._conditions:
                if body:
                    self._fault("conditions-not-supported-yet", "Conditions are not supported yet.", (name,))
                continue
            hint = self._hints.near(name, SECTIONS)
            self._fault(
                "unknown-section",
                f"The template section is invalid: {name}",
                (name,),
                hint,
                heat_type="InvalidTemplateSection",
            )

    def description(self) -> str:
        """Return the text of `description`."""
        text = self._document.get("description")
        if isinstance(text, (dict, list)):
            self._fault("wrong-type", "description must be a string", ("description",))
        return DESCRIPTION if text is None else str(text)

    def parameters(self) -> dict[str, ParameterSchema]:
        """Return the declared parameters that can be read."""
        made = {}
        for name, body in self._section("parameters"):
            if name in RESERVED:
                self._fault("reserved-name", f"The parameter name ({name}) is reserved", ("parameters", name))
                continue
            try:
                made[name] = ParameterSchema.from_hot(name, body, self._version)
            except InvalidTemplate as error:
                for fault in error.diagnostics:
                    path: Path = ("parameters", name, *_parts(fault.path))
                    self._fault(fault.code, fault.message, path, fault.hint, fault.heat_type)
        return made

    def parameter_groups(self) -> list[Any]:
        """Return the groups as written."""
        section = "parameter_groups"
        groups = self._document.get(section)
        if groups is None:
            return []
        if not isinstance(groups, list):
            self._group_fault((section,), section, "The parameter_groups should be a list.")
            return []
        declared = self._names("parameters")
        grouped: set[str] = set()
        for index, group in enumerate(groups):
            path: Path = (section, index)
            if not isinstance(group, dict):
                self._group_fault(path, f"{section}[{index}]", "A parameter group must be a map.")
                continue
            label = f"{section}.{group.get('label') or ''}"
            for key in group.keys() - {"label", "description", "parameters"}:
                self._group_fault(
                    (*path, key), label, f'"{key}" is not a valid keyword inside a parameter group.'
                )
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
                    hint = self._hints.near(str(name), declared)
                    why = f"The grouped parameter {name} does not reference a valid parameter."
                    self._group_fault(where, label, why, hint)
                elif name in grouped:
                    why = f"The {name} parameter must be assigned to one parameter group only."
                    self._group_fault(where, label, why)
                else:
                    grouped.add(name)
        return groups

    def resources(self, scanner: Scanner) -> dict[str, ResourceDefinition]:
        """Return the resources that can be read."""
        parameters = self._names("parameters")
        allowed = RESOURCE_KEYS | LATER_RESOURCE_KEYS if self._conditions else RESOURCE_KEYS
        made = {}
        for name, body in self._section("resources"):
            if not isinstance(body, dict):
                self._not_a_map("resources", name, body)
                continue
            if name in parameters:
                self._fault("duplicate-name", f"Duplicate names {{{name!r}}}", ("resources", name))
            if "/" in name or not name:
                wrong = 'Resource name may not contain "/"' if name else "Resource name may not be empty"
                self._fault("bad-name", wrong, ("resources", name))
            if not body.keys() <= allowed:
                self._resource_keys(name, body, allowed)
            for key in LATER_RESOURCE_KEYS & body.keys() if self._conditions else ():
                message = f'The resource key "{key}" is not supported yet.'
                self._fault(f"{key.replace('_', '-')}-not-supported-yet", message, ("resources", name, key))
            made[name] = self._resource(name, body, scanner)
        return made

    def outputs(self, scanner: Scanner) -> dict[str, OutputDefinition]:
        """Return the outputs that can be read."""
        made = {}
        for name, body in self._section("outputs"):
            if not isinstance(body, dict):
                self._not_a_map("outputs", name, body)
                continue
            for key in body.keys() - OUTPUT_KEYS:
                path: Path = ("outputs", name, key)
                if key == "condition" and self._conditions:
                    message = 'The output key "condition" is not supported yet.'
                    self._fault("condition-not-supported-yet", message, path)
                else:
                    message = f'"{key}" is not a valid keyword inside a output definition'
                    self._fault("unknown-key", message, path, self._hints.near(key, OUTPUT_KEYS))
            if "value" not in body:
                self._fault("missing-value", "Each output must contain a value key.", ("outputs", name))
                continue
            found = References()
            scanner.scan(body["value"], found, ("outputs", name, "value"), f"outputs.{name}.value")
            made[name] = output(name, body, found)
        return made

    def _resource(self, name: str, body: dict[str, Any], scanner: Scanner) -> ResourceDefinition:
        found = References()
        kind = body.get("type")
        if kind is None:
            self._fault("missing-type", "Each resource must contain a type key.", ("resources", name))
        elif not isinstance(kind, str):
            self._resource_type(name, "type", "string")
        for key, called in (("properties", "Properties"), ("metadata", "Metadata")):
            part = body.get(key)
            if part is not None:
                if part.__class__ is not dict:
                    self._resource_type(name, key, "object")
                else:
                    scanner.scan(part, found, ("resources", name, key), f"{name}.{called}")
        if not body.keys() <= COMMON_KEYS:
            self._policies(name, body, found, scanner)
        needs = frozenset(found.requires)
        if body.get("depends_on") is not None:
            needs |= frozenset(self._depends_on(name, body["depends_on"]))
        attributes = frozen(found.attributes) if found.attributes else NOTHING
        used = frozenset(found.parameters) if found.parameters else NOBODY
        return ResourceDefinition(name, str(kind), body, needs, attributes, used)

    def _policies(self, name: str, body: dict[str, Any], found: References, scanner: Scanner) -> None:
        if isinstance(body.get("description"), (dict, list)):
            self._resource_type(name, "description", "string")
        update, deletion = body.get("update_policy"), body.get("deletion_policy")
        if update is not None:
            if not isinstance(update, dict):
                self._resource_type(name, "update_policy", "object")
            self._scan_without_order(name, "update_policy", update, found, scanner)
        if isinstance(deletion, dict):
            self._scan_without_order(name, "deletion_policy", deletion, found, scanner)
        elif deletion is not None and not isinstance(deletion, str):
            self._resource_type(name, "deletion_policy", "string")
        elif deletion is not None:
            known = POLICIES + tuple(p.lower() for p in POLICIES) if self._conditions else POLICIES
            if deletion not in known:
                message = f'Invalid deletion policy "{deletion}"'
                hint = self._hints.near(deletion, known) or f"one of {', '.join(POLICIES)}"
                self._fault("bad-policy", message, ("resources", name, "deletion_policy"), hint)

    def _scan_without_order(
        self, name: str, key: str, value: Any, found: References, scanner: Scanner
    ) -> None:
        # What a policy refers to must exist; only its parameters count for what the resource is.
        aside = References()
        scanner.scan(value, aside, ("resources", name, key), f"{name}.{key}")
        found.parameters |= aside.parameters

    def _depends_on(self, name: str, value: Any) -> Iterator[str]:
        path: Path = ("resources", name, "depends_on")
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list):
            self._resource_type(name, "depends_on", "list or string")
            return
        known = self._names("resources")
        for index, item in enumerate(items):
            if isinstance(item, str) and item in known:
                yield item
                continue
            self._fault(
                "unknown-resource",
                f'The specified reference "{item}" (in {name}.DependsOn) is incorrect.',
                path if isinstance(value, str) else (*path, index),
                self._hints.near(str(item), known),
                "InvalidTemplateReference",
            )

    def _resource_keys(self, name: str, body: dict[str, Any], allowed: frozenset[str]) -> None:
        for key in body.keys() - allowed:
            hint = self._hints.near(key, allowed)
            if key in LATER_RESOURCE_KEYS:
                hint = f"{key} came with version {versions.WITH_CONDITIONS}"
            message = f"Invalid keyword(s) inside a resource definition: {key}"
            self._fault("unknown-key", message, ("resources", name, key), hint)

    def _section(self, section: str) -> Iterator[tuple[str, Any]]:
        body = self._document.get(section)
        if body is None:
            return
        if not isinstance(body, dict):
            self._not_a_map(section, "", body)
            return
        yield from body.items()

    def _names(self, section: str) -> Mapping[str, Any]:
        body = self._document.get(section)
        return body if isinstance(body, dict) else {}

    def _not_a_map(self, section: str, name: str, body: Any) -> None:
        message = (
            f'"{section}" must contain a map of {section[:-1]} maps. Found a [{type(body).__name__}] instead'
        )
        self._fault(f"{section[:-1]}-not-a-map", message, (section, name) if name else (section,))

    def _resource_type(self, name: str, key: str, wanted: str) -> None:
        self._fault("wrong-type", f"Resource {name} {key} type must be {wanted}", ("resources", name, key))

    def _group_fault(self, path: Path, place: str, why: str, hint: str = "") -> None:
        self._fault("parameter-groups", f"Parameter Groups error: {place}: {why}", path, hint)

    def _fault(
        self, code: str, message: str, path: Path, hint: str = "", heat_type: str = "StackValidationFailed"
    ) -> None:
        self.faults.append(Fault(code, message, path, hint, heat_type))


def output(name: str, body: Mapping[str, Any], found: References) -> OutputDefinition:
    """Return an output as written."""
    text = body.get("description")
    return OutputDefinition(
        name,
        body["value"],
        OUTPUT_DESCRIPTION if text is None else str(text),
        frozenset(found.requires),
        frozen(found.attributes),
        frozenset(found.parameters),
    )


def _parts(path: str) -> Path:
    """Return the parts of a path inside a parameter: ``default``, ``constraints[1]``, or none."""
    name, _, index = path.partition("[")
    if not name:
        return ()
    return (name, int(index[:-1])) if index else (name,)
