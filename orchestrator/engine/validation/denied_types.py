"""The resource types that a caller may not use (operations/adr/0027). Pure.

A type is governed by its own rule of the policy and by its namespace's, `OS::Keystone::*`; it is
permitted if both are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class DeniedTypes:
    """The rules that a caller does not satisfy: names of types, and of namespaces with `::*`."""

    rules: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rules: Collection[str]) -> DeniedTypes:
        """Return the denied types of stored rules."""
        return cls(frozenset(rules)) if rules else NONE_DENIED

    def __bool__(self) -> bool:
        """Whether any type is denied."""
        return bool(self.rules)

    def __or__(self, other: DeniedTypes) -> DeniedTypes:
        """Return the types that are denied to either of two callers."""
        return DeniedTypes(self.rules | other.rules)

    def rule_of(self, type_name: str) -> str | None:
        """Return the rule that denies a type, None if it is permitted."""
        if type_name in self.rules:
            return type_name
        namespace = f"{type_name.rpartition('::')[0]}::*"
        return namespace if namespace in self.rules else None

    def stored(self) -> list[str]:
        """Return the rules as a revision stores them."""
        return sorted(self.rules)


NONE_DENIED: Final = DeniedTypes()
