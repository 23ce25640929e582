"""The types of a stack's resources: built-in types, templates, or unknown types.

The environment's registry maps names; the installed types decide whether a name exists. Pure. A type is
looked up once per stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from orchestrator.engine.validation.denied_types import NONE_DENIED, DeniedTypes
from orchestrator.engine.validation.nested_faults import nested_path
from orchestrator.engine.validation.nested_templates import Fetch, NestedTemplates
from orchestrator.errors import Diagnostic, InvalidTemplate, ResourceTypeUnavailable, did_you_mean
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType
from orchestrator.resources.endpoint_types import Offers, no_services
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.template_type import TemplateType
from orchestrator.resources.unavailable_types import SERVICE_BY_TYPE, unavailable
from orchestrator.schema.safe_regex import glob
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.functions import ALL
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry import ResourceRegistry, Target
from orchestrator.template.resource_registry_entries import RESOURCES, is_template
from orchestrator.template.template import Template

OTHER_ENDINGS: Final = (".yml", ".json", ".hot", ".tmpl")
NO_TEMPLATE_NAME: Final = (
    "a type is the name of a nested template if it ends in .yaml or .template: rename the file, or map the"
    " type to it in resource_registry"
)
NO_CLOUD: Final = (
    "this server has no cloud: `orchestrator up --cloud simulated` starts one, and ORCHESTRATOR_AUTH=keystone"
    " connects an existing one (docs/authentication.md)"
)


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A type that a resource cannot have. `unavailable`: a known type that is not installed."""

    faults: tuple[Diagnostic, ...]
    unavailable: bool = False

    def at(self, path: str) -> Iterator[Diagnostic]:
        """Yield the faults, located at the path that names the type. A fault of a nested template already has
        a location; its message names the resource and the file.
        """
        for fault in self.faults:
            yield _in_resource(fault, path.rpartition(".")[0]) if fault.file else replace(fault, path=path)


def _in_resource(fault: Diagnostic, place: str) -> Diagnostic:
    """Return a fault of a nested template; its message, all that clients show, names resource and file."""
    plain = replace(fault, heat_type="StackValidationFailed")
    return replace(fault, message=nested_path(plain, f"{place}<{fault.file}>").message)


class UnavailableType(ResourceType):
    """Stands for a known type that is not installed where such types are allowed; nothing is validated."""

    name: str  # type: ignore[misc]
    any_properties = True
    can_snapshot = True

    def __init__(self, name: str) -> None:
        """Take the name in the template."""
        self.name = name

    def has_attribute(self, name: str) -> bool:  # noqa: ARG002
        """Accept any attribute."""
        return True


@dataclass(frozen=True, slots=True)
class TypeEnvironment:
    """Everything that decides the types of a stack's resources."""

    types: Mapping[str, ResourceType]  # installed, by name
    registry: ResourceRegistry  # of `environment` and the operator's
    templates: NestedTemplates  # of the whole tree
    environment: Environment = field(default_factory=Environment)
    allow_unavailable: bool = False  # accept known types that are not installed
    depth: int = 0  # of the stack; 0 for a root
    max_depth: int = 10
    max_resources: int = 2_000_000  # of the whole tree
    authorize: Callable[[str], None] | None = None  # raises Forbidden for a type that the caller may not use
    denied: DeniedTypes = NONE_DENIED  # in a worker: to the author of the revision
    offers: Offers = no_services  # whether the cloud has a service

    @classmethod
    def of_stack(
        cls,
        types: Mapping[str, ResourceType],
        environment: Environment,
        files: Mapping[str, str],
        limits: Limits,
        *,
        globals: JsonMapping | None = None,
        fetch: Fetch | None = None,
    ) -> TypeEnvironment:
        """Return the resolver of a root stack with default limits; `globals` is the operator's registry.

        Raises:
            InvalidTemplate: the registry is malformed.
        """
        registry = environment.registry(globals or {}, installed(types))
        return cls(types, registry, NestedTemplates(files, limits, fetch), environment)

    def offered(self, name: str) -> ResourceType | None:
        """Return an installed type, None if there is none or the cloud does not offer its service."""
        resource_type = self.types.get(name)
        return resource_type if resource_type is not None and is_offered(resource_type, self.offers) else None

    def child(self, resource_name: str, target: Target | None) -> TypeEnvironment:
        """Return the resolver of the stack nested in a resource."""
        return replace(
            self,
            registry=self.registry.child(resource_name, target),
            environment=self.environment.child(resource_name, {}, target),
            depth=self.depth + 1,
        )


class _Resolution(NamedTuple):
    type: ResourceType | UnknownType
    name: str  # of the type that runs the resource
    nested: bool = False  # the resource is a stack
    denied: str | None = None  # the name of the type, if the author of the revision may not use it


