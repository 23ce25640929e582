"""Plans: the effects of a create, an update or a convergence, in the order of their risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator_console.json_types import JsonMapping

# Effect -> style class, symbol and word; the most dangerous first.
EFFECTS: Final = {
    "deleted": ("failed", "−", "deleted"),
    "replaced": ("warn", "±", "replaced"),
    "updated": ("busy", "~", "updated"),
    "added": ("ok", "+", "added"),
}
MAX_SHOWN: Final = 500  # changes


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a resource."""

    effect: str
    name: str
    stack_name: str
    type: str
    because: str = ""
    certain: bool = True
    properties: JsonMapping = field(default_factory=dict)  # name -> [before, after]

    @property
    def look(self) -> tuple[str, str, str]:
        """Return the style class, the symbol and the word of the effect."""
        return EFFECTS[self.effect]


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes, and the number of resources that stay as they are."""

    changes: Sequence[Change]
    unchanged: int

    @property
    def shown(self) -> Sequence[Change]:
        """Return the changes that a page shows."""
        return self.changes[:MAX_SHOWN]

    def count(self, effect: str) -> int:
        """Return the number of changes with an effect."""
        return sum(change.effect == effect for change in self.changes)


def of_update(changes: JsonMapping) -> Plan:
    """Return the plan of an update from the answer of the API."""
    unchanged = len(changes.get("unchanged") or ())
    found = []
    for effect in EFFECTS:
        for item in changes.get(effect) or ():
            if item.get("unchanged") is True:
                unchanged += 1
            else:
                found.append(_change(effect, item))
    return Plan(found, unchanged)


def of_create(stack: JsonMapping) -> Plan:
    """Return the plan of a create from the answer of the API."""
    return Plan([_change("added", item) for item in _flat(stack["resources"])], 0)


def _flat(items: Sequence[Any]) -> Iterator[JsonMapping]:
    for item in items:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def _change(effect: str, item: JsonMapping) -> Change:
    changed = dict(item.get("changed_properties") or {})
    changed |= {name: [None, "(not known yet)"] for name in item.get("unknown_properties") or ()}
    return Change(
        effect,
        item["resource_name"],
        item["stack_name"],
        item["resource_type"],
        item.get("because") or "",
        bool(item.get("certain", True)),
        changed,
    )
