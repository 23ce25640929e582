"""How a function of the language is declared and found.

A plain function is written as an ordinary Python function: its arguments arrive resolved, a list spread over
its positional parameters, a map over its named ones, and it is not called at all while an argument is
unknown. A *raw* one gets the view and its argument as written, and resolves what it wants. A *macro* is
replaced by one of its branches when the template is read. Several may share a name with different `since`:
the newest that a version has is the one it gets.

Packages of their own add functions to the versions of HOT through the entry point group
`orchestrator.functions`: the name of each is the function's, the value a `Function` made by `plain` or `raw`.
One that cannot be loaded is an error of the templates that call it, never plain data and nobody else's
trouble.
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
ALL: Final = "*"  # stands for every name, where the name itself is computed

HIDDEN: Final = "the value, which is hidden, is not acceptable"

State = Literal["ready", "removed"]


class FunctionError(Exception):
    """A function that cannot be evaluated; `keys` collects the way back to it, innermost first."""

    code = "function-error"
    heat_type = "StackValidationFailed"

    def __init__(self, message: str, hint: str = "") -> None:
        """Keep the message without its place."""
        super().__init__(message)
        self.hint = hint
        self.keys: list[str | int] = []

    def text(self, place: str) -> str:
        """Return the whole message, given the dotted place of the function."""
        return f"{place}: {self}" if place else str(self)

    def discreet(self) -> FunctionError:
        """Return the same error without what it says of values, some of which are secret."""
        if self.code not in QUOTING:
            return self
        told = type(self)(HIDDEN)
        told.keys = self.keys
        return told


QUOTING: Final = frozenset({"function-error", "condition"})  # codes of errors that may quote a value


class UnknownReference(FunctionError):
    """A resource that does not exist or may not be seen from here."""

    code = "unknown-resource"
    heat_type = "InvalidTemplateReference"

    def text(self, place: str) -> str:
        """Name the resource and where it was asked for: the place of the value, not of the function in it."""
        return f'The specified reference "{self}" (in {place.rpartition(".")[0] or "unknown"}) is incorrect.'


class UnknownParameter(FunctionError):
    """A parameter that does not exist or has no value."""

    code = "unknown-parameter"
    heat_type = "UserParameterMissing"

    def text(self, place: str) -> str:  # noqa: ARG002 - Heat does not say where
        """Name the parameter."""
        return f"The Parameter ({self}) was not provided."


@dataclass(slots=True)
class References:
    """What an expression needs, by name; `ALL` stands for all, where the name itself is computed.

    `either` are names of resources or else of parameters, as `Ref` takes them, `facades` those of the pseudo
    parameters about the resource that a nested stack stands for. `macros` says that something in it is
    replaced when the template is read.
    """

    requires: set[str] = field(default_factory=set)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    mappings: set[str] = field(default_factory=set)
    facades: set[str] = field(default_factory=set)
    macros: bool = False


# Looks at an argument as written: notes what it refers to, raises ValueError or TypeError for a form that can
# never work.
Check = Callable[[Any, References], None]


@dataclass(frozen=True, slots=True)
class Function:
    """One function of one or more versions."""

    name: str
    since: str = versions.FIRST
    state: State = "ready"
    raw: bool = False
    macro: bool = False
    call: Callable[..., Any] = lambda *_: None
    check: Check = lambda *_: None
    wants: type = list  # what a plain function's argument is: list or dict
    names: frozenset[str] = frozenset()  # the named arguments it takes, others are ignored


_DECLARED: Final[dict[str, list[Function]]] = {}
_MADE: Final[set[str]] = set()  # names by `plain` and `raw`, those of other packages among them


def plain(
    name: str,
    call: Callable[..., Any],
    *,
    since: str = versions.FIRST,
    form: str,
    not_a: str = "",
    check: Check | None = None,
) -> Function:
    """Return a plain function.

    `form` is what to say when the argument has the right type and the wrong shape, `not_a` when the type is
    wrong; `check` adds a look of its own at the argument as written.
    """
    parameters = inspect.signature(call).parameters.values()
    named = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
    needed = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty)
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least = sum(p.default is p.empty for p in placed)
    most = math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(placed)
    wants = dict if named else list

    def look(args: Any, found: References) -> None:
        if type(args) is not wants or is_call(args):
            raise TypeError(not_a or form)
        given: Any = args
        if not (needed <= given.keys() if named else least <= len(given) <= most):
            raise ValueError(form)
        if check is not None:
            check(args, found)

    _MADE.add(name)
    return Function(name, since, call=call, check=look, wants=wants, names=named)


def is_call(value: Any) -> bool:
    """Whether a value as written may be a function in place of what it gives."""
    if type(value) is not dict or len(value) != 1:
        return False
    name = next(iter(value))
    return name in versions.EVERY_FUNCTION or name in _MADE


def raw(name: str, call: Callable[..., Any], *, since: str = versions.FIRST, check: Check) -> Function:
    """Return a function that sees its argument as written: ``f(view, args)``."""
    _MADE.add(name)
    return Function(name, since, raw=True, call=call, check=check)


def function(
    name: str, *, since: str = versions.FIRST, form: str, not_a: str = "", check: Check | None = None
) -> Callable[[F], F]:
    """Declare one of the language's own plain functions; see `plain`."""

    def declare(call: F) -> F:
        made = plain(name, call, since=since, form=form, not_a=not_a, check=check)
        _DECLARED.setdefault(name, []).append(made)
        return call

    return declare


