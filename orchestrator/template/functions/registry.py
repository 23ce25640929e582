"""How a function of the language is declared and found.

A plain function is written as an ordinary Python function: its arguments arrive resolved, a list spread over
its positional parameters, a map over its named ones, and it is not called at all while an argument is
unknown. A *raw* one gets the view and its argument as written, and resolves what it wants. Several may share
a name with different `since`: the newest that a version has is the one it gets.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, TypeVar

from orchestrator.template import versions

F = TypeVar("F", bound=Callable[..., Any])

State = Literal["ready", "planned", "removed"]


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
    """What an expression needs, by name; "*" stands for all, where the name itself is computed."""

    requires: set[str] = field(default_factory=set)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)


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
    call: Callable[..., Any] = lambda *_: None
    check: Check = lambda *_: None
    wants: type = list  # what a plain function's argument is: list or dict
    names: frozenset[str] = frozenset()  # the named arguments it takes, others are ignored


_DECLARED: Final[dict[str, list[Function]]] = {}


def function(
    name: str, *, since: str = versions.FIRST, form: str, not_a: str = "", check: Check | None = None
) -> Callable[[F], F]:
    """Declare a plain function.

    `form` is what to say when the argument has the right type and the wrong shape, `not_a` when the type is
    wrong; `check` adds a look of its own at the argument as written.
    """

    def declare(call: F) -> F:
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

        def is_call(args: Any) -> bool:
            # A function in place of the whole argument: what it gives is not known when the form is checked.
            return type(args) is dict and len(args) == 1 and next(iter(args)) in versions.EVERY_FUNCTION

        made = Function(name, since, call=call, check=look, wants=wants, names=named)
        _DECLARED.setdefault(name, []).append(made)
        return call

    return declare


def raw_function(name: str, *, since: str = versions.FIRST, check: Check) -> Callable[[F], F]:
    """Declare a function that sees its argument as written: ``f(view, args)``."""

    def declare(call: F) -> F:
        _DECLARED.setdefault(name, []).append(Function(name, since, raw=True, call=call, check=check))
        return call

    return declare


@cache
def table(version: str) -> Mapping[str, Function]:
    """Return every function name of a version: what can be called, what is planned and what was removed."""
    found: dict[str, Function] = {}
    for name in versions.functions_of(version):
        fitting = [f for f in _DECLARED.get(name, ()) if f.since <= version]
        found[name] = max(fitting, key=lambda f: f.since) if fitting else Function(name, state="planned")
    for name in versions.removed_from(version):
        found[name] = Function(name, state="removed")
    return found


@cache
def callable_functions(version: str) -> Mapping[str, Function]:
    """Return the functions of a version that can be evaluated."""
    return {name: f for name, f in table(version).items() if f.state == "ready"}
