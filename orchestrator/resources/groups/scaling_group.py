"""Common base of groups that scaling resizes: generated member names, removal of the oldest members first,
and unchanged definitions of members unless a policy updates them (docs/internals/resource-types.md §A6).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from orchestrator.resources.base import Context, Value
from orchestrator.resources.groups import capacity as scaling
from orchestrator.resources.groups.adjustments import (
    Adjustment,
    Bounds,
    Combination,
    Cooldown,
    Rejection,
)
from orchestrator.resources.groups.group_metadata import Extras
from orchestrator.resources.groups.group_type import (
    DEFINITIONS,
    NO_MEMBERS,
    PAUSE,
    GroupType,
    OutOfService,
    Planned,
    by_reference,
    check_health,
    members_in_child,
    out_of_service,
    parts_of,
    pause_due,
    set_child,
)
from orchestrator.resources.groups.member_removal import not_members, remaining, without_surplus
from orchestrator.resources.groups.rolling_update import (
    ROLLOUT,
    FreeIndexes,
    Group,
    Policy,
    batches,
    begin_rollout,
    check_pauses,
    next_batch,
    next_rollout,
    with_unready_renewed,
)
from orchestrator.resources.nested_type import ChildView, NestedStep, Rollout, SetChild, Settled
from orchestrator.template.group_template import Definition, Members, Part
from orchestrator.template.index_ranges import Ordinals

# Keys of stored data: state and target size of the batches; the size after them; whether batches were used.
ROLLING, SIZE, BATCHED = "rolling", "size", "batched"


@dataclass(frozen=True, slots=True)
class Scaled:
    """The result of adjustments: a step, unless nothing changes, and for each adjustment its rejection."""

    step: SetChild | None
    rejections: Sequence[Rejection | None]


class ScalingGroup(GroupType):
    """A group whose size the template does not fully determine."""

    cools_down: bool = True
    open_metadata = True  # the time of the last scaling is not secret

    def bounds(self, props: Mapping[str, Value]) -> Bounds:
        """Return the sizes that properties allow."""
        raise NotImplementedError(self.name)

    def definition(self, ctx: Context, props: Mapping[str, Value], child: ChildView) -> Definition:
        """Return the definition of the members."""
        raise NotImplementedError(self.name)

    def rolling(self, ctx: Context, props: Mapping[str, Value]) -> Policy | None:
        """Return the batches for a new definition, None if members keep their definition."""
        raise NotImplementedError(self.name)

    def cooldown(self, props: Mapping[str, Value]) -> float | None:
        """Return the cooldown in seconds after scaling."""
        return props.get("cooldown")

    def planned_definition(self, props: Mapping[str, Value]) -> Definition | None:
        """Return the definition of the members, as far as the properties determine it."""
        raise NotImplementedError(self.name)

    def planned(self, props: Mapping[str, Value], *, minimum: int = 0) -> Planned:
        """Return a new group's child."""
        definition = self.planned_definition(props)
        if definition is None:
            return Planned(Members(), {})
        first = Ordinals.span(0, max(_initial(self.bounds(props)), minimum))
        parts = (Part.of(definition, first),) if first else ()
        return Planned(Members(parts, self.name, len(first)), {definition.digest: definition.value()})

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the current definition to the members, then the desired size."""
        pause = pause_due(ctx, turn)
        if pause is not None:
            return pause
        data = {key: value for key, value in ctx.data.items() if key != PAUSE}
        before = members_in_child(child)
        if before is None:
            return self._settled(ctx, props, child, data) if turn else self._create(ctx, props, child, data)
        if not turn:
            return self._update(ctx, props, child, before, data)
        if ROLLING in data:
            return self._roll_on(ctx, props, child, before, data)
        return self._settled(ctx, props, child, data)

    # Creating a group, and updating it from a template.

    def _create(
        self, ctx: Context, props: Mapping[str, Value], child: ChildView, data: dict[str, Value]
    ) -> NestedStep:
        definition = self.definition(ctx, props, child)
        first = Ordinals.span(0, _initial(self.bounds(props)))
        seed = hashlib.sha256(ctx.token.encode()).hexdigest()[:16]
        parts = (Part.of(definition, first),) if first else ()
        return set_child(child, Members(parts, seed, len(first)), definition, _without(data, ROLLING, SIZE))

    def _update(
        self,
        ctx: Context,
        props: Mapping[str, Value],
        child: ChildView,
        before: Members,
        data: dict[str, Value],
    ) -> NestedStep:
        definition, bounds = self.definition(ctx, props, child), self.bounds(props)
        broken, all_members = out_of_service(child, before), before.all
        asked = None if ctx.unchanged else bounds.desired  # a repair does not undo a scaling operation
        size = _bounded(asked or len(all_members), bounds)
        data = {**_without(data, ROLLING, BATCHED, ROLLOUT), SIZE: size}
        policy = self.rolling(ctx, props)
        if policy is None or not all_members - before.with_definition(definition.digest):
            return self._resize(ctx, child, before, definition, data, broken)
        first = min(bounds.desired or len(all_members), len(all_members))
        data[BATCHED] = True
        data[ROLLING] = [policy.batch, policy.min_in_service, policy.pause_seconds, first]
        healthy = _in_service(before, definition, broken, first, Extras.of(ctx.metadata))
        group = with_unready_renewed(healthy, broken.all)
        lasting, spare = _lasting(group.present, first, before), _younger(before)
        check_pauses(batches(group, lasting, policy, spare), policy, ctx.stack_timeout_seconds)
        data[ROLLOUT] = begin_rollout(healthy, group, lasting, policy, spare)
        if group != healthy:
            parts = parts_of(before, group, definition, data.get(DEFINITIONS) or {})
            members = Members(parts, before.seed, before.first_unused)
            return set_child(child, members, definition, data, next_rollout(data, healthy, group, lasting))
        step = self._batch(child, healthy, before, definition, data)
        return step or self._resize(ctx, child, before, definition, _without(data, ROLLING), broken)

    def _roll_on(
        self,
        ctx: Context,
        props: Mapping[str, Value],
        child: ChildView,
        before: Members,
        data: dict[str, Value],
    ) -> NestedStep:
        definition = self.definition(ctx, props, child)
        if Extras.of(ctx.metadata).health_gate:
            check_health(child, before, definition.digest)
        group = Group(before.all, before.with_definition(definition.digest))
        step = self._batch(child, group, before, definition, data)
        if step is not None:
            return step
        data = _without(data, ROLLING)
        if len(before.all) == data[SIZE] and not Extras.of(ctx.metadata).remove:
            return self._settled(ctx, props, child, data)
        return self._resize(ctx, child, before, definition, data, out_of_service(child, before))

    def _batch(
        self, child: ChildView, group: Group, before: Members, definition: Definition, data: dict[str, Value]
    ) -> NestedStep | None:
        """Return the next batch, None after the last."""
        *numbers, size = data[ROLLING]
        policy, spare = Policy(*numbers), _younger(before)
        desired = _lasting(group.present, size, before)
        after = next_batch(group, desired, policy, spare, lowest_first=True)
        if after is None:
            return None
        first_unused = max(before.first_unused, after.present.beyond)
        remaining_members = _lasting(after.present, size, replace(before, first_unused=first_unused))
        if policy.pause_seconds > 0 and (
            after.present != remaining_members or after.renewed != remaining_members
        ):
            data = {**data, PAUSE: policy.pause_seconds}
        parts = parts_of(before, after, definition, data.get(DEFINITIONS) or {})
        members = Members(parts, before.seed, first_unused)
        return set_child(child, members, definition, data, next_rollout(data, group, after, desired))

    def _resize(
        self,
        ctx: Context,
        child: ChildView,
        before: Members,
        definition: Definition,
        data: dict[str, Value],
        broken: OutOfService,
    ) -> SetChild:
        """Return the step to the size stored in `data`; members selected for removal are removed at any
        size.
        """
        extras = Extras.of(ctx.metadata)
        present = before.all - (_named(extras.remove, child, before) if extras.remove else NO_MEMBERS)
        step = _resized(child, before, present, definition, data, broken, extras)
        return replace(step, rollout=_all_batches(data))

    def _settled(
        self, ctx: Context, props: Mapping[str, Value], child: ChildView, data: dict[str, Value]
    ) -> Settled:
        batched = bool(data.get(BATCHED))
        data = _without(data, ROLLING, SIZE, BATCHED, ROLLOUT)
        if not self.cools_down:
            return Settled(data, batched=batched)
        before = members_in_child(child)
        size = 0 if before is None else len(before.all)
        reason, now = f"ExactCapacity : {size}", scaling.utc_now()
        metadata = scaling.finished(ctx.metadata, self.cooldown(props), reason, now)
        return Settled(data, metadata, batched=batched)

    # A group that is scaled.

    def scaled(
        self,
        ctx: Context,
        props: Mapping[str, Value],
        child: ChildView,
        adjustments: Sequence[Adjustment],
        now: datetime,
        until: str = "",
    ) -> Scaled:
        """Return the step for adjustments, which apply in order. `until` is the end of the cooldown that
        counts from the start of a resize in progress.
        """
        before = members_in_child(child)
        if before is None:
            return Scaled(None, [Rejection("its stack has a different template")] * len(adjustments))
        broken, extras = out_of_service(child, before), Extras.of(ctx.metadata)
        combination = Combination(
            before.all,
            broken.failed,
            broken.all,
            self.bounds(props),
            Cooldown(max(scaling.cooldown_end(ctx.metadata), until), self.cooldown(props)),
            now,
            lambda names: _named(names, child, before, strict=True),
        )
        size_before = combination.size
        rejections = combination.apply_all(adjustments)
        is_unchanged = combination.size == size_before and not combination.removed
        if is_unchanged and (not combination.is_resized or not broken.failed):
            return Scaled(None, rejections)
        definition = self.definition(ctx, props, child)
        data = {**_without(dict(ctx.data), ROLLING, PAUSE, ROLLOUT), SIZE: combination.size}
        present = before.all - combination.removed
        return Scaled(_resized(child, before, present, definition, data, broken, extras), rejections)


def _resized(
    child: ChildView,
    before: Members,
    present: Ordinals,
    definition: Definition,
    data: dict[str, Value],
    broken: OutOfService,
    extras: Extras,
) -> SetChild:
    size = data[SIZE]
    old = present - before.with_definition(definition.digest)
    retained = remaining(present, size, first=broken.removal_order, outdated=old, victims=extras.victims)
    fresh = _younger(before)(retained, size - len(retained))
    after = Group(retained | fresh, (retained - old) | fresh)
    parts = parts_of(before, after, definition, data.get(DEFINITIONS) or {})
    first_unused = max(before.first_unused, fresh.beyond)
    return set_child(child, Members(parts, before.seed, first_unused), definition, data)


def _named(desired: tuple[str, ...], child: ChildView, before: Members, *, strict: bool = False) -> Ordinals:
    """Return the members selected for removal; earlier removed members may be listed again, unless `strict`.

    Raises:
        ProviderError: an entry never was a member.
    """
    matches, unknown, all_members = set(), [], before.all
    references: Mapping[str, str] | None = None
    for name in desired:
        number = before.number(name)
        if number is None or number >= before.first_unused:
            references = by_reference(child) if references is None else references
            number = before.number(references.get(name, ""))
        if number is None or (strict and number not in all_members):
            unknown.append(name)
        else:
            matches.add(number)
    if unknown:
        raise not_members(unknown)
    return Ordinals.of(matches)


def _in_service(
    before: Members, definition: Definition, broken: OutOfService, size: int, extras: Extras
) -> Group:
    """Return the group for a rolling update, without failed members and without other members that are not
    in service, as far as the group becomes smaller.
    """
    youngest = extras.victims == "newest"
    present = without_surplus(before.all - broken.failed, size, broken.removal_order, youngest=youngest)
    return Group(present, before.with_definition(definition.digest) & present)


def _initial(bounds: Bounds) -> int:
    return bounds.desired or bounds.minimum


def _bounded(size: int, bounds: Bounds) -> int:
    return scaling.bounded(
        size, bounds.minimum, max(size, bounds.minimum) if bounds.maximum is None else bounds.maximum
    )


def _younger(before: Members) -> FreeIndexes:
    """Return the allocation of new members: numbers never used before."""

    def spare(taken: Ordinals, count: int) -> Ordinals:
        start = max(before.first_unused, taken.beyond)
        return Ordinals.span(start, start + count)

    return spare


def _all_batches(data: Mapping[str, Value]) -> Rollout | None:
    """Return the end of the batches, during the resize after them."""
    number, _, total = data.get(ROLLOUT) or (0, 0, 0)
    if not number:
        return None
    return Rollout(number, number, total, 0, total)


def _lasting(present: Ordinals, size: int, before: Members) -> Ordinals:
    """Return the final members: the youngest, and new members if too few exist."""
    retained = remaining(present, size)
    return retained | _younger(before)(present, size - len(retained))


def _without(data: Mapping[str, Value], *keys: str) -> dict[str, Value]:
    return {name: value for name, value in data.items() if name not in keys}
