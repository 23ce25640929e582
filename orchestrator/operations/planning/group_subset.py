"""Narrow a plan of a group's child to the members that it has anything to do with.

Members that wait for nobody are judged one by one, and the database can do that: what it finds to be as
wanted is not read at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.store.planning import group_diff
from orchestrator.store.planning.group_diff import Span
from orchestrator.template.group_template import MemberDefinitions, Members
from orchestrator.template.template import Template

FEW: Final = 2_000  # members that differ: then the plan is made of these alone


@dataclass(frozen=True, slots=True)
class GroupSubset:
    """What is left of a plan: the members that differ, by name, and what is wanted of them."""

    names: list[str]
    template: Template


def index_spans(members: Members, kinds: TypeResolver) -> list[Span] | None:
    """Return the members as spans; None when they wait for each other, have names that say nothing, or are
    stacks or of types that the environment puts others in place of.
    """
    if members.window or members.seed:
        return None
    for definition in MemberDefinitions(members).samples():
        if kinds.is_nested(definition) or kinds.resolved_name(definition) != definition.type:
            return None
    return [
        (part.digest, part.type, first, beyond)
        for part in members.parts
        for first, beyond in part.members.ranges
    ]


def is_large_group(template: Template, most: int) -> bool:
    """Whether a template is that of a group with more members than `most`."""
    return isinstance(template.resources, MemberDefinitions) and len(template.resources) > most


def changed_subset(
    db: Connection[TupleRow], stack_id: int, template: Template, kinds: TypeResolver
) -> GroupSubset | None:
    """Return the part of a plan that there is anything to do in; None when it is to be made in full."""
    resources = template.resources
    if not isinstance(resources, MemberDefinitions):
        return None
    spans = index_spans(resources.members, kinds)
    if spans is None:
        return None
    names = group_diff.changed_members(db, stack_id, spans, FEW + 1)
    if len(names) > FEW:
        return None
    few = {name: resources[name] for name in names if name in resources}
    return GroupSubset(names, replace(template, resources=few))
