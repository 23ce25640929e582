"""What stands for a resource's type in one stack: a type, a template, or nothing.

The environment's registry says what a name leads to, the installed types whether it is there. Pure; asking
for the kind of a resource costs a look into a dict once its type was met.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from orchestrator.errors import CouldNotFetch, Diagnostic, InvalidTemplate, ResourceTypeUnavailable
from orchestrator.graph.build import build
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import NestedType
from orchestrator.resources.template_type import NestedTemplate, TemplateType
from orchestrator.resources.unavailable_types import KNOWN, unavailable
from orchestrator.schema.suggestions import did_you_mean
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.functions import ALL
from orchestrator.template.group_template import MemberDefinitions
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry import ResourceRegistry, Target
from orchestrator.template.resource_registry_entries import RESOURCES, is_template
from orchestrator.template.template import Template

MOST_WALKED: Final = 1_000_000  # resources met while looking for circles that implied requirements close
Fetch = Callable[[str, Collection[str]], str]  # by address and schemes allowed; raises CouldNotFetch
NO_FETCHING: Final = "send the text of the template along in files, under this name"


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A type that a resource cannot have. `unavailable`: it is known, and not there."""

    faults: tuple[Diagnostic, ...]
    unavailable: bool = False

    def at(self, path: str) -> Iterator[Diagnostic]:
        """Yield why, at the place where the type is named; a fault of a nested text has a place already."""
        for fault in self.faults:
            yield fault if fault.file else replace(fault, path=path)


class UnavailableType(ResourceType):
    """Stands for a known type that is not there, where that is to be overlooked: nothing of it is checked."""

    name: str  # type: ignore[misc]
    any_properties = True
    can_snapshot = True

    def __init__(self, name: str) -> None:
        """Take the name in the template."""
        self.name = name

    def has_attribute(self, name: str) -> bool:  # noqa: ARG002
        """Let everything pass."""
        return True


class _Found(NamedTuple):
    kind: ResourceType | UnknownType
    name: str  # of what carries the resource out
    nested: bool = False  # it is a stack


