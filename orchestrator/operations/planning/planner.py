"""Plan a traversal: fill in resources and graph nodes, in slices, resumable
(docs/internals/protocol.md rule 6).

Small stacks are planned inside the plan node's own check. Large ones in a process of their own
(`planner.py`), so that workers stay small; the API's process for large bodies goes on to plan what it
accepted. An interrupted plan is taken up where its last slice ended: rows are written so that whoever a node
releases is there before it, and a second planner reads what the first wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.check.hooks import UPDATES, Hooks
from orchestrator.engine.check.visit import StackView, Visit
from orchestrator.engine.messages import CheckMessage
from orchestrator.engine.plan_changes import Row, plan_changes
from orchestrator.engine.states import ACTS
from orchestrator.engine.validation.type_resolution import TypeResolver, with_implicit
from orchestrator.errors import NotFound, OrchestratorError, Superseded
from orchestrator.graph.build import build_anyhow
from orchestrator.graph.layout import lay_out
from orchestrator.logs import logger
from orchestrator.operations import stack_completion
from orchestrator.operations.children.child_stacks import SHORT, ChildStackLoader
from orchestrator.operations.planning import row_writer
from orchestrator.operations.planning.adopted_resources import AdoptedResources
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.operations.planning.group_subset import GroupSubset, changed_subset, is_large_group
from orchestrator.operations.planning.row_writer import ExistingRows, NodeIdAllocator, PlanWriter, row_key
from orchestrator.operations.planning.small_create import MOST, plan_small
from orchestrator.operations.planning.small_delete import plan_small_removal
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.maintenance import stalled
from orchestrator.store.nodes import hooks, repository
from orchestrator.store.planning import bulk_writer, group_diff, small_create
from orchestrator.store.planning.bulk_writer import PlanTarget
from orchestrator.store.stacks import revisions
from orchestrator.store.traversals import child_reads
from orchestrator.template.group_template import load_stored
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template

log = logger()

DELETE_ACTIONS = frozenset({"DELETE"})
REMOVABLE_OPERATIONS = frozenset(
    {"CREATE", "DISCARD", "DELETE"}
)  # open on a leftover: nothing stands on it, it can go


class TooLarge(Exception):
    """The plan is to be made elsewhere; nothing of it is written."""


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
        visit: Visit,
        lease: int,
        template: Template | None = None,
        *,
        ring: bool = True,
        members: int | None = None,
    ) -> list[CheckMessage]:
        """Write the whole plan and settle its node; return what to enqueue, nothing unless `ring`.

        `template` saves parsing it again, and is used up: what is not to be written is let go of.

        Raises:
            TooLarge: the stack is a group's with more than so many `members`, and so many are to be planned.
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
                bring = self._remove(db, stack, target)
            elif stack.action in ACTS:
                bring = self._plan_action(db, stack, target)
            else:
                bring = self._plan_template(db, stack, target, template, members)
            for _ in bring:  # each slice is written before the next is asked for
                pass
        except Superseded:
            return repository.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).rings
        except OrchestratorError as error:
            return self._failed(visit, error)
        root, window = self.stacks.root_of(stack), self.settings.ring_window if ring else 0
        settled = repository.settle_nodes(db, [visit.node_id], lease, root, ring=window)
        bulk_writer.drop_old_nodes(db, stack.id, stack.traversal, row_writer.SLICE)
        return settled.rings + (repository.top_up(db, stack.root_id, root, window).rings if ring else [])

    def plan_in_one_statement(
        self,
        db: Connection[TupleRow],
        visit: Visit,
        lease: int | None,
        allowance: int,
        read: small_create.PlanInputs | None = None,
    ) -> repository.Settled | None:
        """Write the whole plan of a small stack's first traversal, from what was `read` of it, if that was
        done, or of its removal, in one go; None when it takes more than that.

        Return what to enqueue, `allowance` at most.
        """
        try:
            if visit.stack.action in DELETE_ACTIONS:
                return plan_small_removal(db, visit, lease, self.stacks, self._queue, allowance)
            return plan_small(
                db,
                visit,
                lease,
                self.stacks,
                self.parameters,
                self._queue,
                allowance,
                self.settings.inline_body_size,
                read,
            )
        except Superseded:
            if lease is None:
                return repository.Settled([], frozenset())  # whoever has it, or the sweep, sees to it
            return repository.drop(db, [visit.node_id], lease, self.stacks.root_of(visit.stack))
        except OrchestratorError as error:
            return repository.Settled(self._failed(visit, error), frozenset())

    def _failed(self, visit: Visit, error: OrchestratorError) -> list[CheckMessage]:
        log.error("plan_failed", stack=visit.stack.uuid, error=str(error))
        return stack_completion.fail(self.database, visit.stack.id, visit.traversal, str(error))

    def _restart(self, db: Connection[TupleRow], visit: Visit, lease: int) -> list[CheckMessage]:
        """Plan an interrupted update as a traversal of its own.

        What is written of it is being carried out, and other nodes would follow from the rows as they are by
        now: counts of one plan and nodes of another do not fit together. A first traversal has no rows to
        compare with: it goes on where it ended.
        """
        stack = visit.stack
        rings = stalled.restart_traversal(db, stack.id, visit.traversal, lost_leases=visit.lost_leases)
        return rings + repository.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).rings

    def _target(
        self, db: Connection[TupleRow], stack: StackView, plan: tuple[int, int] | None = None
    ) -> PlanTarget:
        number = revisions.number(db, stack.revision_id)
        finish = bulk_writer.finish_node(db, stack.id, stack.traversal)
        return PlanTarget(stack.id, stack.root_id, stack.traversal, number, finish, plan)

    def _queue(self, type_name: str) -> str:
        try:
            kind = self.types[type_name]
        except NotFound:
            return "check"  # a template; or whoever visits it says what is missing
        return "provider" if kind.needs_lease else "check"

    def _always(self, drafts: PlannedDefinitions, action: str) -> Collection[str]:
        """Return the resources that every update visits, whatever changed."""
        if action not in UPDATES:
            return ()
        kinds = {want.kind for want in drafts.wanted.values()}
        always = {kind for kind in kinds if (found := self.types.get(kind)) and found.always_visited}
        return [name for name, want in drafts.wanted.items() if want.kind in always] if always else ()

    def _template(
        self,
        db: Connection[TupleRow],
        stack: StackView,
        values: ParameterValues,
        kinds: TypeResolver,
        revision: bulk_writer.RevisionTexts,
    ) -> Template:
        """Return a stack's template; a short one is read once a process, children are alike."""
        short = revision.length <= SHORT
        template = self.stacks.template(revision.template_hash, values, MOST) if short else None
        if template is None:
            text = bulk_writer.template_text(db, stack.revision_id)
            template = load_stored(text, Limits.of(self.settings), values)
        elif isinstance(template.resources, dict):  # a plan lets go of those that it does not write
            template = replace(template, resources=dict(template.resources))
        return with_implicit(template, kinds)

    def _plan_template(
        self,
        db: Connection[TupleRow],
        stack: StackView,
        target: PlanTarget,
        template: Template | None,
        members: int | None,
    ) -> Iterator[None]:
        """Write what brings the stack from what is there to what its template wants, nothing for a delete."""
        values = self.parameters.get(stack)
        revision = bulk_writer.revision(db, stack.revision_id)
        kinds, gone = self.stacks.inherited_context(stack).kinds, stack.action in DELETE_ACTIONS
        hooked = Hooks(kinds.registry, stack.action)
        if template is None and not gone:
            template = self._template(db, stack, values, kinds, revision)
        pending = self._take_over_first(db, stack, target)
        narrow = None if pending else self._group_subset(db, stack, template, kinds, hooked)
        if narrow is not None:
            template = narrow.template
        elif members is not None and template is not None and is_large_group(template, members):
            raise TooLarge
        drafts = PlannedDefinitions(template, values, kinds, revision.files)
        in_force: dict[str, tuple[int, bytes, int]] = {}
        if narrow is not None:
            in_force = group_diff.definitions(db, stack.id, narrow.names)
        elif stack.traversal > 1 and not gone:
            in_force = bulk_writer.definitions(db, stack.id)
        known = drafts.wanted.keys() & in_force.keys()
        drafts.discard([name for name in known if in_force[name][1] == drafts.wanted[name].digest])
        rows: Sequence[Row] = []
        if narrow is not None:
            rows = group_diff.rows(db, stack.id, narrow.names)
        elif stack.traversal > 1:
            rows = bulk_writer.rows(db, stack.id)
        changes = plan_changes(
            rows,
            drafts.wanted,
            self._always_visited(db, stack, drafts, hooked),
            back=stack.action == "ROLLBACK",
        )
        work = PlanWriter(db, target, drafts, changes, in_force)
        if stack.action == "ADOPT":
            work.adopted = AdoptedResources(self.cipher, bulk_writer.adopted(db, stack.revision_id))
        work.write_row_changes()
        layout = lay_out(build_anyhow(work.keys, work.requires))
        ids = NodeIdAllocator(db, target, layout, work)
        for part in ids.slices():
            with bulk_writer.slice_of(db, target):
                ids.hold_finish_once(db)
                node_ids = ids.assign(db, part)
                visits = [node for node in part if node < len(work.visited)]
                places = work.write(visits)
                written = [
                    ids.row(
                        node, node_ids[node], *places[node], self._queue(drafts.wanted[work.keys[node]].kind)
                    )
                    for node in visits
                ]
                for node in part:
                    if len(work.visited) <= node < layout.size:
                        row = changes.cleanups[node - len(work.visited)]
                        written.append(ids.row(node, node_ids[node], row.id, None, self._queue(row.kind)))
                bulk_writer.copy_nodes(db, target, [*written, *ids.joins(part, node_ids)])
                if hooked:
                    hooks.put(db, hooked.of_slice(node_ids, changes))
            yield
        if stack.action == "ADOPT" or pending:
            with bulk_writer.slice_of(db, target):
                bulk_writer.adoption_is_planned(db, stack.id)

    def _always_visited(
        self, db: Connection[TupleRow], stack: StackView, drafts: PlannedDefinitions, hooked: Hooks
    ) -> Collection[str]:
        """Return the names that are visited whatever there is to change."""
        if stack.converge:
            return drafts.wanted
        forced = {
            *bulk_writer.written(db, stack.id, stack.traversal, "update"),
            *hooked.visited(drafts.wanted),
        }
        forced.update(self._always(drafts, stack.action))
        if stack.traversal > 1:
            forced.update(child_reads.stale_resources(db, stack.id))
        if stack.action == "RESTORE":  # what is inside is restored, too
            forced.update(drafts.nested)
        return forced

    def _take_over_first(self, db: Connection[TupleRow], stack: StackView, target: PlanTarget) -> bool:
        """Write what an adoption that was overtaken was to take over; whether there is such."""
        goes_on = stack.traversal > 1 and stack.action not in DELETE_ACTIONS | {"ROLLBACK"}
        pending = bulk_writer.pending_adoption(db, stack.id) if goes_on else None
        if pending is None:
            return False
        revision_id, number, sealed = pending
        then = stack._replace(revision_id=revision_id)
        values, kinds = self.parameters.get(then), self.stacks.inherited_context(then).kinds
        revision = bulk_writer.revision(db, revision_id)
        template = self._template(db, then, values, kinds, revision)
        drafts = PlannedDefinitions(template, values, kinds, revision.files)
        AdoptedResources(self.cipher, sealed).apply_interrupted_adoption(db, target, drafts, number)
        return True

    def _group_subset(
        self,
        db: Connection[TupleRow],
        stack: StackView,
        template: Template | None,
        kinds: TypeResolver,
        hooked: Hooks,
    ) -> GroupSubset | None:
        """Return the part of a group's plan that there is anything to do in."""
        if template is None or stack.traversal == 1 or stack.converge or hooked:
            return None
        return changed_subset(db, stack.id, template, kinds)

    def _plan_action(self, db: Connection[TupleRow], stack: StackView, target: PlanTarget) -> Iterator[None]:
        """Write a visit to everything that is there, in the order it stands on each other; a SUSPEND goes the
        other way. What is begun on leftovers is followed to its end.
        """
        every = bulk_writer.rows(db, stack.id)
        rows = [row for row in every if not row.leftover]
        names = {row.id: row.name for row in rows}
        requires = {row.name: [names[id_] for id_ in row.requires if id_ in names] for row in rows}
        if stack.action == "SUSPEND":
            requires, forward = {row.name: [] for row in rows}, requires
            for name, required in forward.items():
                for one in required:
                    requires[one].append(name)
        begun = [row for row in every if row.leftover and row.op is not None]
        unending = [row for row in begun if row.op not in REMOVABLE_OPERATIONS]
        going = [row for row in begun if row.op in REMOVABLE_OPERATIONS]
        visits = ExistingRows([*(row.name for row in rows), *(row_key(row.id) for row in unending)], going)
        rows += unending + going
        layout = lay_out(build_anyhow(visits.keys, [requires.get(key, ()) for key in visits.keys]))
        yield from self._write(db, NodeIdAllocator(db, target, layout, visits), rows)

    def begin_removals(self, db: Connection[TupleRow], visit: Visit, lease: int) -> Visit | None:
        """Hold a claimed finish node by the plan of what is to be removed now that all else is done; return
        the visit to that, None when there is nothing to remove (adr/0002).

        Raises:
            Superseded: the traversal is over, or the finish node is another's by now.
        """
        stack = visit.stack
        if stack.action in ACTS or not bulk_writer.count_leftovers(db, stack.id, visit.traversal, 1):
            return None
        target = self._target(db, stack)
        node_id = bulk_writer.plan_removals(db, target, lease, self.settings.lease_seconds)
        if node_id is None:
            raise Superseded("another came to the end of the traversal")
        return visit._replace(node_id=node_id, kind="plan", label=bulk_writer.CLEANUP_PLAN_LABEL)

    def _remove(self, db: Connection[TupleRow], stack: StackView, target: PlanTarget) -> Iterator[None]:
        """Write the removal of leftovers; who stands on one goes before it."""
        rows = bulk_writer.leftovers(db, stack.id, stack.traversal)
        among = {row.id for row in rows}
        above: dict[int, list[str]] = {}
        for row in rows:
            for id_ in row.requires:
                if id_ in among:
                    above.setdefault(id_, []).append(row_key(row.id))
        work = ExistingRows([], rows)
        layout = lay_out(build_anyhow(work.keys, [above.get(row.id, ()) for row in rows]))
        yield from self._write(db, NodeIdAllocator(db, target, layout, work, fresh=True), rows)

    def _write(self, db: Connection[TupleRow], ids: NodeIdAllocator, rows: Sequence[Row]) -> Iterator[None]:
        """Write the nodes that visit what is there, and their joins."""
        target, size = ids.target, ids.layout.size
        for part in ids.slices():
            with bulk_writer.slice_of(db, target):
                ids.hold_finish_once(db)
                node_ids = ids.assign(db, part)
                written = [
                    ids.row(node, node_ids[node], rows[node].id, None, self._queue(rows[node].kind))
                    for node in part
                    if node < size
                ]
                bulk_writer.copy_nodes(db, target, [*written, *ids.joins(part, node_ids)])
            yield
