"""The resources of a stack as every reader sees them: the rows, and `INIT_COMPLETE` for the resources of the
accepted template whose rows the plan has not written yet.

The template is read before the rows: a plan that is written in between hides no resource.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from orchestrator.operations.context import OperationContext
from orchestrator.operations.stacks.accepted_template import AcceptedTemplate, in_planning
from orchestrator.store.connections.streaming import FETCH_SIZE, ROWS_WITH_VALUES
from orchestrator.store.stacks import accepted_resources, neighbours
from orchestrator.store.stacks import resources as store
from orchestrator.store.stacks.accepted_resources import AcceptedResource
from orchestrator.store.stacks.neighbours import Neighbourhood
from orchestrator.store.stacks.resources import SEARCH, ResourceRow
from orchestrator.store.stacks.stacks import StackRow, descendants

Filters = Mapping[str, Sequence[str]]

ACTION, STATUS = "INIT", "COMPLETE"  # of a resource without a row
STATUS_REASON: Final = "state changed"  # as of a row
NO_ROW: Final = 0  # the id of a resource without a row
FILTERED: Final = 10_000  # resources of a template that are compared with rows at a time, with filters


def list_resources(
    context: OperationContext,
    stack: StackRow,
    filters: Filters | None = None,
    *,
    with_values: bool = False,
    after: str | None = None,
    limit: int | None = None,
) -> Iterator[ResourceRow]:
    """Yield the stack's resources ordered by name; parameters as in the store's function."""
    accepted = in_planning(context, [stack]).get(stack.id)
    return _listed(context, stack, accepted, filters or {}, with_values, after, limit)


def list_tree(
    context: OperationContext,
    stack: StackRow,
    levels: int,
    filters: Filters | None = None,
    *,
    with_values: bool = False,
) -> Iterator[tuple[StackRow, ResourceRow]]:
    """Yield the resources of a stack, then of the stacks below it, each with its stack."""
    tree = [stack, *descendants(context.database, stack, levels)]
    templates = in_planning(context, tree)
    for one in tree:
        accepted = templates.get(one.id)
        for row in _listed(context, one, accepted, filters or {}, with_values, None, None):
            yield one, row


def get_resource(context: OperationContext, stack: StackRow, name: str) -> ResourceRow | None:
    """Return the current incarnation of a resource, also if it has left the template but still exists."""
    row = store.get_resource(context.database, stack, name)
    if row is not None or not stack.in_progress:
        return row
    template = in_planning(context, [stack]).get(stack.id)
    found = None if template is None else template.get(name)
    if found is None or template is None:
        return store.get_resource(context.database, stack, name)  # planned in the meantime, or unknown
    return _row(stack, found, template)


def neighbourhood(
    context: OperationContext, stack: StackRow, name: str, levels: int, limit: int
) -> Neighbourhood:
    """Return the resources up to a number of levels in both directions of the dependencies."""
    template = in_planning(context, [stack]).get(stack.id)
    if template is None:
        return neighbours.read(context.database, stack, name, levels, limit)

    def pairs(names: Sequence[str], direction: int) -> list[tuple[str, str]]:
        if direction > 0:
            return [(dependent, item) for item in names for dependent in template.dependents(item)]
        found = (template.get(item) for item in names)
        return [(item.name, required) for item in found if item is not None for required in item.requires]

    def states(names: Sequence[str]) -> list[tuple[str, str, str, str]]:
        found = (template.get(item) for item in names)
        accepted = {item.name: (item.name, item.type, ACTION, STATUS) for item in found if item is not None}
        rows = neighbours.states(context.database, stack, names)
        return list({**accepted, **{row[0]: row for row in rows}}.values())

    return neighbours.walk(name, levels, limit, pairs, states)


def _listed(
    context: OperationContext,
    stack: StackRow,
    accepted: AcceptedTemplate | None,
    filters: Filters,
    with_values: bool,
    after: str | None,
    limit: int | None,
) -> Iterator[ResourceRow]:
    if accepted is None:
        yield from store.list_resources(
            context.database, stack, filters, with_values=with_values, after=after, limit=limit
        )
        return
    if limit is not None:
        yield from _page(context, stack, accepted, filters, with_values, after, limit)
        return
    length, full = ROWS_WITH_VALUES if with_values else FETCH_SIZE, True
    while full:
        page = _page(context, stack, accepted, filters, with_values, after, length)
        for row in page:
            yield row._replace(required_by=tuple(accepted.dependents(row.name)))
        full = len(page) == length
        after = page[-1].name if page else None


def _page(
    context: OperationContext,
    stack: StackRow,
    accepted: AcceptedTemplate,
    filters: Filters,
    with_values: bool,
    after: str | None,
    limit: int,
) -> list[ResourceRow]:
    """Return up to `limit` resources after a name: rows, and resources that had no row before these were
    read.
    """
    missing = _without_rows(context, stack, accepted, filters, after, limit)
    rows = store.list_resources(
        context.database, stack, filters, with_values=with_values, after=after, limit=limit
    )
    found = {item.name: _row(stack, item, accepted) for item in missing}
    found |= {row.name: row for row in rows}
    return [found[name] for name in sorted(found)[:limit]]


def _without_rows(
    context: OperationContext,
    stack: StackRow,
    accepted: AcceptedTemplate,
    filters: Filters,
    after: str | None,
    limit: int,
) -> list[AcceptedResource]:
    """Return the resources after a name that pass the filters and have no rows, at most `limit`.

    Without filters `limit` candidates are enough: those with rows fill the page.
    """
    length = max(limit, FILTERED if filters else FETCH_SIZE)
    candidates, found = filter(_filter(filters), accepted.after(after)), list[AcceptedResource]()
    while len(found) < limit and (batch := list(islice(candidates, length))):
        with context.database.borrow() as db:
            existing = accepted_resources.existing(db, stack.id, [item.name for item in batch])
        found += [item for item in batch if item.name not in existing]
        if not filters:
            break
    return found[:limit]


def _filter(filters: Filters) -> Callable[[AcceptedResource], bool]:
    """Return whether a resource without a row passes the filters."""
    constants = {"action": ACTION, "status": STATUS, "id": None, "physical_resource_id": None}
    for name, value in constants.items():
        if name in filters and value not in filters[name]:
            return lambda _: False
    types, names = filters.get("type"), filters.get("name")
    parts = [part.lower() for part in filters.get(SEARCH, ())[:1]]

    def is_wanted(item: AcceptedResource) -> bool:
        return (
            (types is None or item.type in types)
            and (names is None or item.name in names)
            and all(part in item.name.lower() for part in parts)
        )

    return is_wanted


def _row(stack: StackRow, item: AcceptedResource, template: AcceptedTemplate) -> ResourceRow:
    """Return the row that the plan will write."""
    return ResourceRow(
        id=NO_ROW,
        uuid=uuid.UUID(int=0),
        name=item.name,
        type=item.type,
        runs_as=item.runs_as,
        physical_id=None,
        action=ACTION,
        status=STATUS,
        status_reason=STATUS_REASON,
        required_by=tuple(template.dependents(item.name)),
        description=item.description,
        attributes=None,
        metadata=None,
        sealed=None,
        child_uuid=None,
        child_name=None,
        created_at=stack.action_started_at,
        updated_at=None,
        observed=None,
        observed_at=None,
        observed_reason=None,
        unreachable_since=None,
        unreachable_reason=None,
    )
