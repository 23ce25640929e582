"""Declaration and look-up of the functions of the language.

A plain function is an ordinary Python function: its arguments are resolved, a list is spread over its
positional parameters, a map over its named parameters, and it is not called while an argument is unknown. A
*raw* function gets the view and its unresolved argument, and resolves what it needs. A *macro* is replaced by
one of its branches when the template is read. Several functions may share a name with different `since`: a
version gets the newest that it includes.

Other packages add functions to the versions of HOT through the entry point group `orchestrator.functions`:
the entry point's name is the function's name, its value a `Function` created by `plain` or `raw`. A function
that cannot be loaded is an error of the templates that call it; it is never treated as plain data, and other
templates are not affected.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal, TypeVar

from orchestrator.logs import logger
from orchestrator.template import versions

F = TypeVar("F", bound=Callable[..., Any])

log = logger()

GROUP: Final = "orchestrator.functions"
ALL: Final = "*"  # any name, if the name itself is computed

HIDDEN: Final = "the value, which is hidden, is not acceptable"

State = Literal["ready", "removed"]


class FunctionError(Exception):
    """A function that cannot be evaluated; `keys` collects the way back to it, innermost first."""

    code = "function-error"
    heat_type = "StackValidationFailed"

    def __init__(self, message: str, hint: str = "") -> None:
        """Store the message without its location."""
        super().__init__(message)
        self.hint = hint
        self.keys: list[str | int] = []

    def text(self, place: str) -> str:
        """Return the complete message, given the dotted path of the function."""
        return f"{place}: {self}" if place else str(self)

    def discreet(self) -> FunctionError:
        """Return the error without quoted values, which may be secret."""
        if self.code not in QUOTING:
            return self
        error = type(self)(HIDDEN)
        error.keys = self.keys
        return error


QUOTING: Final = frozenset({"function-error", "condition"})  # codes of errors that may quote a value


class UnknownReference(FunctionError):
    """A resource that does not exist or is not accessible here."""

    code = "unknown-resource"
    heat_type = "InvalidTemplateReference"

    def text(self, place: str) -> str:
        """Name the resource and the path of the value, not of the function in it."""
        return f'The specified reference "{self}" (in {place.rpartition(".")[0] or "unknown"}) is incorrect.'


class UnknownParameter(FunctionError):
    """A parameter that does not exist or has no value."""

    code = "unknown-parameter"
    heat_type = "UserParameterMissing"

    def text(self, place: str) -> str:  # noqa: ARG002 - Heat omits the path
        """Name the parameter."""
        return f"The Parameter ({self}) was not provided."


@dataclass(slots=True)
class References:
    """The names that an expression refers to; `ALL` stands for all names, if the name itself is computed.

    `either` are names of resources or parameters, as accepted by `Ref`; `facades` are pseudo parameters about
    the parent resource of a nested stack. `macros` is set if the expression contains a macro.
    """

    requires: set[str] = field(default_factory=set)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    mappings: set[str] = field(default_factory=set)
    facades: set[str] = field(default_factory=set)
    macros: bool = False


# Checks an unresolved argument: records its references, raises ValueError or TypeError for a form that can
# never be valid.
Check = Callable[[Any, References], None]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one or more versions."""

    name: str
    since: str = versions.FIRST
    state: State = "ready"
    raw: bool = False
    macro: bool = False
    call: Callable[..., Any] = lambda *_: None
    check: Check = lambda *_: None
    wants: type = list  # type of a plain function's argument: list or dict
    names: frozenset[str] = frozenset()  # accepted named arguments; the rest is ignored


_DECLARED: Final[dict[str, list[Function]]] = {}
_MADE: Final[set[str]] = set()  # all names declared with `plain` and `raw`, including those of plugins


