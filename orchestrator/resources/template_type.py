"""The type that a nested template makes: its parameters are properties, its outputs attributes
(docs/internals/hot-language.md §10).

Nothing is fetched: the text of a template comes with the request.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.resources.base import Attribute, Change, Context, Property, ResourceType, Value
from orchestrator.resources.nested_type import (
    ChildTemplate,
    ChildView,
    Member,
    NestedStep,
    NestedType,
    SetChild,
    Settled,
)
from orchestrator.template import member_attributes
from orchestrator.template.diagnostics import excerpt, source_lines
from orchestrator.template.environment import Environment
from orchestrator.template.formats import Format
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits, parse
from orchestrator.template.resource_registry import Target
from orchestrator.template.template import FaultyTemplate, Template, read_document

TYPES: Final[Mapping[str, str]] = {
    "string": "string",
    "number": "number",
    "boolean": "boolean",
    "comma_delimited_list": "list",
    "json": "map",
}
# What Heat calls types where it compares them. A number may stand in for an integer.
_CALLED: Final[Mapping[str, str]] = {
    "string": "String",
    "integer": "Integer",
    "number": "Number",
    "boolean": "Boolean",
    "map": "Map",
    "list": "List",
}
RESOURCE: Final = "resource."  # begins the attributes that reach into the nested stack
STACK_ID: Final = "OS::stack_id"  # the output that a template's reference id is

# Faults of these sections leave a template without properties or attributes, so that it is no type at all.
_PARAMETERS_ASIDE: Final = frozenset({"invalid-default", "reserved-name"})
_OUTPUTS: Final = frozenset({"unknown-key", "missing-value", "output-not-a-map", "outputs-not-a-map"})


@dataclass(frozen=True, slots=True)
class NestedTemplate:
    """A nested template, read; `undecided` is what it is while no parameter has a value."""

    url: str
    text: str
    document: Mapping[str, Any]
    form: Format
    parameters: Mapping[str, ParameterSchema]
    outputs: Mapping[str, str]  # descriptions by name
    undecided: Template
    faults: tuple[Diagnostic, ...]  # of `undecided`
    warnings: tuple[Diagnostic, ...]  # of the text

    @classmethod
    def read(cls, url: str, text: str, limits: Limits) -> NestedTemplate:
        """Read a template.

        Raises:
            InvalidTemplate: with what keeps it from being a type at all; its file is `url`.
        """
        warnings: list[Diagnostic] = []
        try:
            document = parse(text, limits, warnings=warnings)
            draft = read_document(document, text, warnings)
        except InvalidTemplate as error:
            raise InvalidTemplate([_of_text(fault, url, text) for fault in error.diagnostics]) from None
        except LimitExceeded as error:
            raise InvalidTemplate([_fault(str(error), url, text, error.heat_type)]) from None
        undecided, faults = _defined(draft.define, url, text)
        # What a stack's own template may hold, one that is to be a type may not.
        strange = [replace(one, severity="error", file=url) for one in undecided.warnings if one.path]
        if broken := [fault for fault in [*faults, *strange] if _breaks(fault, draft.form)]:
            raise InvalidTemplate(broken)
        outputs = document.get(draft.form.keywords.outputs) or {}
        described = {
            name: str(body.get(draft.form.keywords.description) or "") for name, body in outputs.items()
        }
        return cls(
            url,
            text,
            document,
            draft.form,
            draft.parameters,
            described,
            undecided,
            tuple(faults),
            tuple(warnings),
        )

    def define(self, values: ParameterValues) -> tuple[Template, list[Diagnostic]]:
        """Return what it is with these values, and the faults of its language."""
        return _defined(
            read_document(self.document, self.text, self.warnings).define, self.url, self.text, values
        )


class TemplateType(NestedType):
    """A type that is a template. There is one instance for each place that its environment comes from."""

    # These are facts of one instance here.
    name: str  # type: ignore[misc]
    doc: str  # type: ignore[misc]
    properties: Mapping[str, Property]  # type: ignore[misc]
    attributes: Mapping[str, Attribute]  # type: ignore[misc]

    def __init__(
        self,
        name: str,
        template: NestedTemplate,
        target: Target,
        environment: Environment,
        *,
        resource_name: str = "",
        facade: ResourceType | None = None,
    ) -> None:
        """`environment` is that of the stack the resource is in, `facade` the type whose name it took.

        `resource_name` matters where the environment says something about that resource.
        """
        self.name, self.template, self.target = name, template, target
        self.environment, self.resource_name = environment, resource_name
        self.doc = template.undecided.description
        self.properties = {
            schema.name: _property(schema, schema.name in environment.parameter_defaults)
            for schema in template.parameters.values()
        }
        self.attributes = {output: Attribute(text) for output, text in template.outputs.items()}
        self.secret_parameters = frozenset(
            schema.name for schema in template.parameters.values() if schema.hidden
        )
        self.mismatches = tuple(_mismatches(facade, self)) if facade is not None else ()

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Bring the child to the template, once."""
        return Settled() if turn else SetChild(self.child(props))

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Change it in place, whatever differs: a template may have lost parameters that were given to it."""
        return "update" if changed else "keep"

    def child_attributes(self, ctx: Context, child: ChildView, asked: Collection[str]) -> Mapping[str, Value]:
        """Return the outputs, and what is asked for of the resources inside."""
        found = dict(child.outputs()) if self.attributes else {}
        inner = [name for name in asked if name.startswith(RESOURCE) and name not in found]
        if inner:
            members = {member.name: member for member in child.members()}
            found |= {name: value for name in inner for value in _inside(members, name)}
        return found

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return the output `OS::stack_id` where there is one: a template may pass for what it makes."""
        if STACK_ID in self.attributes:
            given = child.outputs().get(STACK_ID)
            return child.arn if given is None else str(given)
        return child.arn

    def child(self, props: Mapping[str, Value]) -> ChildTemplate:
        """Return what the nested stack is made from, given the resource's properties as converted."""
        environment = self.environment.child(self.resource_name, self.arguments(props), self.target)
        return ChildTemplate(self.template.url, self.template.text, environment)

    def arguments(self, props: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of the template's parameters that these properties give."""
        return {
            name: flattened(value) if self.properties[name].type == "list" else value
            for name, value in props.items()
            if value is not None
        }

    def has_attribute(self, name: str) -> bool:
        """Whether there is such an output, or such a resource inside."""
        return super().has_attribute(name) or name.startswith(RESOURCE)


def _inside(members: Mapping[str, Member], asked: str) -> Iterator[Value]:
    """Yield what ``resource.<name>[.<attribute>]`` gives, nothing where there is no such resource."""
    rest = asked.removeprefix(RESOURCE)
    member = members.get(rest)
    if member is not None:
        reference = member.physical_id if member.reference_id is None else member.reference_id
        yield member_attributes.mark_member(reference, member.attributes)
        return
    name, _, attribute = rest.partition(".")
    member = members.get(name)
    if member is not None and attribute in member.attributes:
        yield member.attributes[attribute]


def flattened(items: Sequence[Value]) -> list[Value]:
    """Return a list as a parameter takes it: a map becomes a text for each of its keys, null an empty one."""
    made: list[Value] = []
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            made += [f".member.{index}.{key}={value}" for key, value in item.items()]
        else:
            made.append("" if item is None else item)
    return made


def _property(schema: ParameterSchema, has_default: bool) -> Property:
    required = schema.default is None and not has_default
    kind = TYPES[schema.type]
    fitting = tuple(one for one in schema.constraints if kind in one.types)
    return Property(
        kind, schema.description, required=required, update_allowed=True, constraints=fitting, lax=True
    )


def _mismatches(facade: ResourceType, provider: TemplateType) -> Iterator[str]:
    """Yield where a template does not fit the type in whose place it is, in Heat's words and order."""
    if not facade.any_properties:
        for name, wanted in facade.properties.items():
            given = provider.properties.get(name)
            if given is None:
                if wanted.required:
                    yield f"Required property {name} for facade {facade.name} missing in provider"
            elif not _fits(wanted, given):
                types = _CALLED[wanted.type], _CALLED[given.type]
                yield (
                    f"Property {name} type mismatch between facade {facade.name} ({types[0]}) "
                    f"and provider ({types[1]})"
                )
    for name, given in provider.properties.items():
        if name not in facade.properties and given.required:
            yield f"Provider requires property {name} unknown in facade {facade.name}"
    for name in facade.attributes:
        if name not in provider.attributes:
            yield f"Attribute {name} for facade {facade.name} missing in provider"


def _fits(wanted: Property, given: Property) -> bool:
    return wanted.type in ("any", given.type) or (wanted.type, given.type) == ("integer", "number")


def _defined(
    define: Callable[..., Template], url: str, text: str, values: ParameterValues | None = None
) -> tuple[Template, list[Diagnostic]]:
    try:
        return define(values), []
    except FaultyTemplate as error:
        return error.rest, [_of_text(fault, url, text) for fault in error.diagnostics]


def _breaks(fault: Diagnostic, form: Format) -> bool:
    section = fault.path.partition(".")[0]
    if section == form.keywords.parameters and fault.code != "duplicate-key":
        return fault.code not in _PARAMETERS_ASIDE
    return section == form.keywords.outputs and fault.code in _OUTPUTS


def _of_text(fault: Diagnostic, url: str, text: str) -> Diagnostic:
    """Return a fault as one of the nested text."""
    message = fault.message.replace("[root stack]", url, 1).replace(
        'in "template", line', f'in "{url}", line', 1
    )
    kept = fault.heat_type if fault.heat_type != "HTTPBadRequest" else "StackValidationFailed"
    if fault.line is not None:
        return replace(fault, message=message, file=url, heat_type=kept)
    return replace(_fault(message, url, text, kept), code=fault.code, path=fault.path, hint=fault.hint)


def _fault(message: str, url: str, text: str, heat_type: str) -> Diagnostic:
    """Return a fault of the whole text."""
    shown = excerpt(source_lines(text), 1, 1)[0]
    return Diagnostic("nested-template", message, "", 1, 1, url, shown, heat_type=heat_type)