class TypeResolver:
    """The types of a stack's resources; `child` returns the resolver of a nested stack."""

    def __init__(self, type_environment: TypeEnvironment) -> None:
        """Look nothing up yet."""
        self.type_environment = type_environment
        self._addressed: dict[str, TemplateType] = {}
        self._resolutions: dict[object, _Resolution] = {}
        self._children: dict[int, TypeResolver] = {}
        self._within: dict[str, TypeResolver] = {}
        self._files: dict[int, frozenset[str]] = {}
        entries = self.registry.to_json().get(RESOURCES) or {}
        self._named_entries = frozenset(entries)
        self._patterns = tuple(glob(name) for name in entries if re.search(r"[*?\[]", name))

    @property
    def registry(self) -> ResourceRegistry:
        """The stack's registry."""
        return self.type_environment.registry

    @property
    def environment(self) -> Environment:
        """The stack's environment."""
        return self.type_environment.environment

    @property
    def files(self) -> Mapping[str, str]:
        """The texts of the tree's files by name."""
        return self.type_environment.templates.files

    @property
    def depth(self) -> int:
        """The stack's nesting depth."""
        return self.type_environment.depth

    @property
    def max_depth(self) -> int:
        """The maximum nesting depth of a stack."""
        return self.type_environment.max_depth

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the hidden parameters of all nested templates read so far."""
        return self.type_environment.templates.hidden

    def of(self, definition: ResourceDefinition) -> ResourceType | UnknownType:
        """Return a resource's type."""
        return self._entry(definition).type

    def resolved_name(self, definition: ResourceDefinition) -> str:
        """Return the name of the type that runs a resource, or the address of its template.

        For an unknown type, the name as written.
        """
        return self._entry(definition).name

    def denied_type(self, definition: ResourceDefinition) -> str | None:
        """Return the type of a resource if the author of the revision may not use it, as written or as run;
        None if it is permitted.
        """
        return self._entry(definition).denied if self.type_environment.denied else None

    def nested_type(self, name: str, written: str, runs_as: str | None) -> NestedType | None:
        """Return the type of a recorded resource if it is a nested stack; `written` is its type in the
        template, `runs_as` the type that runs it if it differs.
        """
        found = self.type_environment.types.get(runs_as or written)
        if found is None:
            body = {"type": written}
            definition = ResourceDefinition(name, written, body, frozenset(), {}, frozenset())
            resolved = self.of(definition)
            found = resolved if isinstance(resolved, ResourceType) else None
        return found if isinstance(found, NestedType) else None

    def is_nested(self, definition: ResourceDefinition) -> bool:
        """Whether a resource is a nested stack."""
        return self._entry(definition).nested

    def files_of(self, resource_type: ResourceType | UnknownType) -> frozenset[str]:
        """Return the names of the files that the stack of a nested resource uses; ALL among them means all
        files.
        """
        if not isinstance(resource_type, TemplateType):
            return frozenset((ALL,))
        cached = self._files.get(id(resource_type))
        if cached is None:
            cached = self._files[id(resource_type)] = frozenset(self._used_files(resource_type))
        return cached

    def child(self, nested: TemplateType) -> TypeResolver:
        """Return the resolver of the stack nested in a resource of this type."""
        cached = self._children.get(id(nested))
        if cached is None:
            environment = self.type_environment.child(nested.resource_name, nested.target)
            cached = self._children[id(nested)] = TypeResolver(environment)
        return cached

    def within(self, definition: ResourceDefinition) -> TypeResolver:
        """Return the resolver of the stack that a resource's type generates, such as a group's."""
        name = definition.name if self._key(definition) != definition.type else ""
        cached = self._within.get(name)
        if cached is None:
            cached = self._within[name] = TypeResolver(self.type_environment.child(name, None))
        return cached

    def at(self, url: str) -> TemplateType:
        """Return the type of the template at an address, for a type that nests such templates.

        Raises:
            InvalidTemplate: its text is missing, or is no template.
        """
        cached = self._addressed.get(url)
        if cached is None:
            target = Target("template", url, user=True)
            template = self.type_environment.templates.get(target)
            cached = self._addressed[url] = TemplateType(url, template, target, self.environment)
        return cached

    def samples(self, template: Template) -> Iterator[ResourceDefinition]:
        """Yield a resource for each type that a template's resources may have."""
        checked: set[object] = set()
        resources = template.resources
        definitions: Iterable[ResourceDefinition] = resources.values()
        if isinstance(resources, MemberDefinitions) and not self._named_entries:
            definitions = resources.samples()  # members with the same definition are alike
        for definition in definitions:
            key = self._key(definition)
            if key not in checked:
                checked.add(key)
                yield definition

    def _used_files(self, nested: TemplateType) -> set[str]:
        names = {nested.template.url}
        inside = self.child(nested)
        if inside.depth > inside.max_depth:
            return names
        for definition in nested.template.undecided.resources.values():
            names |= definition.files
            if inside.is_nested(definition):
                names |= inside.files_of(inside.of(definition))
        return names

    def _key(self, definition: ResourceDefinition) -> object:
        """Return a key that is equal for resources that the environment treats alike."""
        if not self._named_entries:
            return definition.type
        name = definition.name
        entry_name = name if name in self._named_entries else ""
        matching = tuple([index for index, pattern in enumerate(self._patterns) if pattern.match(name)])
        return (definition.type, entry_name, matching) if entry_name or matching else definition.type

    def _entry(self, definition: ResourceDefinition) -> _Resolution:
        key = self._key(definition)
        cached = self._resolutions.get(key)
        if cached is None:
            cached = self._resolutions[key] = self._look_up(definition)
        return cached

    def _look_up(self, definition: ResourceDefinition) -> _Resolution:
        found, denied = self._resolved(definition), self.type_environment.denied
        for name in (definition.type, found.name):
            if denied.rule_of(name) is not None:
                return found._replace(denied=name)
        return found

    def _resolved(self, definition: ResourceDefinition) -> _Resolution:
        written, scope = definition.type, self.type_environment
        try:
            target = self.registry.target(definition.name, written)
        except InvalidTemplate as error:
            return _Resolution(UnknownType(error.diagnostics), written)
        if target is None:
            return _Resolution(self._unknown(written), written)
        if scope.authorize is not None:
            for name in dict.fromkeys((written, target.name)):
                scope.authorize(name)
        if target.kind == "template":
            return _Resolution(self._template(definition, target), target.name, nested=True)
        resource_type = scope.types.get(target.name)
        if resource_type is not None and is_offered(resource_type, scope.offers):
            return _Resolution(resource_type, target.name, isinstance(resource_type, NestedType))
        refusal = unavailable(target.name, "" if resource_type is None else resource_type.endpoint_type)
        if refusal is None:
            return _Resolution(self._unknown(written), written)
        if scope.allow_unavailable:
            return _Resolution(UnavailableType(written), target.name)
        hint = NO_CLOUD if scope.offers is no_services else ""
        return _Resolution(_unavailable(written, refusal, hint), target.name)

    def _unknown(self, written: str) -> UnknownType:
        if written.endswith(OTHER_ENDINGS):
            hint = NO_TEMPLATE_NAME
        else:
            hint = did_you_mean(written, {*self.type_environment.types, *SERVICE_BY_TYPE})
        message = f"The Resource Type ({written}) could not be found."
        return UnknownType((Diagnostic("unknown-type", message, hint=hint),))

    def _template(self, definition: ResourceDefinition, target: Target) -> ResourceType | UnknownType:
        try:
            template = self.type_environment.templates.get(target)
        except InvalidTemplate as error:
            return UnknownType(error.diagnostics)
        is_named = self._key(definition) != definition.type
        return TemplateType(
            definition.type,
            template,
            target,
            self.environment,
            resource_name=definition.name if is_named else "",
            facade=self._facade(definition, target),
        )

    def _facade(self, definition: ResourceDefinition, target: Target) -> ResourceType | None:
        """Return the type that a template replaces: the resource's type without the registry entry that maps
        it to the template.
        """
        offered = self.type_environment.offered
        if not target.path or is_template(definition.type):
            return offered(definition.type)
        try:
            other = self.registry.without(target.path).target(definition.name, definition.type)
            if other is None or other.kind == "type" or other.name == target.name:
                return None if other is None else offered(other.name)
            template = self.type_environment.templates.get(other)
            return TemplateType(definition.type, template, other, self.environment)
        except InvalidTemplate:  # no type to compare the template with
            return None


def is_offered(resource_type: ResourceType, offers: Offers) -> bool:
    """Return whether the cloud offers the service that a type needs, if any."""
    return not resource_type.endpoint_type or offers(resource_type.endpoint_type)


def installed(types: Mapping[str, ResourceType]) -> Callable[[str], bool]:
    """Return a predicate: whether a type of that name is installed or known."""
    return lambda name: name in types or name in SERVICE_BY_TYPE


def _unavailable(written: str, refusal: ResourceTypeUnavailable, hint: str) -> UnknownType:
    """Return the error for a known type that is not installed, under its name in the template."""
    error = ResourceTypeUnavailable(written, refusal.service, refusal.reason)
    fault = Diagnostic("type-unavailable", str(error), hint=hint, heat_type=error.heat_type)
    return UnknownType((fault,), unavailable=True)
