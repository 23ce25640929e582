"""The recorded facts about Heat's types, the explanations, and the comparison with our types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qa.schema_parity.comparison import Difference, Explanation, Facts, differences
from qa.schema_parity.our_facts import our_types

HEAT = Path(__file__).with_name("heat-27.0.1.json")
EXPLAINED = Path(__file__).with_name("explained.json")


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of compared facts; members of maps and lists count as properties."""

    types: int
    properties: int
    attributes: int


def heat_types() -> dict[str, Facts]:
    """Return the recorded facts."""
    found: dict[str, Facts] = json.loads(HEAT.read_text())
    return found


def explanations() -> list[Explanation]:
    """Return the explained differences."""
    return [Explanation(**row) for row in json.loads(EXPLAINED.read_text())]


def compared() -> tuple[list[Difference], list[Explanation], Counts]:
    """Return the differences from our types, their explanations, and the size of the comparison."""
    heat, ours = heat_types(), our_types()
    both = [heat[name] for name in heat.keys() & ours.keys()]
    counts = Counts(
        len(both),
        sum(_count(facts.get("properties", {})) for facts in both),
        sum(len(facts["attributes"]) for facts in both),
    )
    return list(differences(heat, ours)), explanations(), counts


def _count(properties: Mapping[str, Any]) -> int:
    return sum(1 + _count(prop.get("members", {})) for prop in properties.values())
