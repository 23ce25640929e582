"""The nested templates of a tree of stacks, each read and parsed once, and the values of their parameters
before their stacks exist. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Final

import orjson

from orchestrator.engine.validation.property_resolution import Resolved
from orchestrator.errors import CouldNotFetch, Diagnostic, InvalidTemplate, did_you_mean
from orchestrator.json_types import JsonMapping
from orchestrator.resources.template_type import NestedTemplate, TemplateType
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.resource_registry import Target

Fetch = Callable[[str, Collection[str]], str]  # by address and schemes allowed; raises CouldNotFetch
NO_FETCHING: Final = "send the text of the template along in files, under this name"


class NestedTemplates:
    """Nested templates by address, shared by all stacks of a tree."""

    def __init__(self, files: Mapping[str, str], limits: Limits, fetch: Fetch | None = None) -> None:
        """`fetch` reads an address that is not among the files; None: nothing is fetched."""
        self.files, self.limits, self.fetch = files, limits, fetch
        self.fetched: dict[str, str] = {}  # texts by address
        self._read: dict[str, NestedTemplate | InvalidTemplate] = {}

    @property
    def hidden(self) -> frozenset[str]:
        """The names of the hidden parameters of all templates read so far."""
        read = [entry for entry in self._read.values() if isinstance(entry, NestedTemplate)]
        return frozenset(
            name for template in read for name, schema in template.parameters.items() if schema.hidden
        )

    def get(self, target: Target) -> NestedTemplate:
        """Return a nested template.

        Raises:
            InvalidTemplate: its text is missing, or is no template.
        """
        url = target.name
        cached = self._read.get(url)
        if cached is None:
            try:
                cached = NestedTemplate.read(url, self._text(target), self.limits)
            except InvalidTemplate as error:
                cached = error
            self._read[url] = cached
        if isinstance(cached, InvalidTemplate):
            raise cached
        return cached

    def _text(self, target: Target) -> str:
        """Return the text of a template, from the files or from its address.

        Raises:
            InvalidTemplate: there is no such text.
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


def _unfetched(
    target: Target, files: Mapping[str, str], error: CouldNotFetch | None = None
) -> InvalidTemplate:
    """Return the error for a template that the request does not contain."""
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


def known_values(kind: TemplateType, given: JsonMapping, resolved: Resolved) -> ParameterValues:
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


def explicit_values(template: NestedTemplate, given: JsonMapping | None, secret: bool) -> ParameterValues:
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
