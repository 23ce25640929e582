"""The child stack of a nested resource before it is created, for previews and validation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.implicit_requirements import with_implicit
from orchestrator.engine.validation.nested_templates import NestedTemplates
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.engine.validation.type_resolution import TypeResolver, installed
from orchestrator.errors import Diagnostic, Forbidden, InvalidTemplate, OrchestratorError
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters
from orchestrator.resources.nested_type import (
    ChildView,
    Member,
    MemberConditions,
    NestedType,
    SetChild,
    Sibling,
)
from orchestrator.resources.template_type import TemplateType
from orchestrator.resources.verbs.contexts import operation_context
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import FACADE, UNKNOWN, ParentResourceProxy
from orchestrator.template.functions.member import with_secrets
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.global_environment import global_environment
from orchestrator.template.group_template import read_stored
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.secret_values import NO_SECRETS, SecretValues
from orchestrator.template.template import FaultyTemplate, Template

NEVER_CREATED_ID: Final = "None"  # the id of a stack that does not exist


@dataclass(frozen=True, slots=True)
class HypotheticalChild:
    """The child stack that a resource would have; unknown values are `missing`."""

    name: str
    uuid: str
    template: Template
    values: ParameterValues
    kinds: TypeResolver
    faults: Sequence[Diagnostic] = ()  # reasons why it could not be created; empty if values are unknown


@dataclass(frozen=True, slots=True)
class ParentResource:
    """The parent resource as a preview knows it.

    The values of `unknown` properties, and of metadata that are `UNKNOWN`, are not known; `secret` properties
    contain `secrets`; None: any value of theirs is secret.
    """

    name: str  # of the resource
    properties: JsonMapping
    unknown: Collection[str] = ()
    secret: Collection[str] = ()
    secrets: SecretValues | None = NO_SECRETS
    metadata: Any = None
    secret_metadata: bool = False
    deletion_policy: Any = None
    data: JsonMapping | None = None


class EmptyChildView:
    """The view of a child stack that does not exist."""

    uuid = arn = template = None

    def __init__(self, outer: TypeResolver, resource_name: str) -> None:
        """`outer` is the type resolver of the parent stack."""
        self._outer, self._name = outer, resource_name

    def file(self, name: str) -> str | None:
        """Return a file of the parent stack."""
        return self._outer.files.get(name)

    def sibling(self, id_: str) -> Sibling | None:  # noqa: ARG002
        """Return None: siblings may not exist yet."""
        return None

    def environment(self, parameters: JsonMapping) -> Environment:
        """Return the environment that the child would have."""
        return self._outer.environment.child(self._name, parameters, None)

    def members(self) -> Sequence[Member]:
        """Return no members."""
        return ()

    def failed(self) -> Collection[str]:
        """Return no failures."""
        return ()

    def conditions(self) -> MemberConditions:
        """Return no members."""
        return MemberConditions()

    def names(self) -> Collection[str]:
        """Return no names."""
        return ()

    def outputs(self) -> JsonMapping:
        """Return no outputs."""
        return {}


def build_hypothetical_child(
    context: OperationContext,
    kinds: TypeResolver,
    resource_type: NestedType,
    parent: ParentResource,
    *,
    name: str,
    uuid: str = NEVER_CREATED_ID,
    child: ChildView | None = None,
) -> HypotheticalChild | None:
    """Return the child stack that a resource of this type would have; None if it depends on unknown values.

    `child` is the existing child stack, if there is one.

    Raises:
        InvalidTemplate: the child stack exists, and its new inputs are not valid.
        Forbidden: the child stack does not exist, and the caller may not use a type of it.
    """
    try:
        return _look_inside(
            context, kinds, resource_type, parent, name, uuid, child or EmptyChildView(kinds, parent.name)
        )
    except InvalidTemplate:
        if child is None or parent.unknown:
            return None
        raise
    except Forbidden:
        raise
    except OrchestratorError:  # reported when the stack is created; earlier faults were reported already
        return None


def _look_inside(
    context: OperationContext,
    kinds: TypeResolver,
    resource_type: NestedType,
    parent: ParentResource,
    name: str,
    uuid: str,
    child: ChildView,
) -> HypotheticalChild | None:
    if kinds.depth >= kinds.max_depth:
        return None
    action = "CREATE" if child.uuid is None else "UPDATE"
    given, data = parent.properties, parent.data or {}
    ctx = operation_context(parent.name, name, "preview", action, properties=given, data=data)
    step = resource_type.step(ctx, given, child, 0)
    if not isinstance(step, SetChild):
        return None
    desired = step.child
    draft = read_stored(desired.text, Limits.of(context.settings))
    environment, unknown = desired.environment, draft.parameters.keys() & parent.unknown
    supplied: JsonMapping = environment.parameters
    if not desired.url:
        supplied = with_secrets(supplied, parent.secrets)
    hide = parent.secret if desired.url else _secret_parameters(draft.parameters, supplied, parent)
    built = ParameterValues.build(
        {key: schema for key, schema in draft.parameters.items() if key not in unknown},
        {key: value for key, value in supplied.items() if key not in unknown},
        environment.parameter_defaults,
        pseudo_parameters(uuid, name, context.caller.project_id, draft.form),
        missing_ok=True,
        parent=ParentResourceProxy(
            None if parent.metadata is UNKNOWN else parent.metadata,
            str(parent.deletion_policy or "Delete").capitalize(),
            secret=parent.secret_metadata,
        ),
        hide={*hide, *((environment.hidden_defaults | kinds.hidden) - environment.parameters.keys())},
    )
    missing = built.missing | unknown
    if parent.metadata is UNKNOWN:
        missing |= {FACADE["metadata"]}
    known_values = {parameter: value for parameter, value in built.items() if parameter not in missing}
    values = ParameterValues(known_values, built.hidden | (frozenset(parent.secret) & missing), missing)
    faults: Sequence[Diagnostic] = ()
    try:
        template = draft.define(values)
    except FaultyTemplate as error:
        template = error.rest
        faults = () if missing else error.diagnostics
    inner = _kinds(context, kinds, resource_type, environment, exists=child.uuid is not None)
    return HypotheticalChild(name, uuid, with_implicit(template, inner), values, inner, faults)


def _secret_parameters(names: Iterable[str], supplied: JsonMapping, parent: ParentResource) -> frozenset[str]:
    """Return the parameters of a generated template that contain a secret of the parent resource."""
    secrets = parent.secrets
    return frozenset(
        name for name in names if parent.secret and (secrets is None or secrets.found_in(supplied.get(name)))
    )


def _kinds(
    context: OperationContext,
    kinds: TypeResolver,
    resource_type: NestedType,
    environment: Environment,
    *,
    exists: bool,
) -> TypeResolver:
    """Return the type resolver of the child stack. An existing group may have members of types that its user
    may not add.

    Raises:
        InvalidTemplate: its registry is malformed.
    """
    if isinstance(resource_type, TemplateType):
        return kinds.child(resource_type)
    registry = environment.registry(
        global_environment(context.settings.environment_dir), installed(context.types)
    )
    parent = kinds.type_environment
    child = replace(
        parent,
        types=context.types,
        registry=registry,
        templates=NestedTemplates(kinds.files, parent.templates.limits),
        environment=environment,
        depth=parent.depth + 1,
        authorize=None if exists else parent.authorize,
    )
    return TypeResolver(child)


def hypothetical_child_of(
    context: OperationContext,
    definition: ResourceDefinition,
    whole: HypotheticalChild,
    resource_type: NestedType,
) -> HypotheticalChild | None:
    """Return the child stack that a resource would have, None if it depends on unknown values."""
    files = whole.kinds.files
    view = HypotheticalStack(whole.template, whole.values, files, nested=whole.values.parent is not None)
    keywords = format_named(view.version).keywords
    place = f"{keywords.resources}.{definition.name}"
    resolved = Resolved(definition.body, view, resource_type, place, f"{place}.{keywords.properties}")
    properties, _ = resource_type.read_properties(resolved.values, unknown=UNKNOWN)
    view.used_secret = False
    try:
        metadata = view.resolve(definition.body.get("metadata"))
    except OrchestratorError:
        metadata = UNKNOWN
    parent = ParentResource(
        definition.name,
        properties,
        [name for name in resolved.values if name not in properties],
        resolved.secrets,
        resolved.secret_values(properties) if resolved.secrets else NO_SECRETS,
        metadata if knows_all(metadata) else UNKNOWN,
        view.used_secret,
        definition.body.get("deletion_policy"),
    )
    return build_hypothetical_child(
        context, whole.kinds, resource_type, parent, name=f"{whole.name}-{definition.name}"
    )