def raw_function(
    name: str, *, since: str = versions.FIRST, check: Check, macro: bool = False
) -> Callable[[F], F]:
    """Declare one of the language's own functions that see their argument as written; see `raw`."""

    def declare(call: F) -> F:
        _DECLARED.setdefault(name, []).append(
            Function(name, since, raw=True, macro=macro, call=call, check=check)
        )
        return call

    return declare


def declared(name: str, version: str) -> Function:
    """Return what a name means in a version of HOT: the newest that is not newer."""
    return max((f for f in _DECLARED[name] if f.since <= version), key=lambda f: f.since)


def removed(name: str) -> Function:
    """Return what stands for a function that a version took away."""
    return Function(name, state="removed")


@cache
def added() -> Mapping[str, Function]:
    """Return the functions that installed packages add to HOT, looked for once."""
    return collect(entry_points(group=GROUP))


def collect(points: Iterable[EntryPoint]) -> Mapping[str, Function]:
    """Return the functions that entry points bring.

    One that cannot be used stands in the table as a function that says so; one with a name that the language
    or another package has is left out. Both are logged.
    """
    found: dict[str, Function] = {}
    for point in sorted(points, key=lambda point: (point.name, point.value)):
        name = point.name
        if name in versions.EVERY_FUNCTION or name in found:
            why = "there is a function of that name already"
        else:
            try:
                found[name] = _brought(point)
                continue
            except (Exception, SystemExit) as error:  # whatever importing somebody else's code may raise
                found[name] = unusable(name)
                why = f"{type(error).__name__}: {error}"
        log.error("function_left_out", function=name, source=point.value, reason=why)
    return found


def _brought(point: EntryPoint) -> Function:
    made = point.load()
    if not isinstance(made, Function) or made.name != point.name:
        raise TypeError(f"{point.value} is no Function of that name")
    return made


def unusable(name: str) -> Function:
    """Return what stands for a function whose package cannot be loaded."""
    why = f'The function "{name}" is installed and cannot be used; the server\'s log says why'

    def check(args: Any, found: References) -> None:  # noqa: ARG001
        raise ValueError(why)

    def call(*_: Any) -> Any:
        """Installed, and cannot be used."""
        raise FunctionError(why)

    return Function(name, raw=True, call=call, check=check)
