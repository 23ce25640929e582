"""OS::Heat::ResourceGroup: a number of equal resources, named by index (docs/internals/resource-types.md
§A6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.json_types import JsonObject
from orchestrator.resources.base import Attribute, Context, Property, Value
from orchestrator.resources.groups.group_metadata import Extras
from orchestrator.resources.groups.group_type import (
    DEFINITIONS,
    NO_MEMBERS,
    PAUSE,
    GroupType,
    Planned,
    by_reference,
    check_health,
    failed_in,
    members_in_child,
    out_of_service,
    parts_of,
    pause_due,
    require_known,
    set_child,
)
from orchestrator.resources.groups.member_removal import entries, free, numbered, skip_list
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
from orchestrator.resources.nested_type import ChildView, Member, NestedStep, Settled
from orchestrator.schema.constraints import AllowedValues, Length, Range
from orchestrator.template.group_template import Definition, Members, Part
from orchestrator.template.index_ranges import Ordinals

SKIPPED, BATCH = "skipped", "batch"  # keys of stored data: names excluded from use; state of the batches

_BATCH: Final = {
    "max_batch_size": Property(
        "integer", "Maximum number of members per batch.", default=1, constraints=(Range(min=1),)
    ),
    "pause_time": Property(
        "number", "Seconds to wait between batches.", default=0, constraints=(Range(min=0),)
    ),
}


class ResourceGroup(GroupType):
    """A number of resources with the same definition, distinguished by their index."""

    name = "OS::Heat::ResourceGroup"
    support_version = "2014.1"
    definition_properties = ("resource_def",)
    exposes_member_attributes = True
    properties = {
        "count": Property(
            "integer", "Number of resources.", default=1, update_allowed=True, constraints=(Range(min=0),)
        ),
        "index_var": Property(
            "string",
            "Placeholder for a member's index in texts of its properties.",
            default="%index%",
            constraints=(Length(min=3),),
        ),
        "resource_def": Property(
            "map",
            "The definition of the members.",
            required=True,
            update_allowed=True,
            schema={
                "type": Property("string", "The type of the members.", required=True),
                "properties": Property("map", "Their properties."),
                "metadata": Property("map", "Their metadata."),
            },
        ),
        "removal_policies": Property(
            "list",
            "Members that an update removes.",
            default=[],
            update_allowed=True,
            schema=Property(
                "map",
                "A list of members to remove.",
                schema={
                    "resource_list": Property(
                        "list",
                        "Names or reference ids of members. They are removed at any count, and the "
                        "name of a removed member is not used again.",
                        default=[],
                    )
                },
            ),
        ),
        "removal_policies_mode": Property(
            "string",
            "Whether earlier removals stay in effect (append) or only the current list counts (update).",
            default="append",
            update_allowed=True,
            constraints=(AllowedValues(("append", "update")),),
        ),
    }
    update_policy = {
        "rolling_update": Property(
            "map",
            "Batches for applying a new definition.",
            schema={
                "min_in_service": Property(
                    "integer",
                    "Minimum number of members in service during a batch.",
                    default=0,
                    constraints=(Range(min=0),),
                ),
                **_BATCH,
            },
        ),
        "batch_create": Property("map", "Batches for creating a new group.", schema=_BATCH),
    }
    attributes = {
        "refs": Attribute("The reference ids of the members.", "list"),
        "refs_map": Attribute("The reference ids of the members by their names.", "map"),
        "attributes": Attribute("The attribute given by the path, by member name.", "map"),
        "removed_rsrc_list": Attribute("The names of removed members.", "list"),
    }

    def planned(self, props: Mapping[str, Value], *, minimum: int = 0) -> Planned:
        """Return a new group's child."""
        listed = entries(props.get("removal_policies") or ())
        desired = free(max(props.get("count", 1), minimum), numbered(map(str, listed)))
        definition = _definition(props)
        parts = (Part.of(definition, desired),) if desired else ()
        return Planned(Members(parts), {definition.digest: definition.value()})

    def step(self, ctx: Context, props: Mapping[str, Value], child: ChildView, turn: int) -> NestedStep:
        """Apply the desired members to the child, in batches if a policy requires it."""
        pause = pause_due(ctx, turn)
        if pause is not None:
            return pause
        extras, before = Extras.of(ctx.metadata), members_in_child(child)
        definition = require_known(_definition(props))
        data = {key: value for key, value in ctx.data.items() if key != PAUSE}
        if not turn:
            data[SKIPPED] = self._skipped(ctx, props, child, before, strict=extras.strict)
            data = _without(data, BATCH, ROLLOUT)
        skipped = numbered(data.get(SKIPPED) or ())
        desired = free(props.get("count", 1), skipped)
        if not turn:
            return self._begin(ctx, child, before, desired, definition, data)
        if BATCH not in data:
            return Settled(data)
        if extras.health_gate and before is not None:
            check_health(child, before, definition.digest)
        group = _group(before, definition)
        return self._batch(child, group, before, desired, definition, data) or _finished(data)

    def in_order(self, members: Sequence[Member]) -> Sequence[Member]:
        """Return members by their numbers."""
        return sorted(members, key=lambda member: (len(member.name), member.name))

    def attribute(self, ctx: Context, members: Sequence[Member], name: str) -> Value:
        """Return an attribute of the group, otherwise the attribute of every member."""
        if name == "removed_rsrc_list":
            return list(ctx.data.get(SKIPPED) or ())
        return super().attribute(ctx, members, name)

    def _skipped(
        self,
        ctx: Context,
        props: Mapping[str, Value],
        child: ChildView,
        before: Members | None,
        *,
        strict: bool,
    ) -> list[str]:
        return skip_list(
            entries(props.get("removal_policies") or ()),
            ctx.data.get(SKIPPED) or (),
            props.get("removal_policies_mode") or "append",
            members=None if before is None else before.template().resources,
            by_reference=lambda: by_reference(child),
            strict=strict,
        )

    def _begin(
        self,
        ctx: Context,
        child: ChildView,
        before: Members | None,
        desired: Ordinals,
        definition: Definition,
        data: dict[str, Value],
    ) -> NestedStep:
        policy = _policy(ctx, "batch_create" if before is None else "rolling_update")
        all_members = NO_MEMBERS if before is None else before.all
        is_new = before is None and bool(desired)
        is_old = before is not None and bool(
            (all_members & desired) - before.with_definition(definition.digest)
        )
        if policy is None or not (is_new or is_old):
            members = Members((Part.of(definition, desired),) if desired else ())
            return set_child(child, members, definition, data)
        group = _group(before, definition)
        if before is not None:
            healthy = all_members - failed_in(child, before) - numbered(data[SKIPPED])
            group = Group(healthy, group.renewed & healthy)
        data[BATCH] = [policy.batch, policy.min_in_service, policy.pause_seconds]
        spare = _spares(data)
        unready = NO_MEMBERS if before is None else out_of_service(child, before).all
        first = with_unready_renewed(group, unready & desired)
        check_pauses(batches(first, desired, policy, spare), policy, ctx.stack_timeout_seconds)
        data[ROLLOUT] = begin_rollout(group, first, desired, policy, spare)
        if first != group:
            parts = parts_of(before, first, definition, data.get(DEFINITIONS) or {})
            rollout = next_rollout(data, group, first, desired)
            return set_child(child, Members(parts), definition, data, rollout)
        return self._batch(child, group, before, desired, definition, data) or _finished(data)

    def _batch(
        self,
        child: ChildView,
        group: Group,
        before: Members | None,
        desired: Ordinals,
        definition: Definition,
        data: dict[str, Value],
    ) -> NestedStep | None:
        """Return the next batch, None after the last."""
        policy, spare = Policy(*data[BATCH]), _spares(data)
        after = next_batch(group, desired, policy, spare)
        if after is None:
            return None
        has_more = next_batch(after, desired, policy, spare) is not None
        if has_more and policy.pause_seconds > 0:
            data = {**data, PAUSE: policy.pause_seconds}
        parts = parts_of(before, after, definition, data.get(DEFINITIONS) or {})
        return set_child(child, Members(parts), definition, data, next_rollout(data, group, after, desired))


