"""Preview an update of nested stacks, each with its own preview (docs/internals/rest-api.md §5.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

import orjson

from orchestrator.engine.check.child_status import split_request
from orchestrator.engine.preview.property_forecast import PropertyForecast
from orchestrator.engine.preview.results import CurrentResource, ForecastResource
from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.operations.children.child_view import StoredChildView
from orchestrator.operations.preview.create import PlannedResource, planned_resources
from orchestrator.operations.preview.stack import DesiredStack, Preview, ResourceChange, UpdatePreview
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters
from orchestrator.operations.size_budget import charge
from orchestrator.operations.validation.hypothetical_child import (
    HypotheticalChild,
    ParentResource,
    build_hypothetical_child,
)
from orchestrator.resources.groups.group_type import GroupType
from orchestrator.resources.nested_type import NestedType
from orchestrator.schema.properties import join
from orchestrator.store.planning import bulk_writer, preview_reads
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.store.traversals import child_reads
from orchestrator.template.parameters import ParameterValues

UNKNOWN_DEFINITION: Final = "the definition of the members contains values that are not known yet"
MAX_UNKNOWN_MEMBERS: Final = 10_000  # of a new group, listed by name

NestedPreviews = tuple[list[UpdatePreview], list[Diagnostic]]


def preview_descendants(preview: Preview, *, whole: bool = True) -> NestedPreviews:
    """Return the changes to each nested stack below a previewed stack, and the faults that would make the
    update fail there.

    Unless `whole`, only changed stacks are previewed, in which there may be faults that the validation of the
    request cannot find.
    """
    context = preview.context
    previews: list[UpdatePreview] = []
    faults: list[Diagnostic] = []
    children = stacks.children(context.database, preview.stack)
    for name, definition in preview.template.resources.items():
        resource_type = preview.kinds.of(definition)
        if not isinstance(resource_type, NestedType):
            continue
        row, expected = preview.chosen.get(name), preview.expected.get(name)
        turn = "unchanged" if expected is None else expected.turn
        child = children.pop(row.id, None) if row is not None and turn in ("unchanged", "updated") else None
        if turn == "updated" and child is not None:
            try:
                inside, nested_faults = _updated(preview, name, resource_type, child, whole=whole)
            except InvalidTemplate as error:
                inside, nested_faults = [], list(error.diagnostics)
            previews += inside
            path = f"{preview.template.form.keywords.resources}.{name}"
            faults += [replace(fault, path=join(path, fault.path)) for fault in nested_faults]
        elif not whole:
            continue
        elif child is None:
            previews += _added(preview, name, resource_type)
        else:
            previews += _all(preview, child, "unchanged")
    for child in children.values() if whole else ():
        previews += _all(preview, child, "deleted")
    return previews, faults


def _added(preview: Preview, name: str, resource_type: NestedType) -> Iterator[UpdatePreview]:
    outlook = preview.outlooks.get(name)
    if outlook is None:
        return
    parent, child_name = _parent_resource(preview, name, outlook), f"{preview.stack.name}-{name}"
    inside = build_hypothetical_child(preview.context, preview.kinds, resource_type, parent, name=child_name)
    if inside is not None:
        yield from _made(planned_resources(preview.context, inside), inside.name, name)
    elif isinstance(resource_type, GroupType):
        yield UpdatePreview(
            frozenset(), {"added": _new_members(preview, name, resource_type, parent)}, None, child_name, name
        )


def _new_members(
    preview: Preview, name: str, group: GroupType, parent: ParentResource
) -> Sequence[ResourceChange]:
    """Return the members of a new group whose definition contains values that are not known yet; none if
    their number is not known either.
    """
    if not _only_definition_unknown(group, parent):
        return ()
    members = group.planned(parent.properties).members.template().resources
    written = preview.template.resources[name].body.get("properties") or {}
    types = [_written_type(written.get(property_name)) for property_name in group.definition_properties]
    changes = []
    for member in islice(members, MAX_UNKNOWN_MEMBERS):
        charge(member)
        changes.append(ResourceChange(ForecastResource(member, "added"), "".join(types), None))
    return changes


def _written_type(definition: object) -> str:
    """Return the type in a definition of members as written, "" if it is no text."""
    type_ = definition.get("type") if isinstance(definition, Mapping) else None
    return type_ if isinstance(type_, str) else ""


def _made(resources: Sequence[PlannedResource], stack_name: str, parent: str) -> Iterator[UpdatePreview]:
    """Yield a stack to be created, and its descendants."""
    items = [
        ResourceChange(
            ForecastResource(definition.name, "added", metadata=definition.metadata),
            definition.type,
            None,
            definition.required_by,
            definition.description,
            definition.attributes,
        )
        for definition in resources
    ]
    yield UpdatePreview(frozenset(), {"added": items}, None, stack_name, parent)
    for definition in resources:
        if definition.nested is not None:
            yield from _made(definition.nested.resources, definition.nested.name, definition.name)


def _updated(
    preview: Preview, name: str, resource_type: NestedType, child: StackRow, *, whole: bool
) -> NestedPreviews:
    context, outlook, row = preview.context, preview.outlooks.get(name), preview.chosen[name]
    if outlook is None:
        return [], []
    with preview_reads.consistent_snapshot(context.database) as db:
        current = preview.current_resources(db, row.id)
        data = split_request({} if current is None else current.data)[1]
        parent = replace(_parent_resource(preview, name, outlook), data=data)
        view = StoredChildView(
            db,
            context.database,
            context.cipher,
            child_reads.state(db, row.id),
            preview.kinds,
            preview.stack.id,
            name,
        )
        build = partial(
            build_hypothetical_child,
            context,
            preview.kinds,
            resource_type,
            name=child.name,
            uuid=str(child.uuid),
            child=view,
        )
        inside, same_definition = build(parent), None
        if inside is None and current is not None:
            same_definition = _with_recorded_definition(resource_type, parent, current)
            inside = None if same_definition is None else build(same_definition)
    if inside is None:
        return [], []
    if inside.faults:
        return [], list(inside.faults)
    made = Preview(context, child, _intent(preview, inside, child))
    update = made.run()
    inner, faults = preview_descendants(made, whole=whole)
    if same_definition is not None:
        return [_with_unknown_definition(made, update), *inner], []
    return [update, *inner], [*made.faults, *faults]


def _with_recorded_definition(
    resource_type: NestedType, parent: ParentResource, current: CurrentResource
) -> ParentResource | None:
    """Return a group whose new definition is not known yet, with the definition of its present members; None
    for other resources.
    """
    if not isinstance(resource_type, GroupType):
        return None
    names = resource_type.definition_properties
    known = {name: current.properties[name] for name in names if name in current.properties}
    if not known or not _only_definition_unknown(resource_type, parent):
        return None
    return replace(parent, properties={**parent.properties, **known}, unknown=())


def _only_definition_unknown(group: GroupType, parent: ParentResource) -> bool:
    """Whether all properties that decide about the number of members are known."""
    return set(parent.unknown) <= set(group.definition_properties)


def _with_unknown_definition(made: Preview, update: UpdatePreview) -> UpdatePreview:
    """Return the preview of a group's stack in which all kept members may change."""
    kept = [*update.unchanged, *(item.expected.name for item in update.items.get("unchanged", ()))]
    changed = [
        ResourceChange(
            ForecastResource(name, "updated", UNKNOWN_DEFINITION, certain=False),
            made.template.resources[name].type,
            made.chosen[name].id if name in made.chosen else None,
        )
        for name in kept
    ]
    for change in changed:
        charge(change.expected.name)
    items = {**update.items, "unchanged": (), "updated": [*update.items.get("updated", ()), *changed]}
    return replace(update, unchanged=frozenset(), items=items)