class TypeResolver:
    """The kinds of one stack's resources; `child` gives those of a stack nested in it."""

    def __init__(
        self,
        types: Mapping[str, ResourceType],
        registry: ResourceRegistry,
        files: Mapping[str, str],
        limits: Limits,
        *,
        environment: Environment | None = None,
        overlook: bool = False,
        depth: int = 0,
        max_depth: int = 10,
        max_resources: int = 2_000_000,
        read: dict[str, NestedTemplate | InvalidTemplate] | None = None,
        fetch: Fetch | None = None,
        fetched: dict[str, str] | None = None,
        enter: Callable[[str], None] | None = None,
    ) -> None:
        """`registry` is that of `environment`; `overlook` lets known types pass that are not there.

        `depth` is how deep the stack is nested, `max_depth` how deep any may be, `max_resources` how many
        there may be in the tree; `read` are the nested templates read so far. `fetch` gets the text at an
        address that is not among the files (None: nothing is fetched), which then is among `fetched`.
        `enter` raises Forbidden for the name of a type that may not be used by who asks.
        """
        self.types, self.registry, self.files, self.limits = types, registry, files, limits
        self.environment = environment if environment is not None else Environment()
        self.overlook, self.depth = overlook, depth
        self.max_depth, self.max_resources = max_depth, max_resources
        self._read = read if read is not None else {}
        self.fetch, self.fetched = fetch, fetched if fetched is not None else {}
        self.enter = enter
        self._addressed: dict[str, TemplateType] = {}
        self._found: dict[object, _Found] = {}
        self._children: dict[int, TypeResolver] = {}
        self._within: dict[str, TypeResolver] = {}
        self._closures: dict[int, frozenset[str]] = {}
        entries = registry.to_json().get(RESOURCES) or {}
        self._particular = frozenset(entries)
        self._patterns = tuple(
            re.compile(fnmatch.translate(name)) for name in entries if re.search(r"[*?\[]", name)
        )

    @classmethod
    def of_stack(
        cls,
        types: Mapping[str, ResourceType],
        environment: Environment,
        files: Mapping[str, str],
        limits: Limits,
        *,
        globals: Mapping[str, Any] | None = None,
        overlook: bool = False,
        depth: int = 0,
        max_depth: int = 10,
        max_resources: int = 2_000_000,
        fetch: Fetch | None = None,
        enter: Callable[[str], None] | None = None,
    ) -> TypeResolver:
        """Return the kinds of a stack that lies `depth` deep; `globals` is the operator's registry.

        Raises:
            InvalidTemplate: the registry is malformed.
        """
        return cls(
            types,
            environment.registry(globals or {}, installed(types)),
            files,
            limits,
            environment=environment,
            overlook=overlook,
            depth=depth,
            max_depth=max_depth,
            max_resources=max_resources,
            fetch=fetch,
            enter=enter,
        )

    def of(self, definition: ResourceDefinition) -> ResourceType | UnknownType:
        """Return what stands for the type of a resource."""
        return self._entry(definition).kind

    def resolved_name(self, definition: ResourceDefinition) -> str:
        """Return the name of what carries the resource out: a type's, or a template's address.

        The name as written where nothing does.
        """
        return self._entry(definition).name

    def is_nested(self, definition: ResourceDefinition) -> bool:
        """Whether a resource stands for a stack."""
        return self._entry(definition).nested

    def files_of(self, kind: ResourceType | UnknownType) -> frozenset[str]:
        """Return the names of the files that the stack of a nested resource is made with; ALL among them
        means all there are.
        """
        if not isinstance(kind, TemplateType):
            return frozenset((ALL,))
        known = self._closures.get(id(kind))
        if known is None:
            known = self._closures[id(kind)] = frozenset(self._closure(kind))
        return known

    def _closure(self, kind: TemplateType) -> set[str]:
        names = {kind.template.url}
        inside = self.child(kind)
        if inside.depth > inside.max_depth:
            return names
        for definition in kind.template.undecided.resources.values():
            names |= definition.files
            if inside.is_nested(definition):
                names |= inside.files_of(inside.of(definition))
        return names

    def child(self, kind: TemplateType) -> TypeResolver:
        """Return the kinds of the stack nested in a resource of this kind."""
        known = self._children.get(id(kind))
        if known is None:
            known = self._children[id(kind)] = self._below(kind.resource_name, kind.target)
        return known

    def within(self, definition: ResourceDefinition) -> TypeResolver:
        """Return the kinds of the stack that a resource's type makes by itself."""
        name = definition.name if self._key(definition) != definition.type else ""
        known = self._within.get(name)
        if known is None:
            known = self._within[name] = self._below(name, None)
        return known

    def _below(self, resource_name: str, target: Target | None) -> TypeResolver:
        return TypeResolver(
            self.types,
            self.registry.child(resource_name, target),
            self.files,
            self.limits,
            environment=self.environment.child(resource_name, {}, target),
            overlook=self.overlook,
            depth=self.depth + 1,
            max_depth=self.max_depth,
            max_resources=self.max_resources,
            read=self._read,
            fetch=self.fetch,
            fetched=self.fetched,
            enter=self.enter,
        )

    @property
    def hidden(self) -> frozenset[str]:
        """Return the names of parameters that a nested template met so far hides."""
        met = [one for one in self._read.values() if isinstance(one, NestedTemplate)]
        return frozenset(name for one in met for name, schema in one.parameters.items() if schema.hidden)

    def samples(self, template: Template) -> Iterator[ResourceDefinition]:
        """Yield one resource for each kind of thing that a template's resources may be."""
        seen: set[object] = set()
        resources = template.resources
        found: Iterable[ResourceDefinition] = resources.values()
        if isinstance(resources, MemberDefinitions) and not self._particular:
            found = resources.samples()  # the members of one definition are alike
        for definition in found:
            key = self._key(definition)
            if key not in seen:
                seen.add(key)
                yield definition

    def _key(self, definition: ResourceDefinition) -> object:
        """Return what resources have in common for which the environment means the same."""
        if not self._particular:
            return definition.type
        name = definition.name
        own = name if name in self._particular else ""
        matching = tuple([index for index, one in enumerate(self._patterns) if one.match(name)])
        return (definition.type, own, matching) if own or matching else definition.type

    def _entry(self, definition: ResourceDefinition) -> _Found:
        key = self._key(definition)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._look_up(definition)
        return found

    def _look_up(self, definition: ResourceDefinition) -> _Found:
        written = definition.type
        try:
            target = self.registry.target(definition.name, written)
        except InvalidTemplate as error:
            return _Found(UnknownType(error.diagnostics), written)
        if target is None:
            return _Found(self._unknown(written), written)
        if self.enter is not None:
            for name in dict.fromkeys((written, target.name)):
                self.enter(name)
        if target.kind == "template":
            return _Found(self._template(definition, target), target.name, nested=True)
        kind = self.types.get(target.name)
        if kind is not None:
            return _Found(kind, target.name, isinstance(kind, NestedType))
        refusal = unavailable(target.name)
        if refusal is None:
            return _Found(self._unknown(written), written)
        if self.overlook:
            return _Found(UnavailableType(written), target.name)
        return _Found(_unavailable(written, refusal), target.name)

    def _unknown(self, written: str) -> UnknownType:
        hint = did_you_mean(written, self.types) or did_you_mean(written, KNOWN)
        message = f"The Resource Type ({written}) could not be found."
        return UnknownType((Diagnostic("unknown-type", message, hint=hint),))

    def _template(self, definition: ResourceDefinition, target: Target) -> ResourceType | UnknownType:
        try:
            template = self._nested(target)
        except InvalidTemplate as error:
            return UnknownType(error.diagnostics)
        particular = self._key(definition) != definition.type
        return TemplateType(
            definition.type,
            template,
            target,
            self.environment,
            resource_name=definition.name if particular else "",
            facade=self._facade(definition, target),
        )

    def _facade(self, definition: ResourceDefinition, target: Target) -> ResourceType | None:
        """Return the type whose name a template took: what the resource would be of, were it not for the
        entry that leads to the template.
        """
        if not target.path or is_template(definition.type):
            return self.types.get(definition.type)
        try:
            other = self.registry.without(target.path).target(definition.name, definition.type)
            if other is None or other.kind == "type" or other.name == target.name:
                return None if other is None else self.types.get(other.name)
            return TemplateType(definition.type, self._nested(other), other, self.environment)
        except InvalidTemplate:  # nothing that anything could be compared with
            return None

    def at(self, url: str) -> TemplateType:
        """Return the type that the template at an address makes, for a type that nests what it names.

        Raises:
            InvalidTemplate: it is not there, or no template.
        """
        known = self._addressed.get(url)
        if known is None:
            target = Target("template", url, user=True)
            known = TemplateType(url, self._nested(target), target, self.environment)
            self._addressed[url] = known
        return known

    def _text(self, target: Target) -> str:
        """Return the text of a template: a file's, or what is at its address.

        Raises:
            InvalidTemplate: it is not there.
        """
        url = target.name
        text = self.files.get(url)
        if text is None:
            text = self.fetched.get(url)
        if text is None:
            if self.fetch is None:
                raise _unfetched(target, self.files)
            try:
                text = self.fetched[url] = self.fetch(url, target.schemes)
            except CouldNotFetch as error:
                raise _unfetched(target, self.files, error) from error
        return text

    def _nested(self, target: Target) -> NestedTemplate:
        """Return a nested template, read once for the whole tree.

        Raises:
            InvalidTemplate: it is not there, or no template.
        """
        url = target.name
        known = self._read.get(url)
        if known is None:
            try:
                known = NestedTemplate.read(url, self._text(target), self.limits)
            except InvalidTemplate as error:
                known = error
            self._read[url] = known
        if isinstance(known, InvalidTemplate):
            raise known
        return known


