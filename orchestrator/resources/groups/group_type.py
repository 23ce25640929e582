"""Common base of group types: a child of equal members, created and updated in batches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import Context, Value
from orchestrator.resources.groups.rolling_update import Group, with_rollout
from orchestrator.resources.nested_type import (
    AttributePath,
    ChildTemplate,
    ChildView,
    Member,
    NestedStep,
    NestedType,
    Pause,
    Rollout,
    SetChild,
)
from orchestrator.template import member_attributes
from orchestrator.template.group_template import PARAMETER, Definition, Members, Part, is_members
from orchestrator.template.index_ranges import Ordinals

ALL: Final = "*"
RESOURCE: Final = "resource."  # prefix of the attributes of a member
DEFINITIONS, PAUSE = "definitions", "pause"  # keys of stored data: definitions by digest; seconds to wait
SIZE: Final = "current_size"
ATTRIBUTE_MAPS: Final = ("attributes", "outputs")  # the attributes of all members, by name
ATTRIBUTE_LIST: Final = "outputs_list"
MAX_LISTED: Final = 100  # up to this number of members, their ids are always stored

NO_MEMBERS: Final = Ordinals()
NO_KEYS: Final[Collection[AttributePath]] = ((),)
NO_PATHS: Final[frozenset[AttributePath]] = frozenset()


@dataclass(frozen=True, slots=True)
class Planned:
    """The child of a group as it would be created, for validation and preview."""

    members: Members
    definitions: JsonMapping  # by digest, as the child's parameter has them


class GroupType(NestedType):
    """A type whose child is a group of equal members."""

    definition_properties: tuple[str, ...] = ()  # properties that hold the definition of the members
    exposes_member_attributes: bool = False  # attributes of the members are list attributes of the group
    implied_type: str = ""  # the type of all members, if no property defines it

    def planned(self, props: Mapping[str, Value], *, minimum: int = 0) -> Planned:
        """Return the child of a new group, with at least `minimum` members; properties that are not known yet
        are absent.
        """
        raise NotImplementedError(self.name)

    def has_attribute(self, name: str) -> bool:
        """Accept declared attributes, and the attributes of a single member or of all members."""
        return super().has_attribute(name) or name.startswith(RESOURCE) or self.exposes_member_attributes

    def child_reference_id(self, ctx: Context, child: ChildView) -> str | None:
        """Return the child's id."""
        return child.uuid

    def child_attributes(
        self, ctx: Context, child: ChildView, requested: Collection[str]
    ) -> Mapping[str, Value]:
        """Return the requested attributes; for a small group always include the member list."""
        names = set(requested) - {"show"}
        if ALL in names:
            names = (names | self.attributes.keys()) - {ALL}
        before = members_in_child(child)
        if before is None or len(before.all) <= MAX_LISTED:
            names |= self.attributes.keys() & {"refs", "refs_map", SIZE}
        attributes: dict[str, Value] = {}
        if before is not None and SIZE in names & self.attributes.keys():
            attributes[SIZE] = actual_size(child, before)
            names.remove(SIZE)
        if not names:
            return attributes
        ordered = [member for member in self.in_order(child.members()) if not member.failed]
        members = self._reaching(ordered, names, ctx.attribute_paths)
        attributes |= {name: self.attribute(ctx, members, name) for name in sorted(names)}
        return {name: value for name, value in attributes.items() if value is not None}

    def in_order(self, members: Sequence[Member]) -> Sequence[Member]:
        """Return members in the order of list attributes; `members` are ordered by age, oldest first."""
        return members

    def attribute(self, ctx: Context, members: Sequence[Member], name: str) -> Value:
        """Return an attribute, None if it does not exist."""
        if name == "refs":
            return [reference(member) for member in members]
        if name == "refs_map":
            return {member.name: reference(member) for member in members}
        if name in ATTRIBUTE_MAPS and name in self.attributes:
            return member_attributes.mark_each({member.name: member.attributes for member in members})
        if name == ATTRIBUTE_LIST and name in self.attributes:
            return member_attributes.mark_each([member.attributes for member in members])
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
        """Return the member that ``resource.<key>`` refers to, by default by name."""
        return next((member for member in members if member.name == key), None)

    def _reaching(
        self,
        members: Sequence[Member],
        names: Collection[str],
        paths: Mapping[str, Collection[AttributePath]],
    ) -> Sequence[Member]:
        """Return the members with the attributes that these attributes of the group reach in them."""
        of_all: set[AttributePath] = set()
        of_one: dict[str, set[AttributePath]] = {}
        for name in names:
            keys = paths.get(name, NO_KEYS)
            if name.startswith(RESOURCE):
                key, _, inner = name.removeprefix(RESOURCE).partition(".")
                member = self.member_named(members, key)
                if member is not None:
                    of_one.setdefault(member.name, set()).update(_below(inner, keys))
            elif name not in self.attributes:
                of_all |= _below(name, keys) if self.exposes_member_attributes else NO_PATHS
            elif name in (*ATTRIBUTE_MAPS, ATTRIBUTE_LIST):
                of_all |= _below("", keys)
        if not of_all and not of_one:
            return members
        return [member.reaching(of_all | of_one.get(member.name, NO_PATHS)) for member in members]


