"""Restrict the plan of a group's child stack to its changed members.

Members without requirements are judged independently of each other, and the database can judge them: the plan
reads no row of an unchanged member.
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

MAX_SUBSET: Final = 2_000  # members; with more changed members the whole group is planned


@dataclass(frozen=True, slots=True)
class GroupSubset:
    """The changed members of a group."""

    names: list[str]  # including members that the template no longer has
    template: Template  # of the other members


def index_spans(members: Members, resolver: TypeResolver) -> list[Span] | None:
    """Return the members as spans of indexes.

    None when members require each other (rolling updates), have generated names, are nested stacks, or have a
    type that the environment maps to another type.
    """
    if members.window or members.seed:
        return None
    for definition in MemberDefinitions(members).samples():
        if resolver.is_nested(definition) or resolver.resolved_name(definition) != definition.type:
            return None
    return [
        (part.digest, part.type, first, beyond)
        for part in members.parts
        for first, beyond in part.members.ranges
    ]


def is_large_group(template: Template, max_members: int) -> bool:
    """Whether a template belongs to a group with more than `max_members` members."""
    return isinstance(template.resources, MemberDefinitions) and len(template.resources) > max_members


def changed_subset(
    db: Connection[TupleRow], stack_id: int, template: Template, resolver: TypeResolver
) -> GroupSubset | None:
    """Return the changed part of a group; None when the whole template is to be planned."""
    resources = template.resources
    if not isinstance(resources, MemberDefinitions):
        return None
    spans = index_spans(resources.members, resolver)
    if spans is None:
        return None
    names = group_diff.changed_members(db, stack_id, spans, MAX_SUBSET + 1)
    if len(names) > MAX_SUBSET:
        return None
    changed = {name: resources[name] for name in names if name in resources}
    return GroupSubset(names, replace(template, resources=changed))
