"""The type defined by a nested template: its parameters are properties, its outputs attributes
(docs/internals/hot-language.md §10).

Nothing is fetched: the request contains the text of a template.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Attribute, Change, Context, Property, ResourceType, Value
from orchestrator.resources.nested_type import (
    AttributePath,
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
# Heat's names of types in comparisons. A number is accepted for an integer.
_HEAT_NAMES: Final[Mapping[str, str]] = {
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
_IGNORED_PARAMETER_FAULTS: Final = frozenset({"invalid-default", "reserved-name"})
_FATAL_OUTPUT_FAULTS: Final = frozenset(
    {"unknown-key", "missing-value", "output-not-a-map", "outputs-not-a-map"}
)


@dataclass(frozen=True, slots=True)
class NestedTemplate:
    """A parsed nested template; `undecided` is the template without parameter values."""

    url: str
    text: str
    document: JsonMapping
    form: Format
    parameters: Mapping[str, ParameterSchema]
    outputs: Mapping[str, str]  # descriptions by name
    undecided: Template
    faults: tuple[Diagnostic, ...]  # of `undecided`
    warnings: tuple[Diagnostic, ...]  # of the text

    @classmethod
    def read(cls, url: str, text: str, limits: Limits) -> NestedTemplate:
        """Parse a template.

        Raises:
            InvalidTemplate: faults that prevent its use as a type; their file is `url`.
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
        # Stricter than for the template of a stack: these faults prevent its use as a type.
        strange = [
            replace(warning, severity="error", file=url) for warning in undecided.warnings if warning.path
        ]
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
        """Return the template with these parameter values, and its language faults."""
        return _defined(
            read_document(self.document, self.text, self.warnings).define, self.url, self.text, values
        )


class TemplateType(NestedType):
    """A type defined by a template. Each environment has its own instance."""

    # Set per instance.
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
        """`environment` is the environment of the stack that contains the resource, `facade` the type that
        the template replaces.

        `resource_name` selects entries of the environment for this resource.
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
        """Apply the template to the child in one step."""
        return Settled() if turn else SetChild(self.child(props))

    def change(
        self, before: Mapping[str, Value], after: Mapping[str, Value], changed: frozenset[str]
    ) -> Change:
        """Update in place for any difference: the template may no longer have parameters that were set
        before.
        """
        return "update" if changed else "keep"

    def child_attributes(
        self, ctx: Context, child: ChildView, requested: Collection[str]
    ) -> Mapping[str, Value]:
        """Return the outputs, and the requested attributes of resources in the child."""
        outputs = dict(child.outputs()) if self.attributes else {}
        inner = [name for name in requested if name.startswith(RESOURCE) and name not in outputs]
        if inner:
            members = {member.name: member for member in child.members()}
            for name in inner:
                outputs |= _inside(members, name, ctx.attribute_paths.get(name, ((),)))
        return outputs

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return the output `OS::stack_id` if it exists: a template may stand for one of its resources."""
        if STACK_ID in self.attributes:
            stack_id = child.outputs().get(STACK_ID)
            return child.arn if stack_id is None else str(stack_id)
        return child.arn

    def child(self, props: Mapping[str, Value]) -> ChildTemplate:
        """Return the template of the child for the resource's converted properties."""
        environment = self.environment.child(self.resource_name, self.arguments(props), self.target)
        return ChildTemplate(self.template.url, self.template.text, environment)

    def arguments(self, props: Mapping[str, Value]) -> dict[str, Value]:
        """Return the values of the template's parameters from these properties."""
        return {
            name: flattened(value) if self.properties[name].type == "list" else value
            for name, value in props.items()
            if value is not None
        }

    def has_attribute(self, name: str) -> bool:
        """Return whether the output exists, or `name` refers to a resource in the child."""
        return super().has_attribute(name) or name.startswith(RESOURCE)


def _inside(
    members: Mapping[str, Member], requested: str, keys: Collection[AttributePath]
) -> Mapping[str, Value]:
    """Return the attribute ``resource.<name>[.<attribute>]``, nothing if it does not exist. `keys` are the
    keys that the template applies to it.
    """
    rest = requested.removeprefix(RESOURCE)
    member = members.get(rest)
    if member is not None:
        member = member.reaching([path for path in keys if path])
        reference = member.physical_id if member.reference_id is None else member.reference_id
        return {requested: member_attributes.mark_member(reference, member.attributes)}
    name, _, attribute = rest.partition(".")
    member = members.get(name)
    if member is None:
        return {}
    attributes = member.reaching([(attribute, *path) for path in keys]).attributes
    return {requested: attributes[attribute]} if attribute in attributes else {}


def flattened(items: Sequence[Value]) -> list[Value]:
    """Return a list in the form of a parameter: a map becomes a text per key, null an empty text."""
    made: list[Value] = []
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            made += [f".member.{index}.{key}={value}" for key, value in item.items()]
        else:
            made.append("" if item is None else item)
    return made


def _property(schema: ParameterSchema, has_default: bool) -> Property:
    required = schema.default is None and not has_default
    type_ = TYPES[schema.type]
    fitting = tuple(constraint for constraint in schema.constraints if type_ in constraint.types)
    return Property(
        type_, schema.description, required=required, update_allowed=True, constraints=fitting, lax=True
    )


def _mismatches(facade: ResourceType, provider: TemplateType) -> Iterator[str]:
    """Yield the differences between a template and the type that it replaces, in Heat's order and wording."""
    if not facade.any_properties:
        for name, declared in facade.properties.items():
            property_ = provider.properties.get(name)
            if property_ is None:
                if declared.required:
                    yield f"Required property {name} for facade {facade.name} missing in provider"
            elif not _fits(declared, property_):
                types = _HEAT_NAMES[declared.type], _HEAT_NAMES[property_.type]
                yield (
                    f"Property {name} type mismatch between facade {facade.name} ({types[0]}) "
                    f"and provider ({types[1]})"
                )
    for name, property_ in provider.properties.items():
        if name not in facade.properties and property_.required:
            yield f"Provider requires property {name} unknown in facade {facade.name}"
    for name in facade.attributes:
        if name not in provider.attributes:
            yield f"Attribute {name} for facade {facade.name} missing in provider"


def _fits(declared: Property, provided: Property) -> bool:
    return declared.type in ("any", provided.type) or (declared.type, provided.type) == ("integer", "number")


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
        return fault.code not in _IGNORED_PARAMETER_FAULTS
    return section == form.keywords.outputs and fault.code in _FATAL_OUTPUT_FAULTS


def _of_text(fault: Diagnostic, url: str, text: str) -> Diagnostic:
    """Return a fault with its location in the nested text."""
    message = fault.message.replace("[root stack]", url, 1).replace(
        'in "template", line', f'in "{url}", line', 1
    )
    heat_type = fault.heat_type if fault.heat_type != "HTTPBadRequest" else "StackValidationFailed"
    if fault.line is not None:
        return replace(fault, message=message, file=url, heat_type=heat_type)
    return replace(_fault(message, url, text, heat_type), code=fault.code, path=fault.path, hint=fault.hint)


def _fault(message: str, url: str, text: str, heat_type: str) -> Diagnostic:
    """Return a fault of the whole text."""
    shown = excerpt(source_lines(text), 1, 1)[0]
    return Diagnostic("nested-template", message, "", 1, 1, url, shown, heat_type=heat_type)
