"""Validate a whole template against its resource types, before a stack is accepted.

Pure. No resource exists yet: a value that depends on a resource, or on a parameter without a value, is
unknown and breaks no rule. The language itself (sections, functions, references) was checked when the
template was parsed. Nested templates are validated as far as the request's files permit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from orchestrator.engine.validation.attribute_references import find_get_attr, has_attribute
from orchestrator.engine.validation.group_samples import group_fault, samples
from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.nested_faults import (
    in_file,
    nested_cycles,
    nested_path,
    nested_too_deep,
    not_yet_reported,
)
from orchestrator.engine.validation.nested_templates import (
    explicit_values,
    known_values,
    unknown_values,
    values_key,
)
from orchestrator.engine.validation.property_resolution import (
    BEFORE,
    Resolved,
    declares_deprecated,
    function_fault,
)
from orchestrator.engine.validation.type_resolution import TypeResolver, UnavailableType, UnknownType
from orchestrator.errors import Diagnostic, InvalidTemplate, did_you_mean
from orchestrator.resources.base import Fault, ResourceType, Value, read_update_policy
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.template_type import NestedTemplate, TemplateType
from orchestrator.schema.properties import deprecations, join
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.diagnostics import path_in_message, path_text
from orchestrator.template.formats import Keywords
from orchestrator.template.function_view import UNKNOWN
from orchestrator.template.functions import ALL, FunctionError
from orchestrator.template.functions.resolved_argument import measure
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

POLICIES: Final[Mapping[str, str]] = {"delete": "Delete", "retain": "Retain", "snapshot": "Snapshot"}
# Nested resources that are validated with actual values; beyond that number, without values.
MOST_NESTED: Final = 10_000
MOST_FAULTS: Final = 1_000  # reported for nested templates; a small request could cause millions
HIDDEN_POLICY: Final = "Invalid deletion policy"
MISSING_PARAMETER: Final = "UserParameterMissing"
RETIRED: Final = frozenset({"DEPRECATED", "UNSUPPORTED", "HIDDEN"})
# Faults that are independent of values.
STRUCTURE: Final = frozenset({"unknown-property", "unimplemented-property"})

# Runs a resource's provider check: its name, its type, and its known properties.
Inquire = Callable[[str, ResourceType, Mapping[str, Value]], Sequence[Fault]]


def validate_stack(
    template: Template,
    values: ParameterValues,
    kinds: TypeResolver,
    *,
    strict: bool,
    stack_timeout_seconds: float = math.inf,
    inquire: Inquire | None = None,
) -> list[Diagnostic]:
    """Return all faults and warnings about the resources and outputs of a stack (see `severity`).

    The order is Heat's: types, update policies, then the template's order. Unless `strict` (for a stack that
    is to be created), faults of values and of nested templates are warnings, and waits are not compared with
    the timeout. `inquire` runs provider checks, if given.
    """
    tree = _Tree(strict, stack_timeout_seconds if strict else math.inf, inquire)
    check = _StackCheck(template, values, kinds, tree)
    found = check.run()
    if check.resources > kinds.type_environment.max_resources:
        message = "Request limit exceeded: Maximum resources per stack exceeded."
        limit = Diagnostic("too-many-resources", message, heat_type="RequestLimitExceeded")
        found.append(limit if strict else replace(limit, severity="warning"))
    return found


@dataclass(slots=True)
class _Tree:
    """State shared by the checks of a tree of templates."""

    strict: bool
    timeout_seconds: float
    inquire: Inquire | None = None
    looked_at: int = 0  # nested resources
    sizes: dict[object, int] = field(default_factory=dict)  # number of resources of each checked nested stack
    # reported faults of nested templates, and reported retired types
    told: set[object] = field(default_factory=set)
    # id(type) -> whether it declares deprecated properties
    deprecated: dict[int, bool] = field(default_factory=dict)


class _StackCheck:
    """A pass over a template; `resources` is the number of resources in it and below."""

    def __init__(
        self,
        template: Template,
        values: ParameterValues,
        kinds: TypeResolver,
        tree: _Tree,
        nested: bool = False,
    ) -> None:
        self.template, self.kinds, self.tree, self.nested = template, kinds, tree, nested
        self.words: Keywords = template.form.keywords
        self.view = HypotheticalStack(template, values, kinds.files, nested=nested)
        self.resources = len(template.resources)
        self.types: list[Diagnostic] = []
        self.policies: list[Diagnostic] = []

    def run(self) -> list[Diagnostic]:
        """Check the resources, then the outputs."""
        rest: list[Diagnostic] = []
        for definition in self.template.resources.values():
            rest += self._resource(definition)
        for output in self.template.outputs.values():
            if output.dep_attrs:
                place = f"{self.words.outputs}.{output.name}.{self.words.value}"
                rest += self._attributes(output.dep_attrs, [(output.value, place)])
        return [*self.types, *self.policies, *rest]

    def _of_values(self, faults: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
        """Return faults with their severity: before a create, values may still change."""
        if self.tree.strict or self.nested:  # the caller sets the severity for a nested stack as a whole
            return faults
        return [replace(fault, severity="warning") for fault in faults]

    def _resource(self, definition: ResourceDefinition) -> Iterator[Diagnostic]:
        place = f"{self.words.resources}.{definition.name}"
        kind = self.kinds.of(definition)
        if isinstance(kind, UnknownType):
            yield from self._missing(definition, kind, f"{place}.{self.words.type}")
        else:
            if kind.support_status in RETIRED:
                yield from self._retired(kind, f"{place}.{self.words.type}")
            yield from self._typed(definition, kind, place)
        if definition.body.get("metadata"):
            yield from self._evaluated(definition.body["metadata"], f"{place}.{self.words.metadata}")

    def _missing(self, definition: ResourceDefinition, kind: UnknownType, path: str) -> Iterable[Diagnostic]:
        if not kind.unavailable:
            self.types += kind.at(path)
            return ()
        external = definition.body.get("external_id") is not None
        # An external resource needs no service of ours before the create.
        return () if external and not self.tree.strict else kind.at(path)

    def _typed(self, definition: ResourceDefinition, kind: ResourceType, place: str) -> Iterator[Diagnostic]:
        body, words = definition.body, self.words
        if body.get("external_id") is not None:  # all else of it is unused
            path = f"{place}.{words.external_id}"
            self.view.missed = None
            yield from self._evaluated(body["external_id"], path)
            yield from self._missed(path)
            return
        if body.get("deletion_policy") is not None:
            yield from self._deletion_policy(body["deletion_policy"], kind, place)
        if isinstance(kind, UnavailableType):
            return
        if body.get("update_policy"):
            self.policies += self._update_policy(body["update_policy"], kind, place)
        if definition.dep_attrs:
            sections = [
                (body.get("properties"), f"{place}.{words.properties}"),
                (body.get("metadata"), f"{place}.{words.metadata}"),
            ]
            yield from self._attributes(definition.dep_attrs, sections)
        yield from self._properties(definition, kind, place)

    def _evaluated(self, value: Any, path: str) -> Iterable[Diagnostic]:
        """Return the faults of evaluating a value's functions."""
        self.view.used_secret = False
        try:
            self.view.resolve(value, path)
        except InvalidTemplate as error:
            return self._of_values(error.diagnostics)
        return ()

    def _retired(self, kind: ResourceType, path: str) -> Iterator[Diagnostic]:
        """Warn once of a retired type, where it is used first."""
        if kind.name not in self.tree.told:
            self.tree.told.add(kind.name)
            message = f"The resource type {kind.name} is {kind.support_status.lower()}."
            yield Diagnostic("retired-type", message, path, severity="warning")

    # Properties.

    def _properties(
        self, definition: ResourceDefinition, kind: ResourceType, place: str
    ) -> Iterator[Diagnostic]:
        path = f"{place}.{self.words.properties}"
        secret = kind.secret_parameters if isinstance(kind, TemplateType) else ()
        resolved = Resolved(definition.body, self.view, kind, place, path, BEFORE, secret)
        given, faults = kind.read_properties(resolved.values, path=path, unknown=UNKNOWN)
        structure = [f for f in faults if f.code in STRUCTURE and f.path == path] if faults else faults
        yield from map(resolved.of, structure)
        failed = bool(resolved.errors)
        if len(faults) > len(structure):
            resolved.report(fault for fault in faults if fault not in structure)
        if not faults and not failed:
            others = self.template.resources
            wrong = list(kind.validate(given, self.tree.timeout_seconds))
            wrong += kind.validate_among(definition.name, given, others)
            if not wrong and self.tree.inquire is not None:
                wrong += self.tree.inquire(definition.name, kind, given)
            resolved.report((), wrong)
        if resolved.errors:
            yield from self._of_values(resolved.errors)
        if self._has_deprecated(kind):
            for warning in deprecations(kind.properties, resolved.values, path=path):
                yield replace(resolved.of(warning), severity="warning")
        if isinstance(kind, TemplateType):
            build = partial(known_values, kind, given, resolved)
            yield from self._of_values(self._inside(kind, place, path, build))
        elif isinstance(kind, GroupType):
            inside = self._in_group(definition, kind, given, resolved)
            yield from self._of_values(group_fault(fault, kind, place, path) for fault in inside)
        elif isinstance(kind, NestedType) and not faults and not failed:
            yield from self._of_values(self._named(kind, place, given, resolved))

    def _has_deprecated(self, kind: ResourceType) -> bool:
        known = self.tree.deprecated.get(id(kind))
        if known is None:
            known = self.tree.deprecated[id(kind)] = any(map(declares_deprecated, kind.properties.values()))
        return known

    # Policies.

    def _update_policy(self, policy: Any, kind: ResourceType, place: str) -> Iterator[Diagnostic]:
        path = f"{place}.{self.words.update_policy}"
        self.view.used_secret, self.view.made = False, 0
        try:
            given = self.view.resolved(policy)
            measure(given)
        except FunctionError as error:
            yield replace(function_fault(error, path, self.view, BEFORE), code="update-policy")
            return
        if given is UNKNOWN or not given:
            return
        if not isinstance(given, Mapping):
            yield Diagnostic("update-policy", f"{BEFORE}{path}: it is not a map", path)
            return
        secret = kind.update_policy if self.view.used_secret else ()
        shown = Resolved({}, self.view, kind, place, path, BEFORE, secret)
        for fault in read_update_policy(kind, given, path=path, unknown=UNKNOWN)[1]:
            yield replace(shown.of(fault), code="update-policy")

    def _deletion_policy(self, policy: Any, kind: ResourceType, place: str) -> Iterator[Diagnostic]:
        path = f"{place}.{self.words.deletion_policy}"
        self.view.used_secret = self.view.used_uncreated = False
        self.view.missed = None
        try:
            policy = self.view.resolve(policy, path)
        except InvalidTemplate as error:
            yield from error.diagnostics
            return
        if policy is UNKNOWN:
            if self.view.used_uncreated:  # it must be known at the delete, when no other resource may exist
                yield Diagnostic("deletion-policy", f"{path}: it cannot depend on a resource", path)
            yield from self._missed(path)
            return
        meant = POLICIES.get(policy.lower()) if isinstance(policy, str) else None
        if meant is None:
            said = HIDDEN_POLICY if self.view.used_secret else f'Invalid deletion policy "{policy}"'
            yield Diagnostic("deletion-policy", said, path)
        elif meant == "Snapshot" and not kind.can_snapshot:
            yield Diagnostic("deletion-policy", f'{path}: "{meant}" deletion policy not supported', path)

    def _missed(self, path: str) -> Iterator[Diagnostic]:
        """Yield a fault for a parameter without a value if the value is required even without a create.

        For a create, it was reported already.
        """
        if self.view.missed is not None and not self.tree.strict and not self.nested:
            message = f"The Parameter ({self.view.missed}) was not provided."
            yield Diagnostic("missing-parameter", message, path, heat_type=MISSING_PARAMETER)

    # Attributes.

    def _attributes(
        self, used: Mapping[str, Iterable[str]], values: Sequence[tuple[Any, str]]
    ) -> Iterator[Diagnostic]:
        for name, attributes in used.items():
            target = self.template.resources.get(name)
            kind = self.kinds.of(target) if target is not None else None
            if kind is None or isinstance(kind, UnknownType):
                continue  # reported already
            for attribute in sorted(attributes):
                if attribute != ALL and not has_attribute(kind, attribute):
                    path = find_get_attr(values, name, attribute)
                    keys, place = path
                    told = path_in_message(keys, self.template.form.functions, place)
                    yield Diagnostic(
                        "unknown-attribute",
                        f"{told}: The Referenced Attribute ({name} {attribute}) is incorrect.",
                        path_text(keys, place),
                        hint=did_you_mean(attribute, kind.attributes),
                        # The attributes of a nested stack are certain only once it exists.
                        severity="warning" if isinstance(kind, TemplateType) else "error",
                    )

    # Nested stacks.

    def _named(
        self, kind: NestedType, place: str, given: Mapping[str, Any], resolved: Resolved
    ) -> Iterator[Diagnostic]:
        """Yield the faults of a template that a property refers to, and of its content."""
        named = kind.template_of(given)
        if named is None:
            return
        try:
            inner = self.kinds.at(named.url)
        except InvalidTemplate as error:
            yield from UnknownType(error.diagnostics).at(join(resolved.path, named.url_property))
            return
        known = resolved.values.keys() <= given.keys()
        values = named.parameters if known else None
        build = partial(explicit_values, inner.template, values, bool(resolved.secrets))
        yield from self._inside(inner, place, join(resolved.path, named.parameters_property), build)

    def _inside(
        self, kind: TemplateType, place: str, path: str, build: Callable[[], ParameterValues]
    ) -> Iterator[Diagnostic]:
        """Yield the faults in the template of a nested resource, reported once even if it is used repeatedly.

        `path` is the path of the properties, from which `build` makes the values of the template's
        parameters.
        """
        for mismatch in kind.mismatches:
            yield Diagnostic("facade", mismatch, f"{place}.{self.words.type}")
        prefix = f"{place}<{kind.template.url}>"
        kinds = self.kinds.child(kind)
        if kinds.depth > kinds.max_depth:
            fault = nested_path(nested_too_deep(kinds.max_depth), prefix)
            yield replace(fault, path=f"{place}.{self.words.type}")
            return
        try:
            values = build()
        except InvalidTemplate as error:
            values = unknown_values(kind.template)
            for fault in error.diagnostics:
                yield replace(nested_path(fault, prefix), path=join(path, fault.path.rpartition(".")[2]))
        key = (id(kinds), values_key(values))
        if key not in self.tree.sizes and self.tree.looked_at > MOST_NESTED:
            values = unknown_values(kind.template)
            key = (id(kinds), values_key(values))
        if key in self.tree.sizes:
            self.resources += self.tree.sizes[key]
            return
        faults = self._look_into(kind.template, values, kinds, key)
        self.resources += self.tree.sizes[key]
        for fault in faults:
            mark = (fault.file, fault.line, fault.column, fault.code, fault.message)
            if mark not in self.tree.told and len(self.tree.told) < MOST_FAULTS:
                self.tree.told.add(mark)
                yield nested_path(fault, prefix)

    def _in_group(
        self, definition: ResourceDefinition, kind: GroupType, given: Mapping[str, Any], resolved: Resolved
    ) -> Iterator[Diagnostic]:
        """Yield the faults of a group's members; a sample stands for all equal members."""
        kinds = self.kinds.within(definition)
        if kinds.depth > kinds.max_depth:
            yield nested_too_deep(kinds.max_depth)
            return
        for sample in samples(kind, given, resolved):
            check = _StackCheck(sample.template, sample.values, kinds, self.tree, nested=True)
            yield from check.run()
            self.resources += sample.count * check.resources

    def _look_into(
        self, template: NestedTemplate, values: ParameterValues, kinds: TypeResolver, key: object
    ) -> list[Diagnostic]:
        defined, faults = template.define(values)
        self.tree.looked_at += len(defined.resources)
        check = _StackCheck(defined, values, kinds, self.tree, nested=True)
        more = check.run()
        if not faults:
            more = [*nested_cycles(defined), *more]
        self.tree.sizes[key] = check.resources
        warnings = [replace(warning, file=template.url) for warning in defined.warnings]
        return in_file([*faults, *not_yet_reported(faults, more), *warnings], template)
