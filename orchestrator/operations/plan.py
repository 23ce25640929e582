"""Plan a traversal: fill in resources and graph nodes, in slices, resumable (PROTOCOL.md 6).

Small stacks are planned inside the plan node's own check. Large ones in a process of their own
(`planner.py`), so that workers stay small; the API's process for large bodies goes on to plan what it
accepted. An interrupted plan is taken up where its last slice ended: rows are written so that whoever a node
releases is there before it, and a second planner reads what the first wrote.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.changes import Changes, Row, compare
from orchestrator.engine.hooks import Hooks
from orchestrator.engine.kinds import Kinds, with_implicit
from orchestrator.engine.messages import Ring
from orchestrator.engine.states import ACTS
from orchestrator.engine.visit import StackView, Visit
from orchestrator.errors import NotFound, OrchestratorError, Superseded
from orchestrator.graph.build import build_anyhow
from orchestrator.graph.layout import FINISH, Layout, lay_out
from orchestrator.operations import lifecycle
from orchestrator.operations.adopted import AdoptedThings
from orchestrator.operations.child_stacks import ChildStacks
from orchestrator.operations.drafts import Drafts
from orchestrator.operations.parameters import ParameterCache
from orchestrator.operations.plan_group import Narrowed, narrowed
from orchestrator.operations.plan_small import plan_small
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store import children, group_planning, hooks, nodes, planning, stalls
from orchestrator.store.database import Database
from orchestrator.store.planning import NodeRow, Target
from orchestrator.telemetry import logger
from orchestrator.template.members import load_stored
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template

log = logger()

SLICE = 5_000  # rows of each table a transaction writes
DESTROYS = frozenset({"DELETE"})
GOING = frozenset({"CREATE", "DISCARD", "DELETE"})  # open on a leftover: nothing stands on it, it can go


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the traversals of this process's stacks."""

    database: Database
    cipher: Cipher
    types: Mapping[str, ResourceType]
    settings: Settings
    parameters: ParameterCache
    stacks: ChildStacks

    def run(
        self,
        db: Connection[TupleRow],
        visit: Visit,
        lease: int,
        template: Template | None = None,
        *,
        ring: bool = True,
    ) -> list[Ring]:
        """Write the whole plan and settle its node; return what to enqueue, nothing unless `ring`.

        `template` saves parsing it again, and is used up: what is not to be written is let go of.
        """
        stack, removals = visit.stack, visit.label == planning.REMOVALS
        if visit.traversal > 1 and not removals:
            planning.wait_for_older_checks(db)
        compares = visit.traversal > 1 or removals
        if compares and planning.is_begun(db, stack.id, visit.traversal, visit.node_id):
            return self._begin_again(db, visit, lease)
        try:
            target = self._target(db, stack, (visit.node_id, lease))
            if removals:
                bring = self._remove(db, stack, target)
            elif stack.action in ACTS:
                bring = self._visit_all(db, stack, target)
            else:
                bring = self._bring(db, stack, target, template)
            for _ in bring:  # each slice is written before the next is asked for
                pass
        except Superseded:
            return nodes.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).rings
        except OrchestratorError as error:
            return self._failed(visit, error)
        root, window = self.stacks.root_of(stack), self.settings.ring_window if ring else 0
        settled = nodes.settle_nodes(db, [visit.node_id], lease, root, ring=window)
        planning.drop_old_nodes(db, stack.id, stack.traversal, SLICE)
        return settled.rings + (nodes.top_up(db, stack.root_id, root, window).rings if ring else [])

    def run_small(
        self, db: Connection[TupleRow], visit: Visit, lease: int | None, allowance: int
    ) -> list[Ring] | None:
        """Write the whole first plan of a small stack in one go; None when it takes more than that.

        Return what to enqueue, `allowance` at most.
        """
        try:
            settled = plan_small(
                db,
                visit,
                lease,
                self.stacks,
                self.parameters,
                self._queue,
                allowance,
                self.settings.inline_body_size,
            )
        except Superseded:
            if lease is None:
                return []  # whoever has it, or the sweep, sees to it
            return nodes.drop(db, [visit.node_id], lease, self.stacks.root_of(visit.stack)).rings
        except OrchestratorError as error:
            return self._failed(visit, error)
        return None if settled is None else settled.rings

    def _failed(self, visit: Visit, error: OrchestratorError) -> list[Ring]:
        log.error("plan_failed", stack=visit.stack.uuid, error=str(error))
        return lifecycle.fail(self.database, visit.stack.id, visit.traversal, str(error))

    def _begin_again(self, db: Connection[TupleRow], visit: Visit, lease: int) -> list[Ring]:
        """Plan an interrupted update as a traversal of its own.

        What is written of it is being carried out, and other nodes would follow from the rows as they are by
        now: counts of one plan and nodes of another do not fit together. A first traversal has no rows to
        compare with: it goes on where it ended.
        """
        stack = visit.stack
        rings = stalls.begin_again(db, stack.id, visit.traversal, lost_leases=visit.lost_leases)
        return rings + nodes.drop(db, [visit.node_id], lease, self.stacks.root_of(stack)).rings

    def _target(
        self, db: Connection[TupleRow], stack: StackView, plan: tuple[int, int] | None = None
    ) -> Target:
        row = db.execute("SELECT number FROM revision WHERE id = %s", (stack.revision_id,)).fetchone()
        assert row is not None
        finish = planning.finish_node(db, stack.id, stack.traversal)
        return Target(stack.id, stack.root_id, stack.traversal, row[0], finish, plan)

    def _queue(self, type_name: str) -> str:
        try:
            kind = self.types[type_name]
        except NotFound:
            return "check"  # a template; or whoever visits it says what is missing
        return "provider" if kind.is_claimed else "check"

    def _template(
        self,
        db: Connection[TupleRow],
        stack: StackView,
        values: ParameterValues,
        kinds: Kinds,
    ) -> Template:
        text = planning.template_text(db, stack.revision_id)
        return with_implicit(load_stored(text, Limits.of(self.settings), values), kinds)

    def _bring(
        self, db: Connection[TupleRow], stack: StackView, target: Target, template: Template | None
    ) -> Iterator[None]:
        """Write what brings the stack from what is there to what its template wants, nothing for a delete."""
        values = self.parameters.get(stack)
        revision = planning.revision(db, stack.revision_id)
        kinds, gone = self.stacks.around(stack).kinds, stack.action in DESTROYS
        hooked = Hooks(kinds.registry, stack.action)
        if template is None and not gone:
            template = self._template(db, stack, values, kinds)
        narrow = self._narrowed(db, stack, template, kinds, hooked)
        if narrow is not None:
            template = narrow.template
        drafts = Drafts(template, values, kinds, revision.files)
        in_force: dict[str, tuple[int, bytes, int]] = {}
        if narrow is not None:
            in_force = group_planning.definitions(db, stack.id, narrow.names)
        elif stack.traversal > 1 and not gone:
            in_force = planning.definitions(db, stack.id)
        known = drafts.wanted.keys() & in_force.keys()
        drafts.forget([name for name in known if in_force[name][1] == drafts.wanted[name].digest])
        rows: Sequence[Row] = []
        if narrow is not None:
            rows = group_planning.rows(db, stack.id, narrow.names)
        elif stack.traversal > 1:
            rows = planning.rows(db, stack.id)
        started: Collection[str] = planning.written(db, stack.id, stack.traversal, "update")
        back = stack.action == "ROLLBACK"
        disturbed = children.disturbed(db, stack.id) if stack.traversal > 1 else []
        forced = drafts.wanted if stack.converge else {*started, *hooked.visited(drafts.wanted), *disturbed}
        if stack.action == "RESTORE":  # what is inside is restored, too
            forced = {*forced, *drafts.nested}
        changes = compare(rows, drafts.wanted, forced, back=back)
        work = _Work(db, target, drafts, changes, in_force)
        if stack.action == "ADOPT":
            work.adopted = AdoptedThings(self.cipher, planning.adopted(db, stack.revision_id))
        work.settle_rows()
        layout = lay_out(build_anyhow(work.keys, work.requires))
        ids = _Ids(db, target, layout, work)
        for part in ids.slices():
            with planning.slice_of(db, target):
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
                planning.copy_nodes(db, target, [*written, *ids.joins(part, node_ids)])
                if hooked:
                    hooks.put(db, hooked.of_slice(node_ids, changes))
            yield

    def _narrowed(
        self,
        db: Connection[TupleRow],
        stack: StackView,
        template: Template | None,
        kinds: Kinds,
        hooked: Hooks,
    ) -> Narrowed | None:
        """Return the part of a group's plan that there is anything to do in."""
        if template is None or stack.traversal == 1 or stack.converge or hooked:
            return None
        return narrowed(db, stack.id, template, kinds)

    def _visit_all(self, db: Connection[TupleRow], stack: StackView, target: Target) -> Iterator[None]:
        """Write a visit to everything that is there, in the order it stands on each other; a SUSPEND goes the
        other way. What is begun on leftovers is followed to its end.
        """
        every = planning.rows(db, stack.id)
        rows = [row for row in every if not row.leftover]
        names = {row.id: row.name for row in rows}
        requires = {row.name: [names[id_] for id_ in row.requires if id_ in names] for row in rows}
        if stack.action == "SUSPEND":
            requires, forward = {row.name: [] for row in rows}, requires
            for name, required in forward.items():
                for one in required:
                    requires[one].append(name)
        begun = [row for row in every if row.leftover and row.op is not None]
        unending = [row for row in begun if row.op not in GOING]
        going = [row for row in begun if row.op in GOING]
        visits = _Visits([*(row.name for row in rows), *(_key(row.id) for row in unending)], going)
        rows += unending + going
        layout = lay_out(build_anyhow(visits.keys, [requires.get(key, ()) for key in visits.keys]))
        yield from self._write(db, _Ids(db, target, layout, visits), rows)

    def begin_removals(self, db: Connection[TupleRow], visit: Visit, lease: int) -> Visit | None:
        """Hold a claimed finish node by the plan of what is to be removed now that all else is done; return
        the visit to that, None when there is nothing to remove (adr/0002).

        Raises:
            Superseded: the traversal is over, or the finish node is another's by now.
        """
        stack = visit.stack
        if stack.action in ACTS or not planning.count_leftovers(db, stack.id, visit.traversal, 1):
            return None
        target = self._target(db, stack)
        node_id = planning.plan_removals(db, target, lease, self.settings.lease_seconds)
        if node_id is None:
            raise Superseded("another came to the end of the traversal")
        return visit._replace(node_id=node_id, kind="plan", label=planning.REMOVALS)

    def _remove(self, db: Connection[TupleRow], stack: StackView, target: Target) -> Iterator[None]:
        """Write the removal of leftovers; who stands on one goes before it."""
        rows = planning.leftovers(db, stack.id, stack.traversal)
        among = {row.id for row in rows}
        above: dict[int, list[str]] = {}
        for row in rows:
            for id_ in row.requires:
                if id_ in among:
                    above.setdefault(id_, []).append(_key(row.id))
        work = _Visits([], rows)
        layout = lay_out(build_anyhow(work.keys, [above.get(row.id, ()) for row in rows]))
        yield from self._write(db, _Ids(db, target, layout, work, fresh=True), rows)

    def _write(self, db: Connection[TupleRow], ids: _Ids, rows: Sequence[Row]) -> Iterator[None]:
        """Write the nodes that visit what is there, and their joins."""
        target, size = ids.target, ids.layout.size
        for part in ids.slices():
            with planning.slice_of(db, target):
                ids.hold_finish_once(db)
                node_ids = ids.assign(db, part)
                written = [
                    ids.row(node, node_ids[node], rows[node].id, None, self._queue(rows[node].kind))
                    for node in part
                    if node < size
                ]
                planning.copy_nodes(db, target, [*written, *ids.joins(part, node_ids)])
            yield