def installed(types: Mapping[str, ResourceType]) -> Callable[[str], bool]:
    """Return whether there is a type of a name, or could be: what a registry asks before it follows it."""
    return lambda name: name in types or name in KNOWN


def with_implicit(template: Template, kinds: TypeResolver) -> Template:
    """Return a template whose resources require what their types know them to need as well.

    A requirement that would close a circle is left out: nobody wrote it.
    """
    if not any(_implies(kinds.of(definition)) for definition in kinds.samples(template)):
        return template
    resources = template.resources
    more: dict[str, frozenset[str]] = {}
    for name, definition in resources.items():
        kind = kinds.of(definition)
        if isinstance(kind, ResourceType) and _implies(kind):
            implied = {one for one in kind.implicit_requires(definition, resources) if one in resources}
            if implied := implied - definition.requires - {name}:
                more[name] = frozenset(implied)
    if not more:
        return template
    requires = {name: definition.requires for name, definition in resources.items()}
    wider = {name: needs | more.get(name, frozenset()) for name, needs in requires.items()}
    if not _is_ordered(wider):
        wider = _without_cycles(requires, more) if _is_ordered(requires) else requires
    changed = {name: replace(resources[name], requires=wider[name]) for name in more}
    return replace(template, resources={**resources, **changed})


