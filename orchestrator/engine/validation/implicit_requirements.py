"""Requirements that resource types imply, added to those that a template writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from orchestrator.engine.validation.type_resolution import TypeResolver, UnknownType
from orchestrator.errors import InvalidTemplate
from orchestrator.graph.build import build
from orchestrator.resources.base import ResourceType
from orchestrator.template.template import Template

MAX_WALKED: Final = 1_000_000  # resources met in the search for cycles that implied requirements would close


def with_implicit(template: Template, resolver: TypeResolver) -> Template:
    """Return a template whose resources also require the resources that their types imply.

    An implied requirement that would close a cycle is left out, for it is not in the template.
    """
    if not any(_implies(resolver.of(definition)) for definition in resolver.samples(template)):
        return template
    resources = template.resources
    implicit: dict[str, frozenset[str]] = {}
    for name, definition in resources.items():
        resource_type = resolver.of(definition)
        if isinstance(resource_type, ResourceType) and _implies(resource_type):
            implied = {n for n in resource_type.implicit_requires(definition, resources) if n in resources}
            if implied := implied - definition.requires - {name}:
                implicit[name] = frozenset(implied)
    if not implicit:
        return template
    requires = {name: definition.requires for name, definition in resources.items()}
    wider = {name: needs | implicit.get(name, frozenset()) for name, needs in requires.items()}
    if not _is_ordered(wider):
        wider = _without_cycles(requires, implicit) if _is_ordered(requires) else requires
    changed = {name: replace(resources[name], requires=wider[name]) for name in implicit}
    return replace(template, resources={**resources, **changed})


def _implies(resource_type: ResourceType | UnknownType) -> bool:
    """Whether a type may imply requirements."""
    base = ResourceType.implicit_requires
    return isinstance(resource_type, ResourceType) and type(resource_type).implicit_requires is not base


def _is_ordered(requires: Mapping[str, frozenset[str]]) -> bool:
    try:
        build(list(requires), list(requires.values()))
    except InvalidTemplate:
        return False
    return True


def _without_cycles(
    requires: Mapping[str, frozenset[str]], implicit: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return `requires` with each requirement of `implicit` that closes no cycle.

    The search is bounded by MAX_WALKED; beyond it, the remaining implied requirements are left out.
    """
    made = dict(requires)
    budget = MAX_WALKED
    for name, implied in implicit.items():
        for required in sorted(implied):
            walked = _walk(required, name, made, budget)
            budget -= len(walked)
            if budget <= 0:
                return made
            if name not in walked:
                made[name] |= {required}
    return made


def _walk(start: str, end: str, requires: Mapping[str, frozenset[str]], limit: int) -> set[str]:
    """Return `start` and its requirements, direct or not, at most until `end` is found."""
    visited = {start}
    todo = [start]
    while todo and end not in visited and len(visited) < limit:
        fresh = requires[todo.pop()] - visited
        visited |= fresh
        todo += fresh
    return visited
