"""Plan a traversal: write its resources and graph nodes (docs/internals/protocol.md rule 6).

The check of the plan node plans a small stack in place. Its own process plans a large stack
(`operations/planner_process.py`), and the process of an offloaded request plans the stack that it accepted.
An interrupted plan is resumed after its last slice: a slice holds no node without the nodes that it releases,
and the next planner reads the nodes already written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.check.visit import ControlVisit, StackView
from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.plan_changes import Changes
from orchestrator.engine.states import ACTS
from orchestrator.errors import NotFound, OrchestratorError, Superseded
from orchestrator.logs import logger
from orchestrator.operations import stack_completion
from orchestrator.operations.children.loader import ChildStackLoader
from orchestrator.operations.planning import row_writer
from orchestrator.operations.planning.repair_plan import write_repair
from orchestrator.operations.planning.row_writer import NodeWriter
from orchestrator.operations.planning.small_plans import SmallPlanner
from orchestrator.operations.planning.template_plan import DELETE_ACTIONS, TemplatePlanner
from orchestrator.operations.planning.traversal_plan import QueueOf, plan_of_action, plan_of_changes
from orchestrator.operations.runtime import dispatch_window, lease_keeper
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import stalled
from orchestrator.store.nodes import repository
from orchestrator.store.planning import bulk_writer, repair_diff
from orchestrator.store.planning.bulk_writer import PlanTarget
from orchestrator.store.planning.small_plans import CreateInputs
from orchestrator.store.stacks import revisions
from orchestrator.template.template import Template

log = logger()

OLD_NODES_OF_REPAIR = 500  # deleted by a repair; the rest is left to later plans


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the traversals of this process's stacks."""

    database: Database
    cipher: Cipher
    types: Mapping[str, ResourceType]
    settings: Settings
    parameters: ParameterCache
    stacks: ChildStackLoader

    def run(
        self,
        db: Connection[TupleRow],
        visit: ControlVisit,
        lease: int,
        template: Template | None = None,
        *,
        enqueue: bool = True,
        max_members: int | None = None,
    ) -> list[CheckMessage]:
        """Write the whole plan and settle its node; return the messages to send, none unless `enqueue`.

        `template` saves parsing the stack's template again; the plan removes unchanged resources from it.

        Raises:
            TooLarge: more than `max_members` members of a group have to be planned.
        """
        stack, removals = visit.stack, visit.label == bulk_writer.CLEANUP_PLAN_LABEL
        if visit.traversal > 1 and not removals:
            bulk_writer.wait_for_older_checks(db)
        compares = visit.traversal > 1 or removals
        if compares and bulk_writer.has_written_slices(db, stack.id, visit.traversal, visit.node_id):
            return self._restart(db, visit, lease)
        try:
            target = self._target(db, stack, (visit.node_id, lease))
            if removals:
                self._write_removals(db, target)
            elif stack.action in ACTS:
                self._write_action(db, stack, target)
            else:
                self._template_planner().write(db, stack, target, template, max_members)
        except Superseded:
            return repository.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).messages
        except OrchestratorError as error:
            return self._failed(visit, error)
        return self._settle(db, visit, lease, dispatch_window.SIZE if enqueue else 0)

    def plan_in_one_statement(
        self,
        db: Connection[TupleRow],
        visit: ControlVisit,
        lease: int | None,
        max_enqueued: int,
        inputs: CreateInputs | None = None,
    ) -> repository.Settled | None:
        """Write the whole plan of a small stack's first traversal or delete; None when it needs slices.

        `inputs`: of a first traversal, if they were read already. Return at most `max_enqueued`
        messages.
        """
        small = SmallPlanner(self.stacks, self.parameters, self._queue_of())
        try:
            if visit.stack.action in DELETE_ACTIONS:
                return small.delete(db, visit, lease, max_enqueued)
            return small.create(db, visit, lease, max_enqueued, inputs)
        except Superseded:
            if lease is None:
                return repository.Settled([], frozenset())  # its owner or the sweep handles the node
            return repository.drop(db, [visit.node_id], lease, self.stacks.root_of(visit.stack))
        except OrchestratorError as error:
            return repository.Settled(self._failed(visit, error), frozenset())

    def plan_repair(
        self, db: Connection[TupleRow], visit: ControlVisit, lease: int
    ) -> list[CheckMessage] | None:
        """Plan a traversal that only repairs a stack; None when the whole stack is to be planned."""
        stack = visit.stack
        if stack.action != "UPDATE" or stack.converge or visit.label == bulk_writer.CLEANUP_PLAN_LABEL:
            return None
        if not repair_diff.is_repair(db, stack.id, visit.traversal):
            return None
        bulk_writer.wait_for_older_checks(db)
        if bulk_writer.has_written_slices(db, stack.id, visit.traversal, visit.node_id):
            return self._restart(db, visit, lease)
        resolver = self.stacks.inherited_context(stack).resolver
        try:
            target = self._target(db, stack, (visit.node_id, lease))
            if not write_repair(db, stack, target, resolver, self.types, self._queue_of()):
                return None
        except Superseded:
            return repository.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).messages
        return self._settle(db, visit, lease, dispatch_window.SIZE, OLD_NODES_OF_REPAIR)

    def begin_removals(
        self, db: Connection[TupleRow], visit: ControlVisit, lease: int
    ) -> ControlVisit | None:
        """Hold a claimed finish node by a second plan, of the deposed resources; return the visit to that
        plan's node, None when no deposed resource is left (adr/0002).

        Raises:
            Superseded: the traversal is over, or another worker has the finish node.
        """
        stack = visit.stack
        if stack.action in ACTS or not bulk_writer.count_unplanned_deposed(db, stack.id, visit.traversal, 1):
            return None
        target = self._target(db, stack)
        node_id = bulk_writer.plan_removals(db, target, lease, lease_keeper.LEASE_SECONDS)
        if node_id is None:
            raise Superseded("another worker finishes the traversal")
        return visit._replace(node_id=node_id, kind="plan", label=bulk_writer.CLEANUP_PLAN_LABEL)

    def _settle(
        self,
        db: Connection[TupleRow],
        visit: ControlVisit,
        lease: int,
        window: int,
        at_most: int | None = None,
    ) -> list[CheckMessage]:
        """Settle the node of a written plan, and delete old nodes; return at most `window` messages."""
        stack, root = visit.stack, self.stacks.root_of(visit.stack)
        settled = repository.settle_nodes(db, [visit.node_id], lease, root, max_messages=window)
        bulk_writer.drop_old_nodes(db, stack.id, stack.traversal, row_writer.SLICE, at_most)
        return settled.messages + (
            repository.refill_window(db, stack.root_id, root, window).messages if window else []
        )

    def _failed(self, visit: ControlVisit, error: OrchestratorError) -> list[CheckMessage]:
        log.error("plan_failed", stack=visit.stack.uuid, error=str(error))
        return stack_completion.fail(self.database, visit.stack.id, visit.traversal, str(error))

    def _restart(self, db: Connection[TupleRow], visit: ControlVisit, lease: int) -> list[CheckMessage]:
        """Plan an interrupted update as a new traversal.

        Checks of the slices already written have changed the rows, so the rest would be planned from other
        rows, and the nodes of the two halves would not fit together. A first traversal compares no rows and
        is resumed instead.
        """
        stack = visit.stack
        messages = stalled.restart_traversal(db, stack.id, visit.traversal, lost_leases=visit.lost_leases)
        return messages + repository.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).messages

    def _target(
        self, db: Connection[TupleRow], stack: StackView, plan: tuple[int, int] | None = None
    ) -> PlanTarget:
        number = revisions.number(db, stack.revision_id)
        finish = bulk_writer.finish_node(db, stack.id, stack.traversal)
        return PlanTarget(stack.id, stack.root_id, stack.traversal, number, finish, plan)

    def _template_planner(self) -> TemplatePlanner:
        return TemplatePlanner(
            self.cipher, self.types, self.settings, self.parameters, self.stacks, self._queue_of()
        )

    def _queue_of(self) -> QueueOf:
        return partial(queue_of, self.types)

    def _write_action(self, db: Connection[TupleRow], stack: StackView, target: PlanTarget) -> None:
        """Write the visits of an action to every resource."""
        plan, rows = plan_of_action(bulk_writer.rows(db, stack.id), stack.action)
        nodes = NodeWriter(db, target, plan, self._queue_of())
        nodes.write(lambda part: {node: rows[node] for node in part})

    def _write_removals(self, db: Connection[TupleRow], target: PlanTarget) -> None:
        """Write the cleanups of the deposed resources."""
        deposed = bulk_writer.unplanned_deposed(db, target.stack_id, target.traversal)
        plan = plan_of_changes(Changes({}, cleanups=deposed), {})
        NodeWriter(db, target, plan, self._queue_of(), resumes=False).write(lambda _: {})


def queue_of(types: Mapping[str, ResourceType], type_name: str) -> str:
    """Return the queue for checks of resources of a type."""
    try:
        resource_type = types[type_name]
    except NotFound:
        return "check"  # a template; or a missing type, which the check reports
    return "provider" if resource_type.needs_lease else "check"
