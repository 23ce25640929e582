"""Plans of small stacks, for first traversals and deletes: a statement reads the inputs, another writes the
plan.

The children of a large tree are such stacks, often thousands with the same template. A process reads and
parses that template and its registry once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator import config
from orchestrator.engine.check.hooks import Hooks
from orchestrator.engine.check.visit import ControlVisit
from orchestrator.engine.plan_changes import plan_changes
from orchestrator.engine.validation.implicit_requirements import with_implicit
from orchestrator.errors import Superseded
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.operations.planning.traversal_plan import (
    QueueOf,
    TraversalPlan,
    VisitedRow,
    plan_of_changes,
)
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.store.nodes import repository
from orchestrator.store.nodes.repository import Settled
from orchestrator.store.planning import bulk_writer, small_plans
from orchestrator.store.planning.bulk_writer import NodeRow
from orchestrator.store.planning.small_plans import CreateInputs, PlannedRow

MAX_RESOURCES: Final = 200
MAX_TEMPLATE_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class SmallPlanner:
    """Plans small stacks with the caches of this process.

    Both methods return None when the plan needs slices, and raise Superseded when the traversal is over or
    another planner has the node. A `lease` of None stands for an unclaimed plan node.
    """

    stacks: ChildStackLoader
    parameters: ParameterCache
    queue_of: QueueOf

    def create(
        self,
        db: Connection[TupleRow],
        visit: ControlVisit,
        lease: int | None,
        max_enqueued: int,
        inputs: CreateInputs | None = None,
    ) -> Settled | None:
        """Plan a first traversal, from `inputs` if they were read already.

        Raises:
            InvalidTemplate: the parameter values do not fit the template.
        """
        stack = visit.stack
        inputs = inputs or small_plans.read_for_create(db, stack.id, visit.traversal, stack.revision_id)
        if inputs is None:
            raise Superseded(f"traversal {visit.traversal} is over")
        planned = None if inputs.is_begun else self._planned_definitions(visit, inputs)
        if planned is None or not planned.desired:
            return None
        plan = plan_of_changes(plan_changes([], planned.desired), planned.desired)
        if _has_joins(plan):
            return None
        size, ids = plan.layout.size, inputs.ids
        if len(ids) < size:
            ids = small_plans.new_ids(db, size)
        visited = {
            node: VisitedRow(ids[node][1], ids[node][0], planned.desired[name].resource_type)
            for node, name in enumerate(plan.updates)
        }
        nodes = self._nodes(plan, [row[2] for row in ids], inputs.finish_id, visited)
        rows = [
            PlannedRow(
                node, planned.definition_row(node.label, node.definition_id), planned.types_of(node.label)
            )
            for node in nodes
            if node.definition_id is not None
        ]
        return self._write(
            db, small_plans.WRITE_CREATE, visit, lease, inputs.finish_id, plan, rows, max_enqueued
        )

    def delete(
        self, db: Connection[TupleRow], visit: ControlVisit, lease: int | None, max_enqueued: int
    ) -> Settled | None:
        """Plan the delete of a stack's resources; needs no template."""
        stack = visit.stack
        bulk_writer.wait_for_older_checks(db)
        inputs = small_plans.read_for_delete(
            db, stack.id, visit.traversal, stack.revision_id, MAX_RESOURCES + 1
        )
        if inputs is None:
            raise Superseded(f"traversal {visit.traversal} is over")
        if inputs.is_begun or not 0 < len(inputs.rows) <= MAX_RESOURCES:
            return None
        context = self.stacks.inherited_context_of(stack.revision_id, inputs.inherited)
        changes = plan_changes(inputs.rows, {})
        if changes.never_created or Hooks(context.resolver.registry, stack.action):
            return None
        plan = plan_of_changes(changes, {})
        if _has_joins(plan):
            return None
        size, ids = plan.layout.size, inputs.ids
        if len(ids) < size:
            ids = bulk_writer.new_ids(db, "graph_node", size)
        nodes = self._nodes(plan, ids, inputs.finish_id, {})
        rows = [PlannedRow(node, deposed=node.resource_id in changes.deposed_by) for node in nodes]
        return self._write(
            db, small_plans.WRITE_DELETE, visit, lease, inputs.finish_id, plan, rows, max_enqueued
        )

    def _planned_definitions(self, visit: ControlVisit, inputs: CreateInputs) -> PlannedDefinitions | None:
        """Return the template's resources; None for a large template or a template with hooks."""
        stack = visit.stack
        if inputs.length > min(MAX_TEMPLATE_BYTES, config.INLINE_BODY_SIZE):
            return None
        values = self.parameters.put(stack, inputs.parameters, inputs.sealed)
        template = self.stacks.template(inputs.template_hash, values, MAX_RESOURCES)
        if template is None:
            return None
        context = self.stacks.inherited_context_of(stack.revision_id, inputs.inherited)
        if Hooks(context.resolver.registry, stack.action):
            return None
        template = with_implicit(template, context.resolver)
        nested = stack.root_id != stack.id
        return PlannedDefinitions(
            template,
            values,
            context.resolver,
            inputs.files,
            nested=nested,
        )

    def _nodes(
        self, plan: TraversalPlan, ids: Sequence[int], finish_id: int, visited: Mapping[int, VisitedRow]
    ) -> Sequence[NodeRow]:
        return list(plan.node_rows(plan.layout.order, ids, finish_id, visited, self.queue_of))

    def _write(
        self,
        db: Connection[TupleRow],
        statement: str,
        visit: ControlVisit,
        lease: int | None,
        finish_id: int,
        plan: TraversalPlan,
        rows: Sequence[PlannedRow],
        max_enqueued: int,
    ) -> Settled:
        feeders = plan.layout.finish_blockers
        result = small_plans.write(
            db, statement, (visit.node_id, lease), finish_id, feeders, rows, max_enqueued
        )
        settled = repository.settled(result, self.stacks.root_of(visit.stack))
        if not settled.held:
            raise Superseded("another planner took over")
        return settled


def _has_joins(plan: TraversalPlan) -> bool:
    return len(plan.layout.needed_by) > plan.layout.size