def _definition(props: Mapping[str, Value]) -> Definition:
    """Return the definition of the members; a null property counts as absent."""
    definition = props.get("resource_def")
    definition = definition if isinstance(definition, Mapping) else {}
    body: JsonObject = {}
    properties = definition.get("properties")
    if isinstance(properties, Mapping):
        body["properties"] = {key: value for key, value in properties.items() if value is not None}
    if definition.get("metadata"):
        body["metadata"] = definition["metadata"]
    type_name = definition.get("type")
    return Definition(
        type_name if isinstance(type_name, str) else "", body, props.get("index_var", "%index%")
    )


def _policy(ctx: Context, name: str) -> Policy | None:
    policy = ctx.update_policy.get(name)
    if policy is None:
        return None
    return Policy(policy["max_batch_size"], policy.get("min_in_service", 0), float(policy["pause_time"]))


def _group(before: Members | None, definition: Definition) -> Group:
    if before is None:
        return Group(NO_MEMBERS, NO_MEMBERS)
    return Group(before.all, before.with_definition(definition.digest))


def _spares(data: Mapping[str, Value]) -> FreeIndexes:
    skipped = numbered(data.get(SKIPPED) or ())
    return lambda taken, count: free(count, taken | skipped)


def _finished(data: Mapping[str, Value]) -> Settled:
    return Settled(_without(data, BATCH, ROLLOUT))


def _without(data: Mapping[str, Value], *keys: str) -> dict[str, Value]:
    return {name: value for name, value in data.items() if name not in keys}
