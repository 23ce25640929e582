"""What a parsed template is made of, and `StackDefinition`, the only thing its functions see."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.template.diagnostics import Path, path_text
from orchestrator.template.functions import (
    Function,
    FunctionError,
    UnknownParameter,
    UnknownReference,
    callable_functions,
)
from orchestrator.template.functions import References as _Found
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.scan import Scanner
from orchestrator.template.view import UNKNOWN, ResourceProxy, Unknown

__all__ = [
    "UNKNOWN",
    "OutputDefinition",
    "References",
    "ResourceDefinition",
    "ResourceProxy",
    "StackDefinition",
    "Unknown",
    "references",
]

NOTHING: Final[Mapping[str, frozenset[str]]] = {}


@dataclass(frozen=True, slots=True)
class References:
    """What an expression refers to.

    `dep_attrs` has the attributes of each resource that `get_attr` reads; "*" among the attributes or the
    parameters means all of them (`get_attr: [res]`, or a name that is computed).
    """

    requires: frozenset[str]
    dep_attrs: Mapping[str, frozenset[str]]
    parameters: frozenset[str]

    @classmethod
    def of(cls, found: _Found) -> References:
        """Freeze what a scan found."""
        return cls(frozenset(found.requires), frozen(found.attributes), frozenset(found.parameters))


def frozen(attributes: Mapping[str, set[str]]) -> Mapping[str, frozenset[str]]:
    """Return the attributes by name, sharing one empty mapping."""
    return {name: frozenset(names) for name, names in attributes.items()} if attributes else NOTHING


def references(value: Any, version: str) -> References:
    """Return what the functions in `value` refer to; malformed ones refer to nothing."""
    found = _Found()
    Scanner(version).scan(value, found)
    return References.of(found)


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """One resource as written, and what it needs by name (spec/hot-language.md §7)."""

    name: str
    type: str
    body: Mapping[str, Any]  # the snippet, functions and all
    requires: frozenset[str]  # explicitly, and by the functions of properties and metadata
    dep_attrs: Mapping[str, frozenset[str]]
    parameters: frozenset[str]

    def digest(self, values: ParameterValues) -> bytes:
        """Return 32 bytes that differ when the snippet or a parameter that it uses does."""
        if self.parameters:
            names = values.keys() if "*" in self.parameters else self.parameters
            used = {name: values[name] for name in names if name in values}
            text = orjson.dumps((self.type, self.body, used), option=orjson.OPT_SORT_KEYS)
        else:
            text = orjson.dumps((self.type, self.body), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).digest()


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """One output as written; its functions order nothing."""

    name: str
    value: Any
    description: str
    requires: frozenset[str]
    dep_attrs: Mapping[str, frozenset[str]]
    parameters: frozenset[str]


def _no_files(_: str) -> str | None:
    return None


class StackDefinition:
    """A stack as its functions see it: parameter values, and the resources handed in.

    With `strict` (carrying out), an attribute of a resource that is not created is null. Without
    (validating), it is `UNKNOWN`, and so is everything computed from it and every parameter whose value is
    missing.

    `touched_secret` turns True once a hidden parameter or a secret resource was read, `touched_uncreated`
    once a resource that is not created was; set them back to False to ask about one value.
    """

    def __init__(
        self,
        version: str,
        parameters: ParameterValues,
        resources: Mapping[str, ResourceProxy],
        files: Callable[[str], str | None] = _no_files,
        strict: bool = True,
    ) -> None:
        """Only the names in `resources` may be referred to."""
        self.version = version
        self.touched_secret = False
        self.touched_uncreated = False
        self._functions = callable_functions(version)
        self._parameters = parameters
        self._resources = resources
        self._files = files
        self._strict = strict
        self._unknowns = 0

    def resolve(self, value: Any, path: str = "") -> Any:
        """Return `value` with its functions evaluated; `path` is where it is, for messages.

        Raises:
            InvalidTemplate: a function cannot be evaluated.
        """
        try:
            return self.resolved(value)
        except FunctionError as error:
            keys: Path = tuple(reversed(error.keys))
            where = path_text(keys, path)
            raise InvalidTemplate(
                [
                    Diagnostic(
                        code=error.code,
                        message=error.text(where),
                        path=where,
                        hint=error.hint,
                        heat_type=error.heat_type,
                    )
                ]
            ) from None

    # What functions see of it (`view.View`).

    def resolved(self, value: Any) -> Any:
        """Return `value` with its functions evaluated."""
        if value.__class__ is dict:
            if len(value) == 1:
                name, args = next(iter(value.items()))
                function = self._functions.get(name)
                if function is not None:
                    try:
                        return self._call(function, args)
                    except FunctionError as error:
                        error.keys.append(name)
                        raise
            made = {}
            for key, item in value.items():
                if item.__class__ is dict or item.__class__ is list:
                    try:
                        made[key] = self.resolved(item)
                    except FunctionError as error:
                        error.keys.append(key)
                        raise
                else:
                    made[key] = item
            return made
        return self._resolved_list(value) if value.__class__ is list else value

    def _resolved_list(self, items: list[Any]) -> list[Any]:
        made = []
        for index, item in enumerate(items):
            if item.__class__ is dict or item.__class__ is list:
                try:
                    made.append(self.resolved(item))
                except FunctionError as error:
                    error.keys.append(index)
                    raise
            else:
                made.append(item)
        return made

    def _call(self, function: Function, written: Any) -> Any:
        if function.raw:
            return function.call(self, written)
        if written.__class__ is not function.wants:
            raise FunctionError(f'Incorrect arguments to "{function.name}"')
        args: Any = written
        before = self._unknowns
        try:
            if function.wants is dict:
                # Name by name: a map of arguments is never itself a function.
                args = {name: self._argument(name, args[name]) for name in function.names if name in args}
                return UNKNOWN if self._unknowns != before else function.call(**args)
            args = self._resolved_list(args)
            return UNKNOWN if self._unknowns != before else function.call(*args)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise FunctionError(str(error)) from error

    def _argument(self, name: str, value: Any) -> Any:
        try:
            return self.resolved(value)
        except FunctionError as error:
            error.keys.append(name)
            raise

    def parameter(self, name: str) -> Any:
        """Return a parameter's value; reading a hidden one is remembered."""
        values = self._parameters
        if name in values.hidden:
            self.touched_secret = True
        try:
            return values[name]
        except KeyError:
            if name in values.missing and not self._strict:
                return self._unknown()
            raise UnknownParameter(name) from None

    def resource(self, name: str) -> ResourceProxy:
        """Return a resource that was handed in; reading a secret or an uncreated one is remembered."""
        proxy = self._resources.get(name)
        if proxy is None:
            raise UnknownReference(name)
        if proxy.secret:
            self.touched_secret = True
        if not proxy.created:
            self.touched_uncreated = True
        return proxy

    def file(self, name: str) -> str | None:
        """Return the text of a file sent along."""
        return self._files(name)

    def not_yet(self) -> Any:
        """Return null, or `UNKNOWN` while validating."""
        return None if self._strict else self._unknown()

    def _unknown(self) -> Unknown:
        self._unknowns += 1
        return UNKNOWN