class _Visits:
    """What a layout of visits to what is there is about."""

    def __init__(self, visited: list[str], cleanups: Sequence[Row]) -> None:
        self.visited, self.cleanups = visited, cleanups
        self.keys = [*visited, *(_key(row.id) for row in cleanups)]
        self.dirty = set(visited)


class _Work:
    """What a plan writes besides nodes: definitions, new rows, and which rows are leftovers."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: Target,
        drafts: Drafts,
        changes: Changes,
        in_force: Mapping[str, tuple[int, bytes, int]],
    ) -> None:
        self.db, self.target, self.drafts, self.changes, self.in_force = db, target, drafts, changes, in_force
        self.adopted: AdoptedThings | None = None
        self.visited, self.cleanups, self.dirty = changes.visited, changes.cleanups, changes.dirty
        self.keys = [*self.visited, *(_key(row.id) for row in self.cleanups)]
        among = set(self.visited)
        going = {row.id for row in self.cleanups}
        above: dict[int, list[str]] = {id_: [] for id_ in going}
        for row in self.cleanups:  # who stands on it goes first
            for id_ in row.requires:
                if id_ in going:
                    above[id_].append(_key(row.id))
        self.requires: list[Collection[str]] = [
            *(needed if needed <= among else needed & among for needed in map(self._needs, self.visited)),
            *(above[row.id] for row in self.cleanups),
        ]

    def settle_rows(self) -> None:
        """Write, in slices, which rows stand for what, and the definitions that need no visit."""
        changes, among = self.changes, set(self.visited)
        for part in _parts(list(changes.leaving)):
            with self._slice():
                planning.leave(self.db, {id_: changes.leaving[id_] for id_ in part})
        for part in _parts(changes.taken_back):
            with self._slice():
                planning.take_back(self.db, part)
        for part in _parts(changes.unmade):
            with self._slice():  # one that a late worker looks at just now goes with the leftovers
                planning.leave(self.db, dict.fromkeys(part))
                planning.drop_rows(self.db, part)
        if self.drafts.template is None:
            return
        names = self.drafts.wanted
        for part in _parts([name for name in self.in_force if name not in names]):
            with self._slice():
                planning.close_definitions(self.db, self.target, part)
        for part in _parts([name for name in names if name not in among and self._is_redefined(name)]):
            with self._slice():
                self._define(part)

    def write(self, nodes: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Write the rows and definitions of some visits; return the ids of both for each."""
        names = [self.keys[node] for node in nodes]
        fresh = [name for name in names if name not in self.changes.chosen]
        new_rows = dict(zip(fresh, planning.new_ids(self.db, "resource", len(fresh)), strict=True))
        planning.copy_resources(
            self.db, self.target, [self._row(name, new_rows[name]) for name in fresh] if fresh else []
        )
        redefined = [name for name in names if self._is_redefined(name)]
        new_definitions = self._define(redefined)
        places = {}
        for node, name in zip(nodes, names, strict=True):
            row = new_rows[name] if name in new_rows else self.changes.chosen[name].id
            definition = new_definitions[name] if name in new_definitions else self.in_force[name][0]
            places[node] = row, definition
        if self.adopted is not None:
            self.adopted.write(self.db, {self.keys[node]: place for node, place in places.items()})
        return places

    def _row(self, name: str, id_: int) -> tuple[int, str, str, str | None]:
        written, runs_as = self.drafts.type_of(name), self.drafts.wanted[name].kind
        return id_, name, written, None if runs_as == written else runs_as

    def _needs(self, name: str) -> frozenset[str]:
        return self.drafts.wanted[name].requires

    def _is_redefined(self, name: str) -> bool:
        known = self.in_force.get(name)
        return known is None or known[1] != self.drafts.wanted[name].digest

    def _define(self, names: Sequence[str]) -> dict[str, int]:
        known = [name for name in names if name in self.in_force]
        if known:
            planning.close_definitions(self.db, self.target, known)
        ids = dict(zip(names, planning.new_ids(self.db, "resource_definition", len(names)), strict=True))
        planning.copy_definitions(
            self.db, self.target, (self.drafts.stored(name, ids[name]) for name in names)
        )
        return ids

    def _slice(self) -> AbstractContextManager[None]:
        return planning.slice_of(self.db, self.target)


