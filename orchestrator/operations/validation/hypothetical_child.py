"""The stack inside a nested resource as it would be, without making it: what previews look into."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.deprecation import renamed_attributes
from orchestrator.engine.validation.hypothetical_stack import HypotheticalStack
from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.engine.validation.type_resolution import TypeResolver, installed, with_implicit
from orchestrator.errors import Diagnostic, InvalidTemplate, OrchestratorError
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters
from orchestrator.resources.base import Context
from orchestrator.resources.nested_type import ChildView, Member, NestedType, SetChild, Sibling
from orchestrator.resources.template_type import TemplateType
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import FACADE, UNKNOWN, ParentResourceProxy
from orchestrator.template.functions.resolved_argument import knows_all
from orchestrator.template.global_environment import global_environment
from orchestrator.template.group_template import read_stored
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import FaultyTemplate, Template

UNMADE: Final = "None"  # the id of a stack that is not there


@dataclass(frozen=True, slots=True)
class HypotheticalChild:
    """The stack nested in a resource, as it would be; values that are not known are `missing`."""

    name: str
    uuid: str
    template: Template
    values: ParameterValues
    kinds: TypeResolver
    faults: Sequence[Diagnostic] = ()  # for which it could not be made; none where values are not known


@dataclass(frozen=True, slots=True)
class ParentResource:
    """What a preview knows of a nested resource.

    Of `unknown` properties, and of metadata that are `UNKNOWN`, the value is not known; `secret` are
    properties that must not be shown.
    """

    name: str  # of the resource
    properties: Mapping[str, Any]
    unknown: Collection[str] = ()
    secret: Collection[str] = ()
    metadata: Any = None
    secret_metadata: bool = False
    deletion_policy: Any = None
    data: Mapping[str, Any] | None = None


@renamed_attributes(beside="sibling")
class EmptyChildView:
    """There is no child."""

    uuid = arn = template = None

    def __init__(self, around: TypeResolver, resource_name: str) -> None:
        """Take what is known of the resource that one would stand for."""
        self._around, self._name = around, resource_name

    def file(self, name: str) -> str | None:
        """Return a file of the stack around it."""
        return self._around.files.get(name)

    def sibling(self, id_: str) -> Sibling | None:  # noqa: ARG002
        """Return nothing: what is around it may not be made yet."""
        return None

    def environment(self, parameters: Mapping[str, Any]) -> Environment:
        """Return the environment that it would have."""
        return self._around.environment.child(self._name, parameters, None)

    def members(self) -> Sequence[Member]:
        """Return nothing."""
        return ()

    def failed(self) -> Collection[str]:
        """Return nothing."""
        return ()

    def outputs(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}


def build_hypothetical_child(
    context: OperationContext,
    kinds: TypeResolver,
    kind: NestedType,
    around: ParentResource,
    *,
    name: str,
    uuid: str = UNMADE,
    child: ChildView | None = None,
) -> HypotheticalChild | None:
    """Return the stack that a resource of this kind would have, under this name; None when it cannot be said.

    `child` is that stack as it is now, if it is there.

    Raises:
        InvalidTemplate: it is there, and what it would be made with is wrong.
    """
    try:
        return _look_inside(
            context, kinds, kind, around, name, uuid, child or EmptyChildView(kinds, around.name)
        )
    except InvalidTemplate:
        if child is None or around.unknown:
            return None
        raise
    except OrchestratorError:  # it would be told when the stack is made; what is wrong before, was told
        return None


def _look_inside(
    context: OperationContext,
    kinds: TypeResolver,
    kind: NestedType,
    around: ParentResource,
    name: str,
    uuid: str,
    child: ChildView,
) -> HypotheticalChild | None:
    if kinds.depth >= kinds.max_depth:
        return None
    action = "CREATE" if child.uuid is None else "UPDATE"
    asked = Context(around.name, name, "preview", action, 0.0, around.properties, around.data or {})
    told = kind.step(asked, around.properties, child, 0)
    if not isinstance(told, SetChild):
        return None
    wanted = told.child
    draft = read_stored(wanted.text, Limits.of(context.settings))
    unknown = {one for one in around.unknown if one in draft.parameters}
    environment = wanted.environment
    built = ParameterValues.build(
        {one: schema for one, schema in draft.parameters.items() if one not in unknown},
        {one: value for one, value in environment.parameters.items() if one not in unknown},
        environment.parameter_defaults,
        pseudo_parameters(uuid, name, context.caller.project_id, draft.form),
        missing_ok=True,
        parent=ParentResourceProxy(
            None if around.metadata is UNKNOWN else around.metadata,
            str(around.deletion_policy or "Delete").capitalize(),
            secret=around.secret_metadata,
        ),
        hide=around.secret if wanted.url else {*around.secret, *(draft.parameters if around.secret else ())},
    )
    missing = built.missing | unknown
    if around.metadata is UNKNOWN:
        missing |= {FACADE["metadata"]}
    known = {one: value for one, value in built.items() if one not in missing}
    values = ParameterValues(known, built.hidden | (frozenset(around.secret) & missing), missing)
    faults: Sequence[Diagnostic] = ()
    try:
        template = draft.define(values)
    except FaultyTemplate as error:
        template = error.rest
        faults = () if missing else error.diagnostics
    inner = _kinds(context, kinds, kind, environment)
    return HypotheticalChild(name, uuid, with_implicit(template, inner), values, inner, faults)


def _kinds(
    context: OperationContext, kinds: TypeResolver, kind: NestedType, environment: Environment
) -> TypeResolver:
    """Return the kinds of the stack inside a resource.

    Raises:
        InvalidTemplate: its registry is malformed.
    """
    if isinstance(kind, TemplateType):
        return kinds.child(kind)
    registry = environment.registry(
        global_environment(context.settings.environment_dir), installed(context.types)
    )
    return TypeResolver(
        context.types,
        registry,
        kinds.files,
        kinds.limits,
        environment=environment,
        overlook=kinds.overlook,
        depth=kinds.depth + 1,
        max_depth=kinds.max_depth,
        max_resources=kinds.max_resources,
    )


def hypothetical_child_of(
    context: OperationContext, definition: ResourceDefinition, whole: HypotheticalChild, kind: NestedType
) -> HypotheticalChild | None:
    """Return the stack that a resource would have, None when that depends on what is not known."""
    files = whole.kinds.files
    view = HypotheticalStack(whole.template, whole.values, files, nested=whole.values.parent is not None)
    words = format_named(view.version).keywords
    place = f"{words.resources}.{definition.name}"
    resolved = Resolved(definition.body, view, kind, place, f"{place}.{words.properties}")
    given, _ = kind.read_properties(resolved.values, unknown=UNKNOWN)
    view.used_secret = False
    try:
        metadata = view.resolve(definition.body.get("metadata"))
    except OrchestratorError:
        metadata = UNKNOWN
    around = ParentResource(
        definition.name,
        given,
        [name for name in resolved.values if name not in given],
        resolved.secrets,
        metadata if knows_all(metadata) else UNKNOWN,
        view.used_secret,
        definition.body.get("deletion_policy"),
    )
    return build_hypothetical_child(
        context, whole.kinds, kind, around, name=f"{whole.name}-{definition.name}"
    )
