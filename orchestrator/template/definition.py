"""The definitions in a parsed template, and `StackDefinition`, the interface of functions."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.template.diagnostics import Path, path_text
from orchestrator.template.formats import format_named
from orchestrator.template.function_view import FACADE, UNKNOWN, ParentResourceProxy, ResourceProxy, Unknown
from orchestrator.template.functions import (
    HIDDEN,
    Function,
    FunctionError,
    References,
    UnknownParameter,
    UnknownReference,
)
from orchestrator.template.functions.resolved_argument import MAX_TEXT_LENGTH, cost, measure
from orchestrator.template.functions.time_budget import EXHAUSTED, charge, is_exhausted
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.secret_values import SecretValues

__all__ = [
    "UNKNOWN",
    "OutputDefinition",
    "ParentResourceProxy",
    "ResourceDefinition",
    "ResourceProxy",
    "StackDefinition",
    "Unknown",
]

log = logger()

NO_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {}
NO_NAMES: Final[frozenset[str]] = frozenset()
MAX_RESULT_BYTES: Final = 32 * 1024 * 1024  # approximate, of all function results of a resource or output
SLOW: Final = 0.05  # seconds of processor time; large stacks have many functions, hardly any that slow
ZONES: Final = ("nova",)  # the default zone name of compute services


def frozen(attributes: Mapping[str, set[str]]) -> Mapping[str, frozenset[str]]:
    """Return an immutable copy; empty maps share one object."""
    return {name: frozenset(names) for name, names in attributes.items()} if attributes else NO_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class ResourceDefinition:
    """A resource as written, and the names it refers to (docs/internals/hot-language.md §7).

    `body` is the definition with HOT's keys for all formats, unresolved functions, and every `if` replaced by
    its branch. `dep_attrs` holds the attributes of each resource that the definition reads. `ALL` among
    attributes, parameters, files or mappings means all of them, because the name itself is computed.
    """

    name: str
    type: str
    body: JsonMapping
    requires: frozenset[str]  # explicitly, and by the functions of properties and metadata
    dep_attrs: Mapping[str, frozenset[str]]
    parameters: frozenset[str]
    files: frozenset[str] = NO_NAMES
    mappings: frozenset[str] = NO_NAMES

    def digest(self, values: ParameterValues, extra: object = None) -> bytes:
        """Return a 32-byte digest of the definition, the parameters it uses and `extra`, further inputs."""
        text: tuple[object, ...] = (self.type, self.body)
        if self.parameters:
            names = values.keys() if "*" in self.parameters else self.parameters
            text += ({name: values[name] for name in names if name in values},)
        if extra:
            text += (extra,)
        return hashlib.sha256(orjson.dumps(text, option=orjson.OPT_SORT_KEYS)).digest()


class RepeatedDefinitions(Mapping[str, ResourceDefinition]):
    """The resources of a template with many instances of few definitions, created on demand."""

    def samples(self) -> Iterator[ResourceDefinition]:
        """Yield an instance of each definition."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """An output as written; references in it define no order."""

    name: str
    value: Any
    description: str
    requires: frozenset[str]
    dep_attrs: Mapping[str, frozenset[str]]
    parameters: frozenset[str]


def _no_files(_: str) -> str | None:
    return None


class StackDefinition:
    """The stack as its functions see it: parameter values and the given resources.

    With `strict` (execution), an attribute of a resource that is not created is null. Without it
    (validation), the attribute is `UNKNOWN`, like every value computed from it and every parameter without a
    value.

    `used_secret` is set when a hidden parameter or a secret of a resource is read, `used_uncreated` when a
    resource that is not created is read; reset them to inspect a single value. `made` counts the approximate
    bytes of function results; reset it for another resource.
    """

    def __init__(
        self,
        version: str,
        parameters: ParameterValues,
        resources: Mapping[str, ResourceProxy],
        files: Callable[[str], str | None] = _no_files,
        strict: bool = True,
        *,
        mappings: JsonMapping = NO_ATTRIBUTES,
    ) -> None:
        """Only resources in `resources` are accessible; `version` is the name of the template's format."""
        self.version = version
        self.used_secret = False
        self.used_uncreated = False
        self.made = 0
        self._functions = format_named(version).callable
        self._parameters = parameters
        self._resources = resources
        self._files = files
        self._strict = strict
        self._mappings = mappings
        self._unknowns = 0
        self._is_timed = False
        self._read_hidden: set[str] = set()
        self._sources: list[SecretValues] = []

    def resolve(self, value: object, path: str = "") -> Any:
        """Return `value` with its functions evaluated; `path` is where it is, for messages.

        Raises:
            InvalidTemplate: a function cannot be evaluated, or the value would be too large.
        """
        self.made = 0
        try:
            resolved = self.resolved(value)
            if resolved.__class__ is dict or resolved.__class__ is list:
                measure(resolved)
            elif resolved.__class__ is str and len(resolved) > MAX_TEXT_LENGTH:
                measure([resolved])
            return resolved
        except FunctionError as found_wrong:
            error = found_wrong.discreet() if self.used_secret else found_wrong
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

    # The interface of functions (`function_view.View`).

    def resolved(self, value: object) -> Any:
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

    def _resolved_list(self, items: list[object]) -> list[Any]:
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

    def _call(self, function: Function, written: object) -> Any:
        """Return the result of a function; charge a slow call to the request's time budget."""
        if self._is_timed:  # by the outermost function
            return self._call_function(function, written)
        if is_exhausted():
            raise FunctionError(EXHAUSTED)
        self._is_timed, started = True, time.thread_time()
        try:
            return self._call_function(function, written)
        finally:
            self._is_timed, took = False, time.thread_time() - started
            if took > SLOW:
                charge(took)

    def _call_function(self, function: Function, written: object) -> Any:
        if function.raw:
            try:
                return function.call(self, written)
            except FunctionError:
                raise
            except Exception as error:
                raise self._broken(function, error) from error
        if written.__class__ is not function.wants:
            raise FunctionError(f'Incorrect arguments to "{function.name}"')
        args: Any = written
        before = self._unknowns
        try:
            if function.wants is dict:
                # Name by name: a map of arguments is never itself a function.
                args = {name: self._argument(name, args[name]) for name in function.names if name in args}
            else:
                args = self._resolved_list(args)
            if self._unknowns != before:
                return UNKNOWN
            measure(args)
            made = function.call(**args) if function.wants is dict else function.call(*args)
            self.charge(cost(made))
            return made
        except (ValueError, LookupError, ArithmeticError) as error:
            raise FunctionError(str(error)) from error
        except TypeError as error:
            raise FunctionError(self._form(function, written) or str(error)) from error
        except FunctionError:
            raise
        except Exception as error:
            raise self._broken(function, error) from error

    def _form(self, function: Function, written: object) -> str:
        """Return the fault in the form of a call, "" if the form is valid.

        The scanner rejects such calls; those that result from expanding a macro are found here.
        """
        try:
            function.check(written, References())
        except (ValueError, TypeError) as error:
            return str(error)
        return ""

    def _broken(self, function: Function, error: Exception) -> FunctionError:
        """Return the error for an unexpected exception of a function."""
        if isinstance(error, RecursionError):
            return FunctionError(f'The arguments of "{function.name}" lead too deep')
        if not isinstance(error, ValueError | TypeError | LookupError):
            said = type(error).__name__ if self.used_secret else repr(error)
            log.warning("function_failed", function=function.name, error=said)
        return FunctionError(f'Incorrect arguments to "{function.name}"')

    def _argument(self, name: str, value: object) -> Any:
        try:
            return self.resolved(value)
        except FunctionError as error:
            error.keys.append(name)
            raise

    def parameter(self, name: str) -> Any:
        """Return a parameter's value; record the use of a hidden parameter."""
        values = self._parameters
        if name in values.hidden:
            self.used_secret = True
            self._read_hidden.add(name)
        try:
            return values[name]
        except KeyError:
            if name in values.missing and not self._strict:
                return self.missing(name)
            if self.used_secret and name not in values.missing:  # the name may be computed from a secret
                raise FunctionError(HIDDEN) from None
            raise UnknownParameter(name) from None

    def secret_sources(self) -> SecretValues:
        """Return the secrets of parameters and resources that were read so far."""
        values = self._parameters
        found = SecretValues.within(*[values[name] for name in self._read_hidden if name in values])
        for secrets in self._sources:
            found |= secrets
        return found

    def missing(self, name: str) -> Any:  # noqa: ARG002 - conditions mind which
        """Return the placeholder of a parameter without a value."""
        return self._unknown()

    def resource(self, name: str) -> ResourceProxy:
        """Return an accessible resource; record the use of an uncreated resource."""
        proxy = self._resources.get(name)
        if proxy is None:
            raise UnknownReference(name)
        if not proxy.created:
            self.used_uncreated = True
        return proxy

    def taken(self, proxy: ResourceProxy, value: Any) -> Any:
        """Return a value of a resource; record the use of a secret."""
        if proxy.secret:
            if proxy.secrets is None:
                self.used_secret = True
            elif proxy.secrets.may_be_in(value):
                self.used_secret = True
                self._sources.append(proxy.secrets)
        return value

    def reference(self, name: str) -> Any:
        """Return a resource's reference id, else a parameter's value."""
        if name in self._resources:
            proxy = self.resource(name)
            return self.taken(proxy, proxy.name if proxy.reference_id is None else proxy.reference_id)
        try:
            return self.parameter(name)
        except UnknownParameter:
            raise UnknownReference(name) from None

    def file(self, name: str) -> str | None:
        """Return the text of a file sent along."""
        return self._files(name)

    def mapping(self, name: str) -> JsonMapping:
        """Return a mapping of the template."""
        mapping = self._mappings.get(name)
        if not isinstance(mapping, Mapping):
            raise FunctionError(f'The template has no mapping "{name}"')
        return mapping

    def facade(self, key: str) -> Any:
        """Return the parent resource's `metadata`, `deletion_policy` or `update_policy`."""
        if FACADE[key] not in self._parameters:
            raise FunctionError("there is no parent resource: this is not a nested stack")
        return self.parameter(FACADE[key])

    def zones(self) -> list[str]:
        """Return the names of the compute zones."""
        return list(ZONES)

    def holds(self, condition: object) -> Any:
        """Refuse: conditions were decided when the template was read."""
        raise FunctionError(f'Invalid condition "{condition}"')

    def charge(self, amount: int) -> None:
        """Count the size of function results.

        Raises:
            FunctionError: the limit is exceeded.
        """
        self.made += amount
        if self.made > MAX_RESULT_BYTES:
            raise FunctionError(f"The functions make more than {MAX_RESULT_BYTES // 1024**2} MiB altogether")

    def not_yet(self) -> Any:
        """Return null, or `UNKNOWN` while validating."""
        return None if self._strict else self._unknown()

    def _unknown(self) -> Unknown:
        self._unknowns += 1
        return UNKNOWN