def plain(
    name: str,
    call: Callable[..., object],
    *,
    since: str = versions.FIRST,
    form: str,
    not_a: str = "",
    check: Check | None = None,
) -> Function:
    """Return a plain function.

    `form` is the message for an argument of the right type and the wrong shape, `not_a` for the wrong type;
    `check` is an additional check of the unresolved argument.
    """
    parameters = inspect.signature(call).parameters.values()
    named = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    needed = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in placed)
    most = math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(placed)
    wants = dict if named else list

    def check_references(args: object, references: References) -> None:
        if type(args) is not wants or is_call(args):
            raise TypeError(not_a or form)
        value: Any = args
        if not (needed <= value.keys() if named else least <= len(value) <= most):
            raise ValueError(form)
        if check is not None:
            check(args, references)

    _MADE.add(name)
    return Function(name, since, call=call, check=check_references, wants=wants, names=named)


def is_call(value: object) -> bool:
    """Return whether an unresolved value may be a function call."""
    if type(value) is not dict or len(value) != 1:
        return False
    name = next(iter(value))
    return name in versions.EVERY_FUNCTION or name in _MADE


def raw(name: str, call: Callable[..., object], *, since: str = versions.FIRST, check: Check) -> Function:
    """Return a function that sees its argument as written: ``f(view, args)``."""
    _MADE.add(name)
    return Function(name, since, raw=True, call=call, check=check)


def function(
    name: str, *, since: str = versions.FIRST, form: str, not_a: str = "", check: Check | None = None
) -> Callable[[F], F]:
    """Declare a plain built-in function; see `plain`."""

    def declare(call: F) -> F:
        made = plain(name, call, since=since, form=form, not_a=not_a, check=check)
        _DECLARED.setdefault(name, []).append(made)
        return call

    return declare


def raw_function(
    name: str, *, since: str = versions.FIRST, check: Check, macro: bool = False
) -> Callable[[F], F]:
    """Declare a raw built-in function; see `raw`."""

    def declare(call: F) -> F:
        _DECLARED.setdefault(name, []).append(
            Function(name, since, raw=True, macro=macro, call=call, check=check)
        )
        return call

    return declare


def declared(name: str, version: str) -> Function:
    """Return the function of a name in a version of HOT: the newest that the version includes."""
    return max((f for f in _DECLARED[name] if f.since <= version), key=lambda f: f.since)


def removed(name: str) -> Function:
    """Return the placeholder of a function that a version removed."""
    return Function(name, state="removed")


@cache
def added() -> Mapping[str, Function]:
    """Return the functions that installed packages add to HOT; loaded once."""
    return collect(entry_points(group=GROUP))


def collect(points: Iterable[EntryPoint]) -> Mapping[str, Function]:
    """Return the functions of these entry points.

    An unusable function is replaced by a placeholder that raises an error when called; a function whose name
    is already in use is skipped. Both are logged.
    """
    functions: dict[str, Function] = {}
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        name = point.name
        if name in versions.EVERY_FUNCTION or name in functions:
            why = "a function with this name already exists"
        else:
            try:
                functions[name] = _load_functions(point)
                continue
            except (Exception, SystemExit) as error:  # importing a plugin may raise any exception
                functions[name] = unusable(name)
                why = f"{type(error).__name__}: {error}"
        log.error("function_skipped", function=name, source=point.value, reason=why)
    return functions


def _load_functions(point: EntryPoint) -> Function:
    made = point.load()
    if not isinstance(made, Function) or made.name != point.name:
        raise TypeError(f"{point.value} is not a Function with this name")
    return made


def unusable(name: str) -> Function:
    """Return the placeholder of a function whose package cannot be loaded."""
    why = f'The function "{name}" is installed but not usable; the server\'s log contains the reason'

    def check(args: object, references: References) -> None:  # noqa: ARG001
        raise ValueError(why)

    def call(*_: object) -> Any:
        """Installed, and cannot be used."""
        raise FunctionError(why)

    return Function(name, raw=True, call=call, check=check)
