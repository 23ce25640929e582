"""The facts about our resource types, in the form of `heat_facts.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.resources.registry import load_registry
from orchestrator.resources.type_schema import ResourceType
from orchestrator.schema.constraints import (
    AllowedPattern,
    AllowedValues,
    Constraint,
    Custom,
    Length,
    Modulo,
    Range,
)
from orchestrator.schema.properties import Property
from orchestrator.schema.translation import Resolve, Rule

Facts = dict[str, Any]

_USUAL: Facts = {"support": "SUPPORTED", "default": None, "constraints": []}


def our_types() -> dict[str, Facts]:
    """Return the facts about each registered type that is not a plug-in."""
    types = dict(load_registry().items())
    own = [name for name in sorted(types) if type(types[name]).__module__.startswith("orchestrator.")]
    return {name: type_facts(types[name]) for name in own}


def type_facts(type_: ResourceType) -> Facts:
    """Return the facts about a type; empty facts are left out."""
    facts: Facts = {
        "support": "HIDDEN" if type_.hidden else type_.support_status,
        "name_limit": type_.physical_name_limit,
        "placeholder": type_.hidden and type_.any_properties,
        "properties": _properties(type_.properties),
        "update_policy": _properties(type_.update_policy),
        "attributes": {"show": "map live" if type_.live_show else "map"}
        | {name: item.type + (" live" if item.live else "") for name, item in type_.attributes.items()},
        "rules": sorted({text for rule in type_.translation for text in _rule(rule)}),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _properties(declared: Mapping[str, Property]) -> dict[str, Facts]:
    return {name: property_facts(prop) for name, prop in declared.items()}


def property_facts(prop: Property) -> Facts:
    """Return the facts about a property; those with their usual value are left out."""
    facts: Facts = {
        "type": prop.type,
        "required": prop.required,
        "update_allowed": prop.update_allowed,
        "immutable": prop.immutable,
        "unimplemented": not prop.implemented,
        "support": "HIDDEN" if prop.hidden else "DEPRECATED" if prop.deprecated else "SUPPORTED",
        "default": prop.default,
        "constraints": sorted(map(_constraint, prop.constraints)),
    }
    if isinstance(prop.schema, Property):
        facts["members"] = {"*": property_facts(prop.schema)}
    elif prop.schema is not None:
        facts["members"] = _properties(prop.schema)
    return {name: fact for name, fact in facts.items() if fact != _USUAL.get(name, False)}


def _constraint(constraint: Constraint) -> list[Any]:
    match constraint:
        case Length(low, high):
            return ["length", low, high]
        case Range(low, high):
            return ["range", low, high]
        case Modulo(step, offset):
            return ["modulo", step, offset]
        case AllowedValues(values):
            return ["values", sorted(map(str, values))]
        case AllowedPattern(pattern):
            return ["pattern", pattern]
        case Custom(name):
            return ["custom", name]
    raise TypeError(f"unknown constraint {constraint!r}")


def _rule(rule: Rule) -> Iterator[str]:
    words = [type(rule).__name__.lower(), ".".join(rule.path)]
    if not isinstance(rule, Resolve):
        words.append(".".join(getattr(rule, "source", ())) or getattr(rule, "sibling", ""))
    yield " ".join(words).strip()
