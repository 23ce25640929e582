"""Class variables of a type that follow from its declarations and verbs, unless the type sets a value.

A value is computed once for each instance: the engine reads some of them several times in each check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[[Any], Any]


class _Derived:
    """A value computed from the type."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self._compute(owner, owner)
        value = vars(instance)[self._name] = self._compute(instance, owner)
        return value

    def _compute(self, holder: object, owner: type) -> Any:
        return self._rule(holder)


class _Implements(_Derived):
    """Whether the type overrides a verb of the class that declares the variable."""

    def __init__(self, verb: str, or_if: Rule) -> None:
        super().__init__(or_if)
        self._verb = verb
        self._base: type = object

    def __set_name__(self, owner: type, name: str) -> None:
        super().__set_name__(owner, name)
        self._base = owner

    def _compute(self, holder: object, owner: type) -> bool:
        overridden = getattr(owner, self._verb) is not getattr(self._base, self._verb)
        return overridden or self._rule(holder)


def derived(rule: Rule) -> Any:
    """Declare a class variable that `rule` computes from the type."""
    return _Derived(rule)


def implements(verb: str, or_if: Rule = lambda _: False) -> Any:
    """Declare a class variable that is true for types which override `verb`, or for which `or_if` is true."""
    return _Implements(verb, or_if)


def names_of_live_attributes(type_: Any) -> frozenset[str]:
    """Return the names of a type's live attributes, among them `show` if it is live."""
    declared = frozenset(name for name, attribute in type_.attributes.items() if attribute.live)
    return declared | {"show"} if type_.live_show else declared
