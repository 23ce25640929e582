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

from orchestrator.engine.validation.attribute_references import has_attribute, unknown_attribute
from orchestrator.engine.validation.group_samples import group_fault, samples
from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.nested_faults import (
    as_refusal,
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
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Fault, ResourceType, Value, read_update_policy
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.template_type import NestedTemplate, TemplateType
from orchestrator.schema.properties import deprecations, join
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.formats import Keywords
from orchestrator.template.function_view import UNKNOWN
from orchestrator.template.functions import ALL, FunctionError
from orchestrator.template.functions.resolved_argument import measure
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.template import Template

POLICIES: Final[Mapping[str, str]] = {"delete": "Delete", "retain": "Retain", "snapshot": "Snapshot"}
# Nested resources that are validated with actual values; beyond that number, without values.
MAX_NESTED_STACKS: Final = 10_000
MAX_NESTED_FAULTS: Final = 1_000  # reported for nested templates; a small request could cause millions
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
    is to be created), faults of values and of nested templates are warnings. `inquire` runs provider checks.
    """
    tree = _Tree(strict, stack_timeout_seconds, inquire)
    check = _StackCheck(template, values, kinds, tree)
    faults = check.run()
    if check.resources > kinds.type_environment.max_resources:
        message = "Request limit exceeded: Maximum resources per stack exceeded."
        limit = Diagnostic("too-many-resources", message, heat_type="RequestLimitExceeded")
        faults.append(limit if strict else as_refusal(limit))
    return faults


@dataclass(slots=True)
class _Tree:
    """State shared by the checks of a tree of templates."""

    strict: bool
    timeout_seconds: float
    inquire: Inquire | None = None
    looked_at: int = 0  # nested resources
    sizes: dict[object, int] = field(default_factory=dict)  # number of resources of each checked nested stack
    # reported faults of nested templates, and reported retired types
    reported: set[object] = field(default_factory=set)
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
        written: Mapping[str, ResourceDefinition] | None = None,
    ) -> None:
        self.template, self.kinds, self.tree, self.nested = template, kinds, tree, nested
        self.written = written or template.resources  # as rules among resources see them
        self.keywords: Keywords = template.form.keywords
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
                place = f"{self.keywords.outputs}.{output.name}.{self.keywords.value}"
                rest += self._attributes(output.dep_attrs, [(output.value, place)])
        return [*self.types, *self.policies, *rest]

    def _of_values(self, faults: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
        """Return faults with their severity: before a create, values may still change."""
        if self.tree.strict or self.nested:  # the caller sets the severity for a nested stack as a whole
            return faults
        return map(as_refusal, faults)

    def _resource(self, definition: ResourceDefinition) -> Iterator[Diagnostic]:
        place = f"{self.keywords.resources}.{definition.name}"
        resource_type = self.kinds.of(definition)
        if isinstance(resource_type, UnknownType):
            yield from self._missing(definition, resource_type, f"{place}.{self.keywords.type}")
        else:
            if resource_type.support_status in RETIRED:
                yield from self._retired(resource_type, f"{place}.{self.keywords.type}")
            yield from self._typed(definition, resource_type, place)
        if definition.body.get("metadata"):
            yield from self._evaluated(definition.body["metadata"], f"{place}.{self.keywords.metadata}")

    def _missing(
        self, definition: ResourceDefinition, unknown_type: UnknownType, path: str
    ) -> Iterable[Diagnostic]:
        if not unknown_type.unavailable:
            self.types += unknown_type.at(path)
            return ()
        external = definition.body.get("external_id") is not None
        found = unknown_type.at(path)  # an external resource needs no service of ours before the create
        return map(as_refusal, found) if external and not self.tree.strict else found

    def _typed(
        self, definition: ResourceDefinition, resource_type: ResourceType, place: str
    ) -> Iterator[Diagnostic]:
        body, keywords = definition.body, self.keywords
        if body.get("external_id") is not None:  # all else of it is unused
            path = f"{place}.{keywords.external_id}"
            self.view.missed = None
            yield from self._evaluated(body["external_id"], path)
            yield from self._missed(path)
            return
        if body.get("deletion_policy") is not None:
            yield from self._deletion_policy(body["deletion_policy"], resource_type, place)
        if isinstance(resource_type, UnavailableType):
            return
        if body.get("update_policy"):
            self.policies += self._update_policy(body["update_policy"], resource_type, place)
        if definition.dep_attrs:
            sections = [
                (body.get("properties"), f"{place}.{keywords.properties}"),
                (body.get("metadata"), f"{place}.{keywords.metadata}"),
            ]
            yield from self._attributes(definition.dep_attrs, sections)
        yield from self._properties(definition, resource_type, place)

    def _evaluated(self, value: object, path: str) -> Iterable[Diagnostic]:
        """Return the faults of evaluating a value's functions."""
        self.view.used_secret = False
        try:
            self.view.resolve(value, path)
        except InvalidTemplate as error:
            return self._of_values(error.diagnostics)
        return ()

    def _retired(self, resource_type: ResourceType, path: str) -> Iterator[Diagnostic]:
        """Warn once of a retired type, where it is used first."""
        if resource_type.name not in self.tree.reported:
            self.tree.reported.add(resource_type.name)
            message = f"The resource type {resource_type.name} is {resource_type.support_status.lower()}."
            yield Diagnostic("retired-type", message, path, severity="warning")

    # Properties.

    def _properties(
        self, definition: ResourceDefinition, resource_type: ResourceType, place: str
    ) -> Iterator[Diagnostic]:
        path = f"{place}.{self.keywords.properties}"
        secret = resource_type.secret_parameters if isinstance(resource_type, TemplateType) else ()
        resolved = Resolved(definition.body, self.view, resource_type, place, path, BEFORE, secret)
        properties, faults = resource_type.read_properties(resolved.values, path=path, unknown=UNKNOWN)
        structure = [f for f in faults if f.code in STRUCTURE and f.path == path] if faults else faults
        yield from map(resolved.of, structure)
        failed = bool(resolved.errors)
        if len(faults) > len(structure):
            resolved.report(fault for fault in faults if fault not in structure)
        if not faults and not failed:
            type_faults = list(resource_type.validate(properties, self.tree.timeout_seconds))
            type_faults += resource_type.validate_among(definition.name, properties, self.written)
            if not type_faults and self.tree.inquire is not None:
                type_faults += self.tree.inquire(definition.name, resource_type, properties)
            resolved.report((), type_faults)
        if resolved.errors:
            yield from self._of_values(resolved.errors)
        if self._has_deprecated(resource_type):
            for warning in deprecations(resource_type.properties, resolved.values, path=path):
                yield replace(resolved.of(warning), severity="warning")
        if isinstance(resource_type, TemplateType):
            build = partial(known_values, resource_type, properties, resolved)
            yield from self._of_values(self._inside(resource_type, place, path, build))
        elif isinstance(resource_type, GroupType):
            inside = self._in_group(definition, resource_type, properties, resolved)
            yield from self._of_values(group_fault(fault, resource_type, place, path) for fault in inside)
        elif isinstance(resource_type, NestedType) and not faults and not failed:
            yield from self._of_values(self._named(resource_type, place, properties, resolved))

    def _has_deprecated(self, resource_type: ResourceType) -> bool:
        cached = self.tree.deprecated.get(id(resource_type))
        if cached is None:
            cached = self.tree.deprecated[id(resource_type)] = any(
                map(declares_deprecated, resource_type.properties.values())
            )
        return cached

    # Policies.

    def _update_policy(self, policy: object, resource_type: ResourceType, place: str) -> Iterator[Diagnostic]:
        path = f"{place}.{self.keywords.update_policy}"
        self.view.used_secret, self.view.made = False, 0
        try:
            policies = self.view.resolved(policy)
            measure(policies)
        except FunctionError as error:
            yield replace(function_fault(error, path, self.view, BEFORE), code="update-policy")
            return
        if policies is UNKNOWN or not policies:
            return
        if not isinstance(policies, Mapping):
            yield Diagnostic("update-policy", f"{BEFORE}{path}: it is not a map", path)
            return
        secret = resource_type.update_policy if self.view.used_secret else ()
        shown = Resolved({}, self.view, resource_type, place, path, BEFORE, secret)
        for fault in read_update_policy(resource_type, policies, path=path, unknown=UNKNOWN)[1]:
            yield replace(shown.of(fault), code="update-policy")

    def _deletion_policy(
        self, policy: object, resource_type: ResourceType, place: str
    ) -> Iterator[Diagnostic]:
        path = f"{place}.{self.keywords.deletion_policy}"
        self.view.used_secret, self.view.used_uncreated, self.view.missed = False, False, None
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
        elif meant == "Snapshot" and not resource_type.can_snapshot:
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
            resource_type = self.kinds.of(target) if target is not None else None
            if resource_type is None or isinstance(resource_type, UnknownType):
                continue  # reported already
            for attribute in sorted(attributes):
                if attribute != ALL and not has_attribute(resource_type, attribute):
                    functions = self.template.form.functions
                    yield unknown_attribute(resource_type, name, attribute, values, functions)

    # Nested stacks.

    def _named(
        self, resource_type: NestedType, place: str, properties: JsonMapping, resolved: Resolved
    ) -> Iterator[Diagnostic]:
        """Yield the faults of a template that a property refers to, and of its content."""
        named = resource_type.template_of(properties)
        if named is None:
            return
        try:
            inner = self.kinds.at(named.url)
        except InvalidTemplate as error:
            yield from UnknownType(error.diagnostics).at(join(resolved.path, named.url_property))
            return
        is_complete = resolved.values.keys() <= properties.keys()
        values = named.parameters if is_complete else None
        build = partial(explicit_values, inner.template, values, bool(resolved.secrets))
        yield from self._inside(inner, place, join(resolved.path, named.parameters_property), build)

    def _inside(
        self, resource_type: TemplateType, place: str, path: str, build: Callable[[], ParameterValues]
    ) -> Iterator[Diagnostic]:
        """Yield the faults in the template of a nested resource, reported once even if it is used repeatedly.

        `path` is the path of the properties, from which `build` makes the values of the template's
        parameters.
        """
        for mismatch in resource_type.mismatches:
            yield Diagnostic("facade", mismatch, f"{place}.{self.keywords.type}")
        prefix = f"{place}<{resource_type.template.url}>"
        kinds = self.kinds.child(resource_type)
        if kinds.depth > kinds.max_depth:
            fault = nested_path(nested_too_deep(kinds.max_depth), prefix)
            yield replace(fault, path=f"{place}.{self.keywords.type}")
            return
        try:
            values = build()
        except InvalidTemplate as error:
            values = unknown_values(resource_type.template)
            for fault in error.diagnostics:
                yield replace(nested_path(fault, prefix), path=join(path, fault.path.rpartition(".")[2]))
        key = (id(kinds), values_key(values))
        if key not in self.tree.sizes and self.tree.looked_at > MAX_NESTED_STACKS:
            values = unknown_values(resource_type.template)
            key = (id(kinds), values_key(values))
        if key in self.tree.sizes:
            self.resources += self.tree.sizes[key]
            return
        faults = self._look_into(resource_type.template, values, kinds, key)
        self.resources += self.tree.sizes[key]
        for fault in faults:
            mark = (fault.file, fault.line, fault.column, fault.code, fault.message)
            if mark not in self.tree.reported and len(self.tree.reported) < MAX_NESTED_FAULTS:
                self.tree.reported.add(mark)
                yield nested_path(fault, prefix)

    def _in_group(
        self,
        definition: ResourceDefinition,
        resource_type: GroupType,
        properties: JsonMapping,
        resolved: Resolved,
    ) -> Iterator[Diagnostic]:
        """Yield the faults of a group's members; a sample stands for all equal members."""
        kinds = self.kinds.within(definition)
        if kinds.depth > kinds.max_depth:
            yield nested_too_deep(kinds.max_depth)
            return
        is_empty = True
        for sample in samples(resource_type, properties, resolved):
            is_empty = False
            check = _StackCheck(sample.template, sample.values, kinds, self.tree, True, sample.written)
            yield from check.run()
            self.resources += sample.count * check.resources
        if is_empty and kinds.type_environment.authorize is not None:
            self._authorize_members(resource_type, properties, resolved, kinds)

    def _authorize_members(
        self, resource_type: GroupType, properties: JsonMapping, resolved: Resolved, kinds: TypeResolver
    ) -> None:
        """Resolve the types of the members that an empty group may have later; their faults do not matter
        before.

        Raises:
            Forbidden: the caller may not use one of them.
        """
        if resource_type.implied_type:
            body = {"type": resource_type.implied_type}
            kinds.of(ResourceDefinition("", body["type"], body, frozenset(), {}, frozenset()))
        tree = _Tree(self.tree.strict, self.tree.timeout_seconds)
        for sample in samples(resource_type, properties, resolved, minimum=1):
            _StackCheck(sample.template, sample.values, kinds, tree, True, sample.written).run()

    def _look_into(
        self, template: NestedTemplate, values: ParameterValues, kinds: TypeResolver, key: object
    ) -> list[Diagnostic]:
        defined, faults = template.define(values)
        self.tree.looked_at += len(defined.resources)
        check = _StackCheck(defined, values, kinds, self.tree, nested=True)
        nested_faults = check.run()
        if not faults:
            nested_faults = [*nested_cycles(defined), *nested_faults]
        self.tree.sizes[key] = check.resources
        warnings = [replace(warning, file=template.url) for warning in defined.warnings]
        return in_file([*faults, *not_yet_reported(faults, nested_faults), *warnings], template)
