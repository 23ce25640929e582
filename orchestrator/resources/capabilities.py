"""Class variables of a type that follow from its declarations and verbs, unless the type sets a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Derived:
    """A value computed from the type."""

    def __init__(self, rule: Callable[[Any], bool]) -> None:
        self._rule = rule

    def __get__(self, instance: object | None, owner: type) -> bool:
        return self._rule(owner if instance is None else instance)


class _Implements:
    """Whether the type overrides a verb of the class that declares the variable."""

    def __init__(self, verb: str, or_if: Callable[[Any], bool]) -> None:
        self._verb, self._or_if = verb, or_if
        self._base: type = object

    def __set_name__(self, owner: type, name: str) -> None:
        self._base = owner

    def __get__(self, instance: object | None, owner: type) -> bool:
        overridden = getattr(owner, self._verb) is not getattr(self._base, self._verb)
        return overridden or self._or_if(owner if instance is None else instance)


def derived(rule: Callable[[Any], bool]) -> Any:
    """Declare a boolean class variable that `rule` computes from the type."""
    return _Derived(rule)


def implements(verb: str, or_if: Callable[[Any], bool] = lambda _: False) -> Any:
    """Declare a class variable that is true for types which override `verb`, or for which `or_if` is true."""
    return _Implements(verb, or_if)
