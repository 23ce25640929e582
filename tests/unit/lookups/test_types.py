"""The constraints and `Resolve` rules of all registered types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.lookups.kinds import can_look_up
from orchestrator.resources.base import ResourceType
from orchestrator.resources.registry import load_registry
from orchestrator.schema.constraints import AllowedValues, Custom
from orchestrator.schema.custom import known_constraints
from orchestrator.schema.properties import Property
from orchestrator.schema.translation import Resolve

TYPES = load_registry()


def nested(prop: Property) -> Iterator[Property]:
    yield prop
    inner = prop.schema
    for member in (inner,) if isinstance(inner, Property) else (inner or {}).values():
        yield from nested(member)


def member_at(resource_type: ResourceType, path: tuple[str, ...]) -> Property | None:
    """Return the property that a rule reaches."""
    members = resource_type.properties
    for name in path:
        prop = members.get(name)
        if prop is None:
            return None
        found = prop
        while isinstance(prop.schema, Property):
            prop = prop.schema
        members = prop.schema or {}
    return found


def kinds_of(resource_type: ResourceType, rule: Resolve) -> list[str]:
    """Return the look-ups that a rule may use."""
    if not rule.entity_of:
        return [f"{rule.finder}.{rule.entity}" if rule.entity else rule.finder]
    (allowed,) = resource_type.properties[rule.entity_of].constraints
    assert isinstance(allowed, AllowedValues)
    return [f"{rule.finder}.{entity}" for entity in allowed.values]


@pytest.mark.parametrize("name", list(TYPES))
def test_the_constraints_of_a_type_are_known_and_its_rules_reach_properties(name: str) -> None:
    resource_type = TYPES[name]
    named = {
        constraint.name
        for prop in resource_type.properties.values()
        for member in nested(prop)
        for constraint in member.constraints
        if isinstance(constraint, Custom)
    }
    assert named <= known_constraints()
    for rule in resource_type.translation:
        if isinstance(rule, Resolve):
            assert all(can_look_up(kind) for kind in kinds_of(resource_type, rule)), rule
            assert member_at(resource_type, rule.path) is not None, rule