def _below(name: str, keys: Collection[AttributePath]) -> set[AttributePath]:
    """Return the paths of these keys below an attribute; without a name, the first key is the attribute."""
    return {(name, *rest) for rest in keys} if name else {rest for rest in keys if rest}


def members_in_child(child: ChildView) -> Members | None:
    """Return the members of a child; None if it does not exist, or was updated directly to another
    template.
    """
    text = child.template
    return Members.parse(text) if text is not None and is_members(text) else None


def reference(member: Member) -> str | None:
    """Return the value of `get_resource` for a member."""
    return member.physical_id if member.reference_id is None else member.reference_id


def failed_in(child: ChildView, members: Members) -> Ordinals:
    """Return the members that are broken."""
    return members.numbers(list(child.failed()))


@dataclass(frozen=True, slots=True)
class OutOfService:
    """The members that are not in service."""

    stuck: Ordinals = NO_MEMBERS
    failed: Ordinals = NO_MEMBERS
    uncreated: Ordinals = NO_MEMBERS
    unready: Ordinals = NO_MEMBERS

    @property
    def removal_order(self) -> tuple[Ordinals, ...]:
        """The members that are removed before those in service."""
        return (self.stuck, self.failed, self.uncreated, self.unready)

    @property
    def all(self) -> Ordinals:
        """All members that are not in service."""
        return _joined(self.removal_order)


def out_of_service(child: ChildView, members: Members) -> OutOfService:
    """Return the members that are not in service, including members that are not recorded yet."""
    found = child.conditions()
    uncreated = members.numbers(list(found.uncreated))
    if found.total is not None and found.total < len(members.all):
        uncreated |= members.all - members.numbers(list(child.names()))
    stuck, failed = members.numbers(list(found.stuck)), members.numbers(list(found.failed))
    return OutOfService(stuck, failed, uncreated, members.numbers(list(found.unready)))


def actual_size(child: ChildView, members: Members) -> int:
    """Return the number of existing members, without those that failed or never became ready."""
    found = child.conditions()
    total = len(members.all) if found.total is None else found.total
    return total - len(found.stuck) - len(found.failed) - len(found.uncreated)


def require_known(definition: Definition) -> Definition:
    """Return the definition of the members.

    Raises:
        ProviderError: it is not known, which occurs in previews only.
    """
    if not definition.type:
        raise ProviderError("the definition of the members is not known yet")
    return definition


def by_reference(child: ChildView) -> dict[str, str]:
    """Return the names of members by reference id. Reads all of them."""
    return {id_: member.name for member in child.members() if (id_ := reference(member)) is not None}


def parts_of(
    before: Members | None, after: Group, definition: Definition, stored: Mapping[str, Value]
) -> tuple[Part, ...]:
    """Return the parts of a group in which renewed members have the new definition, all others their old one.

    A member whose old definition is no longer stored gets the new one.
    """
    new = after.renewed
    older: list[Part] = []
    for part in () if before is None else before.subset(after.present - after.renewed):
        if part.digest == definition.digest or part.digest not in stored:
            new |= part.members
        else:
            older.append(part)
    new |= after.present - new - _joined(part.members for part in older)
    return (*older, Part.of(definition, new)) if new else tuple(older)


def set_child(
    child: ChildView,
    members: Members,
    definition: Definition,
    data: Mapping[str, Value],
    rollout: Rollout | None = None,
) -> SetChild:
    """Return the step to these members; `data` holds the older definitions, of which the used ones are
    kept.
    """
    data = with_rollout(data, rollout)
    all_definitions = {**(data.get(DEFINITIONS) or {}), definition.digest: definition.value()}
    used = {part.digest for part in members.parts} | {definition.digest}
    definitions = {digest: value for digest, value in all_definitions.items() if digest in used}
    template = ChildTemplate("", members.text(), child.environment({PARAMETER: definitions}))
    stored = {**data, DEFINITIONS: definitions}
    return SetChild(template, stored, keeps_files=len(used) > 1, rollout=rollout)


def pause_due(ctx: Context, turn: int) -> NestedStep | None:
    """Return the pause after a batch, None if no pause is due or it is over."""
    seconds = ctx.data.get(PAUSE)
    if not turn or not seconds:
        return None
    return Pause(float(seconds), {key: value for key, value in ctx.data.items() if key != PAUSE})


def check_health(child: ChildView, members: Members, digest: str) -> None:
    """Check the health of the updated members.

    Raises:
        ProviderError: a member is unhealthy; the remaining members keep their definition.
    """
    unhealthy = members.names(members.with_definition(digest) & failed_in(child, members))
    if unhealthy:
        shown = ", ".join(unhealthy[:10]) + (
            f" and {len(unhealthy) - 10} more" if len(unhealthy) > 10 else ""
        )
        raise ProviderError(f"Stopped after a batch with unhealthy members: {shown}", kind="UnhealthyMembers")


def _joined(sets: Iterable[Ordinals]) -> Ordinals:
    removed = Ordinals()
    for part in sets:
        removed |= part
    return removed
