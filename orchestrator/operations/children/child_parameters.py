"""The parameter values of a child stack, and the secret ones among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.resources.nested_type import ChildTemplate
from orchestrator.template.function_view import ParentResourceProxy
from orchestrator.template.functions.member import with_secrets
from orchestrator.template.group_template import is_members
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.secret_values import NO_SECRETS


def child_values(
    child: ChildTemplate,
    schemas: Mapping[str, ParameterSchema],
    pseudo: Mapping[str, str],
    parent: ParentResourceProxy,
    hides: ResourceState,
) -> ParameterValues:
    """Return the parameter values of a child; values of hidden defaults are hidden.

    Raises:
        InvalidTemplate: lists every fault.
    """
    inherited = child.environment
    given: JsonMapping = inherited.parameters
    if is_members(child.text):
        given = with_secrets(given, hides.secrets if hides.secret else NO_SECRETS)
    hide = inherited.hidden_defaults - given.keys()
    return ParameterValues.build(
        schemas, given, inherited.parameter_defaults, pseudo, parent=parent, hide=hide
    )


def secret_parameters(names: Iterable[str], values: JsonMapping, hides: ResourceState) -> frozenset[str]:
    """Return the parameters of a child that contain a secret of its parent's resource: in their value, or in
    the property of that name.
    """
    return frozenset(
        name
        for name in names
        if hides.is_secret(hides.properties.get(name)) or hides.is_secret(values.get(name))
    )


def visible_values(values: ParameterValues, hidden: JsonMapping, pseudo: Mapping[str, str]) -> JsonObject:
    """Return the parameters without pseudo parameters; hidden values are None."""
    return {name: None if name in hidden else value for name, value in values.items() if name not in pseudo}