def _implies(kind: ResourceType | UnknownType) -> bool:
    return (
        isinstance(kind, ResourceType) and type(kind).implicit_requires is not ResourceType.implicit_requires
    )


def _is_ordered(requires: Mapping[str, frozenset[str]]) -> bool:
    try:
        build(list(requires), list(requires.values()))
    except InvalidTemplate:
        return False
    return True


def _without_cycles(
    requires: Mapping[str, frozenset[str]], more: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return what is required and, one by one, of what is implied that which closes no circle.

    Only for a bounded amount of work: what is left then is left out.
    """
    made = dict(requires)
    left = MOST_WALKED
    for name, implied in more.items():
        for one in sorted(implied):
            walked = _walk(one, name, made, left)
            left -= len(walked)
            if left <= 0:
                return made
            if name not in walked:
                made[name] |= {one}
    return made


def _walk(start: str, end: str, requires: Mapping[str, frozenset[str]], most: int) -> set[str]:
    """Return what `start` waits for and itself, up to `end` if that is among them."""
    seen = {start}
    todo = [start]
    while todo and end not in seen and len(seen) < most:
        fresh = requires[todo.pop()] - seen
        seen |= fresh
        todo += fresh
    return seen


def _unavailable(written: str, refusal: ResourceTypeUnavailable) -> UnknownType:
    """Return the refusal of a type that is not there, under the name that the template has for it."""
    error = ResourceTypeUnavailable(written, refusal.service, refusal.reason)
    fault = Diagnostic("type-unavailable", str(error), heat_type=error.heat_type)
    return UnknownType((fault,), unavailable=True)


def _unfetched(
    target: Target, files: Mapping[str, str], error: CouldNotFetch | None = None
) -> InvalidTemplate:
    """Return why a template that did not come with the request is not there."""
    url = target.name
    scheme = url.partition("://")[0] if "://" in url else ""
    problem = f"Invalid URL scheme {scheme}"
    if scheme in target.schemes:
        problem = f"Failed to retrieve template from {url}"
    message = f'Could not fetch remote template "{url}": {problem}'
    hint = did_you_mean(url, files)
    if error is not None and scheme in target.schemes:
        message, hint = f'Could not fetch remote template "{url}": {error}', hint or error.why
    return InvalidTemplate([Diagnostic("template-not-sent", message, hint=hint or NO_FETCHING)])
