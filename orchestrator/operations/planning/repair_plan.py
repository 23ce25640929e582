"""Plan the repair of a stack that has reached its desired revision: only damaged resources and everything
downstream of them are read and planned (operations/adr/0019).

The definitions in force are the desired state then: the template is neither read nor parsed. Early releases
(operations/adr/0015) are an optimization of large plans and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.engine.check.hooks import Hooks
from orchestrator.engine.check.visit import StackView
from orchestrator.engine.plan_changes import DesiredRow, plan_changes
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.operations.planning.row_writer import NodeWriter, ResourceWriter
from orchestrator.operations.planning.traversal_plan import QueueOf, plan_of_changes
from orchestrator.resources.base import ResourceType
from orchestrator.store.nodes import hooks
from orchestrator.store.planning import repair_diff
from orchestrator.store.planning.bulk_writer import PlanTarget
from orchestrator.store.planning.repair_diff import StoredDefinition
from orchestrator.store.traversals import child_reads

Db = Connection[TupleRow]

MAX_VISITED: Final = 2_000  # resources; with more of them the whole stack is planned


@dataclass(frozen=True)
class DefinitionsInForce:
    """The definitions in force of the resources of a repair, in place of a template's."""

    stored: Mapping[str, StoredDefinition]

    @cached_property
    def desired(self) -> dict[str, DesiredRow]:
        """The desired rows by name."""
        return {
            name: DesiredRow(row.digest, row.runs_as or row.type, row.requires)
            for name, row in self.stored.items()
        }

    def types_of(self, name: str) -> tuple[str, str | None]:
        """Return a resource's type as written, and the type that runs it, None for the same type."""
        return self.stored[name].type, self.stored[name].runs_as


def write_repair(
    db: Db,
    stack: StackView,
    target: PlanTarget,
    resolver: TypeResolver,
    types: Mapping[str, ResourceType],
    queue_of: QueueOf,
) -> bool:
    """Write the plan of a repair; return False, with nothing written, if the whole stack is to be planned."""
    stack_hooks = Hooks(resolver.registry, stack.action)
    if resolver.registry.has_hooks:  # they may name any resource
        return False
    stale = child_reads.stale_resources(db, stack.id)
    always = [name for name, type_ in types.items() if type_.always_visited]
    names = repair_diff.unsettled(db, stack.id, stale, always, MAX_VISITED + 1)
    if len(names) > MAX_VISITED:
        return False
    stored = repair_diff.definitions(db, stack.id, names)
    planned = DefinitionsInForce(stored)
    forced = {*stale, *(name for name, row in planned.desired.items() if row.resource_type in always)}
    rows = repair_diff.rows(db, stack.id, names)
    missing = {id_ for row in rows for id_ in row.requires} - {row.id for row in rows}
    settled = repair_diff.rows_of(db, stack.id, missing)
    changes = plan_changes(rows, planned.desired, forced, settled=settled)
    in_force = {name: (row.id, row.digest, row.valid_from) for name, row in stored.items()}
    resources = ResourceWriter(db, target, planned, changes, in_force)
    resources.write_row_changes()

    def put_hooks(ids: Mapping[int, int]) -> None:
        hooks.write_hooks(db, stack_hooks.of_slice(ids, changes))

    nodes = NodeWriter(db, target, plan_of_changes(changes, planned.desired), queue_of)
    nodes.write(resources.write_visited, put_hooks if stack_hooks else None)
    return True
