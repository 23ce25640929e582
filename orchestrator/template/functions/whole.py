"""Declare a function whose argument may itself come from a function, and look at arguments as written.

The plain functions of `registry.py` take their argument apart as it is written. Several functions of the
language look at it only once it is resolved: ``{map_merge: {get_param: maps}}`` is as good as a list. They
are declared here, and get their whole argument, resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from orchestrator.template import versions
from orchestrator.template.functions.registry import Check, FunctionError, References, raw_function
from orchestrator.template.view import UNKNOWN, View

F = TypeVar("F", bound=Callable[[Any], Any])

LONGEST_SHOWN: Final = 1000  # characters of a value quoted in a message
LARGEST_TEXT: Final = 64 * 1024 * 1024  # characters


def anything(args: Any, found: References) -> None:
    """Refuse nothing before the argument is resolved."""


def whole_function(name: str, *, since: str = versions.FIRST, check: Check = anything) -> Callable[[F], F]:
    """Declare a function of one resolved argument; it is not called while anything in that is unknown.

    What it raises as ValueError, TypeError, LookupError or ArithmeticError becomes a `FunctionError`.
    """

    def declare(call: F) -> F:
        @wraps(call)
        def resolve(view: View, args: Any) -> Any:
            value = view.resolved(args)
            if not knows_all(value):
                return UNKNOWN
            try:
                return call(value)
            except (ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise FunctionError(str(error)) from error

        raw_function(name, since=since, check=check)(resolve)
        return call

    return declare


def knows_all(value: Any) -> bool:
    """Whether nothing in a resolved value is unknown."""
    if value.__class__ is not dict and value.__class__ is not list:
        return value is not UNKNOWN
    todo = [value]
    while todo:
        held = todo.pop()
        for item in held.values() if held.__class__ is dict else held:
            if item.__class__ is dict or item.__class__ is list:
                todo.append(item)
            elif item is UNKNOWN:
                return False
    return True


def shown(text: str) -> str:
    """Return the beginning of a text that is quoted in a message, all of it if it is short."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def bounded(length: int, name: str) -> None:
    """Refuse a text that would be too long.

    Raises:
        ValueError: it would.
    """
    if length > LARGEST_TEXT:
        raise ValueError(f'The result of "{name}" would be longer than {LARGEST_TEXT} characters')