def _key(row_id: int) -> str:
    """Return what stands for a row to be removed among the names of resources, none of which has a slash."""
    return f"/{row_id}"


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]


class _Ids:
    """Which node of a layout has which row; what an earlier plan wrote is known from its labels."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: Target,
        layout: Layout,
        work: _Work | _Visits,
        *,
        fresh: bool = False,
    ) -> None:
        """`fresh`: what the traversal has under the same labels is another plan's."""
        self.target, self.layout, self.work = target, layout, work
        self._ids = array("q", bytes(8 * len(layout.needed_by)))  # 0: not written yet
        self.resumed = False
        if fresh:
            return
        nodes_written = planning.written(db, target.stack_id, target.traversal, "update")
        cleanups = planning.cleanups(db, target.stack_id, target.traversal)
        nodes_written |= {_key(int(row)): node for row, node in cleanups.items()}
        joins_written = planning.written(db, target.stack_id, target.traversal, "join")
        self.resumed = bool(nodes_written or joins_written)
        for node in layout.order:
            is_join = node >= layout.size
            found = joins_written.get(self._label(node)) if is_join else nodes_written.get(work.keys[node])
            if found is not None:
                self._ids[node] = found

    def slices(self) -> Iterator[list[int]]:
        """Yield the nodes still to be written, a slice at a time; at least one slice, so that the finish is
        held.
        """
        left = [node for node in self.layout.order if not self._ids[node]]
        if not left and not self.resumed:
            yield []
        for start in range(0, len(left), SLICE):
            yield left[start : start + SLICE]

    def hold_finish_once(self, db: Connection[TupleRow]) -> None:
        """Count the finish node's feeders in the transaction of the first slice."""
        if not self.resumed:
            planning.hold_finish(db, self.target, self.layout.finish_blockers)
            self.resumed = True

    def assign(self, db: Connection[TupleRow], part: Sequence[int]) -> dict[int, int]:
        """Give a slice's nodes their row ids."""
        fresh = dict(zip(part, planning.new_ids(db, "graph_node", len(part)), strict=True))
        for node, id_ in fresh.items():
            self._ids[node] = id_
        return fresh

    def row(
        self, node: int, id_: int, resource_id: int | None, definition_id: int | None, queue: str
    ) -> NodeRow:
        """Return the row of a node that visits a resource."""
        work, key = self.work, self.work.keys[node]
        is_update = node < len(work.visited)
        return NodeRow(
            id_,
            "update" if is_update else "cleanup",
            resource_id,
            definition_id,
            queue,
            key if is_update else work.cleanups[node - len(work.visited)].name,
            self._needed_by(node),
            self.layout.blocked_by[node],
            not is_update or key in work.dirty,
        )

    def joins(self, part: Sequence[int], ids: Mapping[int, int]) -> list[NodeRow]:
        """Return the rows of a slice's joins."""
        return [
            NodeRow(
                ids[node],
                "join",
                None,
                None,
                "bulk",
                self._label(node),
                self._needed_by(node),
                self.layout.blocked_by[node],
                dirty=False,
            )
            for node in part
            if node >= self.layout.size
        ]

    def _label(self, node: int) -> str:
        return self.layout.labels[node]

    def _needed_by(self, node: int) -> list[int]:
        return [
            self.target.finish_id if target == FINISH else self._ids[target]
            for target in self.layout.needed_by[node]
        ]