def _intent(preview: Preview, inside: HypotheticalChild, child: StackRow) -> DesiredStack:
    """Return the desired state of a child stack, with its values as they would be stored."""
    pseudo = pseudo_parameters(inside.uuid, inside.name, child.project_id)
    stored = orjson.loads(orjson.dumps(dict(inside.values)))
    values = ParameterValues({**stored, **pseudo}, inside.values.hidden, inside.values.missing)
    return replace(preview.intent, template=inside.template, values=values, kinds=inside.kinds, within=True)


def _parent_resource(preview: Preview, name: str, outlook: PropertyForecast) -> ParentResource:
    return ParentResource(
        name,
        outlook.properties,
        outlook.sure | outlook.maybe,
        outlook.secret,
        outlook.secrets,
        outlook.metadata,
        outlook.secret_metadata,
        preview.template.resources[name].body.get("deletion_policy"),
    )


def _all(preview: Preview, child: StackRow, turn: str) -> Iterator[UpdatePreview]:
    """Yield a stack and its descendants, with the same change for all of their resources."""
    context = preview.context
    with preview_reads.consistent_snapshot(context.database) as db:
        rows = [row for row in bulk_writer.rows(db, child.id) if not row.deposed]
    grandchildren = stacks.children(context.database, child)
    if turn == "unchanged":
        names = frozenset(row.name for row in rows)
        nested_names = frozenset(row.name for row in rows if row.id in grandchildren)
        yield UpdatePreview(names, {}, child, child.name, child.parent_resource, stacks=nested_names)
    else:
        items = [
            ResourceChange(ForecastResource(row.name, "deleted"), row.resource_type, row.id) for row in rows
        ]
        yield UpdatePreview(frozenset(), {"deleted": items}, child, child.name, child.parent_resource)
    for grandchild in grandchildren.values():
        yield from _all(preview, grandchild, turn)
