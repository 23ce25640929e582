"""Parameter values of nested templates before their stacks exist. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.resources.template_type import NestedTemplate, TemplateType
from orchestrator.template.parameters import ParameterValues


def known_values(kind: TemplateType, given: Mapping[str, Any], resolved: Resolved) -> ParameterValues:
    """Return the known values of a nested template's parameters.

    Raises:
        InvalidTemplate: a property's value does not fit the parameter.
    """
    template = kind.template
    schemas, defaults = template.parameters, kind.environment.parameter_defaults
    # Unknown and wrong values must not be mistaken for the default.
    unknown = {name for name in resolved.values if name in schemas and name not in given}
    known = {name: schema for name, schema in schemas.items() if name not in unknown}
    supplied = {name: value for name, value in kind.arguments(given).items() if name in known}
    built = ParameterValues.build(known, supplied, defaults, {}, missing_ok=True)
    missing = built.missing | unknown | set(template.form.pseudo)
    hidden = built.hidden | kind.secret_parameters | resolved.secrets
    return ParameterValues(dict(built), frozenset(hidden), frozenset(missing))


def explicit_values(
    template: NestedTemplate, given: Mapping[str, Any] | None, secret: bool
) -> ParameterValues:
    """Return the values of a nested template's parameters; `given` is None if they are unknown.

    Raises:
        InvalidTemplate: a value is superfluous, missing or wrong.
    """
    if given is None:
        return unknown_values(template)
    built = ParameterValues.build(template.parameters, given, {}, {})
    hidden = built.hidden | (set(template.parameters) if secret else set())
    return ParameterValues(dict(built), frozenset(hidden), built.missing | set(template.form.pseudo))


def unknown_values(template: NestedTemplate) -> ParameterValues:
    """Return the values of a nested template's parameters when none is known."""
    return ParameterValues({}, missing=frozenset([*template.parameters, *template.form.pseudo]))


def values_key(values: ParameterValues) -> object:
    """Return a key that is equal for values with the same effect on a template."""
    text = orjson.dumps(dict(values), default=repr, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).digest(), values.missing, values.hidden
