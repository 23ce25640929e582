"""What all group types have in common: a child of like members, made in batches where that is wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from orchestrator.errors import ProviderError
from orchestrator.resources.base import Context, Value
from orchestrator.resources.groups.rolling_update import Group
from orchestrator.resources.nested_type import (
    ChildTemplate,
    ChildView,
    Member,
    NestedStep,
    NestedType,
    Pause,
    SetChild,
)
from orchestrator.template import member_attributes
from orchestrator.template.group_template import PARAMETER, Definition, Members, Part, is_members
from orchestrator.template.index_ranges import Ordinals

ALL: Final = "*"
RESOURCE: Final = "resource."  # begins the attributes of one member
DEFINITIONS, PAUSE = "definitions", "pause"  # kept: what members are made from, by digest; seconds to wait
SIZE: Final = "current_size"
MAX_LISTED: Final = 100  # members up to which their ids are kept, whether somebody asks for them or not

NO_MEMBERS: Final = Ordinals()


@dataclass(frozen=True, slots=True)
class Planned:
    """A child as it would be made: for looking at it before it is."""

    members: Members
    definitions: Mapping[str, Any]  # by digest, as the child's parameter has them


class GroupType(NestedType):
    """A type whose child is a group of like members."""

    definition_properties: tuple[str, ...] = ()  # properties that hold the definition of the members
    exposes_member_attributes: bool = False  # attributes of the members are list attributes of the group

    def planned(self, props: Mapping[str, Value]) -> Planned:
        """Return the child of a new group; properties that are not known yet are absent."""
        raise NotImplementedError(self.name)

    def has_attribute(self, name: str) -> bool:
        """Besides those declared, the attributes of one member or of all."""
        return super().has_attribute(name) or name.startswith(RESOURCE) or self.exposes_member_attributes

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return the child's id."""
        return child.uuid

    def child_attributes(self, ctx: Context, child: ChildView, asked: Collection[str]) -> Mapping[str, Value]:
        """Return what is asked for, and in a small group who there is."""
        wanted = set(asked) - {"show"}
        if ALL in wanted:
            wanted = (wanted | self.attributes.keys()) - {ALL}
        before = members_in_child(child)
        if before is None or len(before.all) <= MAX_LISTED:
            wanted |= self.attributes.keys() & {"refs", "refs_map", SIZE}
        found: dict[str, Value] = {}
        if before is not None and SIZE in wanted & self.attributes.keys():
            found[SIZE] = len(before.all - failed_in(child, before))
            wanted.remove(SIZE)
        if not wanted:
            return found
        members = [member for member in self.in_order(child.members()) if not member.failed]
        found |= {name: self.attribute(ctx, members, name) for name in sorted(wanted)}
        return {name: value for name, value in found.items() if value is not None}

    def in_order(self, members: Sequence[Member]) -> Sequence[Member]:
        """Return members, which come the oldest first, in the order that attributes have."""
        return members

    def attribute(self, ctx: Context, members: Sequence[Member], name: str) -> Value:
        """Return an attribute, None when there is none of that name."""
        if name == "refs":
            return [reference(member) for member in members]
        if name == "refs_map":
            return {member.name: reference(member) for member in members}
        if name.startswith(RESOURCE):
            key, _, inner = name.removeprefix(RESOURCE).partition(".")
            member = self.member_named(members, key)
            if member is None:
                return None
            return (
                member.attributes.get(inner)
                if inner
                else member_attributes.mark_member(reference(member), member.attributes)
            )
        if self.exposes_member_attributes:
            return member_attributes.mark_each([member.attributes.get(name) for member in members])
        return None

    def member_named(self, members: Sequence[Member], key: str) -> Member | None:
        """Return the member that ``resource.<key>`` means: the one of that name."""
        return next((member for member in members if member.name == key), None)


def members_in_child(child: ChildView) -> Members | None:
    """Return who is in a child; None while there is none, or when others made it something else."""
    text = child.template
    return Members.parse(text) if text is not None and is_members(text) else None


def reference(member: Member) -> str | None:
    """Return what `get_resource` would give of a member."""
    return member.physical_id if member.reference_id is None else member.reference_id


def failed_in(child: ChildView, members: Members) -> Ordinals:
    """Return the members that are broken."""
    return members.numbers(list(child.failed()))


def require_known(definition: Definition) -> Definition:
    """Return what members are made from.

    Raises:
        ProviderError: it is not known, which is so in previews only.
    """
    if not definition.type:
        raise ProviderError("what the members are made from is not known yet")
    return definition


def by_reference(child: ChildView) -> dict[str, str]:
    """Return the names of members by what they are known by elsewhere. Reads all of them."""
    return {id_: member.name for member in child.members() if (id_ := reference(member)) is not None}


def parts_of(
    before: Members | None, after: Group, definition: Definition, kept: Mapping[str, Value]
) -> tuple[Part, ...]:
    """Return the parts of a group in which some have the new definition, and the others what they had.

    Whose older definition is not known any more gets the new one.
    """
    new = after.renewed
    older: list[Part] = []
    for part in () if before is None else before.subset(after.present - after.renewed):
        if part.digest == definition.digest or part.digest not in kept:
            new |= part.members
        else:
            older.append(part)
    new |= after.present - new - _joined(part.members for part in older)
    return (*older, Part.of(definition, new)) if new else tuple(older)


def set_child(
    child: ChildView, members: Members, definition: Definition, data: Mapping[str, Value]
) -> SetChild:
    """Return the step to these members; `data` has the older definitions, and keeps what is used."""
    known = {**(data.get(DEFINITIONS) or {}), definition.digest: definition.value()}
    used = {part.digest for part in members.parts} | {definition.digest}
    definitions = {digest: value for digest, value in known.items() if digest in used}
    wanted = ChildTemplate("", members.text(), child.environment({PARAMETER: definitions}))
    return SetChild(wanted, {**data, DEFINITIONS: definitions}, keeps_files=len(used) > 1)


def pause_due(ctx: Context, turn: int) -> NestedStep | None:
    """Return the pause after a batch, None when there is none, or it is over."""
    seconds = ctx.data.get(PAUSE)
    if not turn or not seconds:
        return None
    return Pause(float(seconds), {key: value for key, value in ctx.data.items() if key != PAUSE})


def check_health(child: ChildView, members: Members, digest: str) -> None:
    """Make sure that the members that were changed are well.

    Raises:
        ProviderError: some are not; the others keep what they have.
    """
    sick = members.names(members.with_definition(digest) & failed_in(child, members))
    if sick:
        shown = ", ".join(sick[:10]) + (f" and {len(sick) - 10} more" if len(sick) > 10 else "")
        raise ProviderError(f"Stopped after a batch with unhealthy members: {shown}", kind="UnhealthyMembers")


def _joined(sets: Iterable[Ordinals]) -> Ordinals:
    found = Ordinals()
    for one in sets:
        found |= one
    return found
