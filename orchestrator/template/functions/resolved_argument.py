"""Declare functions whose argument may itself be computed by a function.

The plain functions of `registry.py` check the structure of their unresolved argument. Several functions of
the language check it after resolution only: ``{map_merge: {get_param: maps}}`` is as valid as a list. They
are declared here, and get their whole argument resolved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from orchestrator.template import versions
from orchestrator.template.function_view import UNKNOWN, View
from orchestrator.template.functions.registry import Check, FunctionError, References, raw_function

F = TypeVar("F", bound=Callable[[Any], Any])

MAX_SHOWN: Final = 1000  # characters of a value quoted in a message
# Characters of a single text, of all texts of a value, and of all properties of a resource. A check of a
# resource of this size takes about a second, which delays other stacks.
MAX_TEXT_LENGTH: Final = 8 * 1024 * 1024
MAX_VALUES: Final = 1_000_000  # in lists and maps, counted per occurrence
MAX_PROPERTY_VALUES: Final = (
    250_000  # in all properties of a resource: they are checked and stored one by one
)
BYTES_OF_A_VALUE: Final = 16
MAX_DEPTH: Final = 200  # levels of nesting; the JSON serializer supports 254


def accept_any(args: object, references: References) -> None:
    """Accept any unresolved argument."""


def whole_function(name: str, *, since: str = versions.FIRST, check: Check = accept_any) -> Callable[[F], F]:
    """Declare a function of one resolved argument; it is not called while a part of the argument is unknown.

    ValueError, TypeError, LookupError and ArithmeticError are converted to `FunctionError`.
    """

    def declare(call: F) -> F:
        @wraps(call)
        def resolve(view: View, args: object) -> Any:
            value = view.resolved(args)
            if not knows_all(value):
                return UNKNOWN
            try:
                made = call(value)
            except (ValueError, TypeError, LookupError, ArithmeticError) as error:
                raise FunctionError(str(error)) from error
            view.charge(cost(made))
            return made

        raw_function(name, since=since, check=check)(resolve)
        return call

    return declare


def knows_all(value: object) -> bool:
    """Return whether a resolved value contains no unknown value.

    Raises:
        FunctionError: the value is too large; see `measure`.
    """
    if value.__class__ is not dict and value.__class__ is not list:
        return value is not UNKNOWN
    return measure(value)


def measure(value: Any, max_values: int = MAX_VALUES) -> bool:
    """Reject a value that is too large to serialize; return whether it contains no unknown value.

    The result of a function may contain the same value many times by reference, which uses no memory until it
    is serialized.

    Raises:
        FunctionError: too many values, too much text, or nested too deep.
    """
    determined, values, characters, depth = True, 1, 0, 0
    level: list[Any] = [[value]]
    while level:
        if depth > MAX_DEPTH:
            raise FunctionError(f"The value would be nested deeper than {MAX_DEPTH} levels")
        depth += 1
        inner: list[Any] = []
        for container in level:
            values += len(container)
            if values > max_values:
                raise FunctionError(f"The value would hold more than {max_values} values")
            if container.__class__ is dict:
                for key in container:
                    if key.__class__ is str:
                        characters += len(key)
            for item in container.values() if container.__class__ is dict else container:
                type_ = item.__class__
                if type_ is str:
                    characters += len(item)
                elif type_ is dict or type_ is list:
                    inner.append(item)
                elif item is UNKNOWN:
                    determined = False
        if characters > MAX_TEXT_LENGTH:
            raise FunctionError(f"The value would hold more than {MAX_TEXT_LENGTH} characters")
        level = inner
    return determined


def cost(made: object) -> int:
    """Return the approximate size in bytes of a function's result, without shared inputs."""
    if isinstance(made, str):
        return len(made)
    return BYTES_OF_A_VALUE * len(made) if isinstance(made, (dict, list)) else 0


def shown(text: str) -> str:
    """Return the beginning of a text that is quoted in a message, all of it if it is short."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def bounded(length: int, name: str) -> None:
    """Refuse a text that would be too long.

    Raises:
        ValueError: it would.
    """
    if length > MAX_TEXT_LENGTH:
        raise ValueError(f'The result of "{name}" would be longer than {MAX_TEXT_LENGTH} characters')
