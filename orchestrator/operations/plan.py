"""Plan a traversal: fill in resources and graph nodes, in slices, resumable (PROTOCOL.md 6).

Small stacks are planned inside the plan node's own check. Large ones in a process of their own
(`planner.py`), so that workers stay small; the API's process for large bodies goes on to plan what it
accepted. An interrupted plan is taken up where its last slice ended: rows are written so that whoever a node
releases is there before it, and a second planner reads what the first wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.kinds import Kinds, with_implicit
from orchestrator.engine.messages import Ring
from orchestrator.engine.visit import StackView, Visit
from orchestrator.errors import NotFound, OrchestratorError, Superseded
from orchestrator.graph.build import build
from orchestrator.graph.layout import FINISH, Layout, lay_out
from orchestrator.operations import lifecycle
from orchestrator.operations.parameters import ParameterCache
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store import nodes, planning
from orchestrator.store.database import Database
from orchestrator.store.planning import DefinitionRow, NodeRow, Target
from orchestrator.telemetry import logger
from orchestrator.template.definition import NOTHING, ResourceDefinition, StackDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.functions import ALL
from orchestrator.template.global_environment import global_environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template, load

log = logger()

SLICE = 5_000  # rows of each table a transaction writes
DESTROYS = frozenset({"DELETE", "ROLLBACK"})


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the traversals of this process's stacks."""

    database: Database
    cipher: Cipher
    types: Mapping[str, ResourceType]
    settings: Settings
    parameters: ParameterCache

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

        `template` saves parsing it again.
        """
        stack = visit.stack
        if visit.traversal > 1:
            planning.wait_for_older_checks(db)
        try:
            slices = (
                self._destroy(db, stack) if stack.action in DESTROYS else self._create(db, stack, template)
            )
            for _ in slices:  # each is written before the next is asked for
                pass
        except Superseded:
            return nodes.drop(db, [visit.node_id], lease, stack.uuid).rings
        except OrchestratorError as error:
            log.error("plan_failed", stack=stack.uuid, error=str(error))
            return lifecycle.fail(self.database, stack.id, visit.traversal, str(error))
        root, window = stack.uuid, self.settings.ring_window if ring else 0
        settled = nodes.settle_nodes(db, [visit.node_id], lease, root, ring=window)
        planning.drop_old_nodes(db, stack.id, stack.traversal, SLICE)
        return settled.rings + (nodes.top_up(db, stack.root_id, root, window).rings if ring else [])

    def _target(self, db: Connection[TupleRow], stack: StackView) -> Target:
        row = db.execute("SELECT number FROM revision WHERE id = %s", (stack.revision_id,)).fetchone()
        assert row is not None
        finish = planning.finish_node(db, stack.id, stack.traversal)
        return Target(stack.id, stack.root_id, stack.traversal, row[0], finish)

    def _queue(self, type_name: str) -> str:
        try:
            return "provider" if self.types[type_name].calls_out else "check"
        except NotFound:
            return "check"  # whoever visits it says what is missing

    def _kinds(self, revision: planning.RevisionTexts) -> Kinds:
        settings = self.settings
        return Kinds.of_stack(
            self.types,
            Environment(resource_registry=revision.environment.get("resource_registry") or {}),
            {},
            Limits.of(settings),
            globals=global_environment(settings.environment_dir),
            max_depth=settings.max_nested_stack_depth,
            max_resources=settings.max_resources_per_stack,
        )

    def _create(
        self, db: Connection[TupleRow], stack: StackView, template: Template | None
    ) -> Iterator[None]:
        values = self.parameters.get(stack)
        revision = planning.revision(db, stack.revision_id)
        kinds = self._kinds(revision)
        if template is None:
            text = planning.template_text(db, stack.revision_id)
            template = with_implicit(load(text, Limits.of(self.settings), values), kinds)
        names = list(template.resources)
        layout = lay_out(build(names, [template.resources[name].requires for name in names]))
        target = self._target(db, stack)
        ids = _Ids(db, target, layout, names, "update")
        for part in ids.slices():
            with planning.slice_of(db, stack.id, stack.traversal):
                ids.hold_finish_once(db)
                visits = [node for node in part if node < layout.size]
                definition_ids = planning.new_ids(db, "resource_definition", len(visits))
                resource_ids = planning.new_ids(db, "resource", len(visits))
                node_ids = ids.assign(db, part)
                definitions, rows, resources = [], [], []
                for node, definition_id, resource_id in zip(
                    visits, definition_ids, resource_ids, strict=True
                ):
                    definition = template.resources[names[node]]
                    files = _chosen(definition.files, revision.files)
                    mappings = _chosen(definition.mappings, template.mappings)
                    definitions.append(
                        DefinitionRow(
                            definition_id,
                            definition.name,
                            definition.digest(values, (files, mappings) if files or mappings else None),
                            _stored(definition, template.version, values, files, mappings),
                            sorted(definition.requires),
                            {name: sorted(attributes) for name, attributes in definition.dep_attrs.items()},
                        )
                    )
                    runs_as = kinds.resolved_name(definition)
                    resources.append(
                        (
                            resource_id,
                            definition.name,
                            definition.type,
                            None if runs_as == definition.type else runs_as,
                        )
                    )
                    queue = self._queue(runs_as)
                    rows.append(ids.row(node, node_ids[node], resource_id, definition_id, queue))
                planning.copy_definitions(db, target, definitions)
                planning.copy_resources(db, target, resources)
                planning.copy_nodes(db, target, [*rows, *ids.joins(part, node_ids)])
            yield

    def _destroy(self, db: Connection[TupleRow], stack: StackView) -> Iterator[None]:
        planning.drop_unmade(db, stack.id, stack.traversal, SLICE)
        made = planning.made(db, stack.id)
        at = {row[0]: position for position, row in enumerate(made)}
        dependents: list[list[str]] = [[] for _ in made]
        labels = [str(row[0]) for row in made]  # several incarnations may share a name
        for row in made:
            for required in row[3]:
                if required in at:
                    dependents[at[required]].append(str(row[0]))
        layout = lay_out(build(labels, dependents))
        target = self._target(db, stack)
        ids = _Ids(db, target, layout, labels, "cleanup", [row[1] for row in made])
        for part in ids.slices():
            with planning.slice_of(db, stack.id, stack.traversal):
                ids.hold_finish_once(db)
                node_ids = ids.assign(db, part)
                rows = [
                    ids.row(node, node_ids[node], made[node][0], None, self._queue(made[node][2]))
                    for node in part
                    if node < layout.size
                ]
                planning.copy_nodes(db, target, [*rows, *ids.joins(part, node_ids)])
            yield


def _chosen(names: Collection[str], held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a definition uses of the files or the mappings."""
    if not names:
        return NOTHING
    return held if ALL in names else {name: held[name] for name in names if name in held}


def _stored(
    definition: ResourceDefinition,
    version: str,
    values: ParameterValues,
    files: Mapping[str, Any],
    mappings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a snippet as a check needs it: with the language's version, the hashes of the files and the
    mappings it uses, and its deletion policy resolved.

    What was built is removed by the policy it was built with, and no template is read then.
    """
    body = {**definition.body, "version": version}
    if files:
        body["files"] = files
    if mappings:
        body["mappings"] = mappings
    if isinstance(body.get("deletion_policy"), dict):
        view = StackDefinition(version, values, {}, mappings=mappings)
        body["deletion_policy"] = view.resolve(
            body["deletion_policy"], f"resources.{definition.name}.deletion_policy"
        )
    return body


class _Ids:
    """Which node of a layout has which row; what an earlier plan wrote is known from its labels."""

    def __init__(
        self,
        db: Connection[TupleRow],
        target: Target,
        layout: Layout,
        keys: Sequence[str],
        kind: str,
        labels: Sequence[str] | None = None,
    ) -> None:
        self.target, self.layout, self.keys, self.kind, self.labels = (
            target,
            layout,
            keys,
            kind,
            labels or keys,
        )
        self._ids: dict[int, int] = {}
        if kind == "update":
            nodes_written = planning.written(db, target.stack_id, target.traversal, "update")
        else:
            nodes_written = planning.cleanups(db, target.stack_id, target.traversal)
        joins_written = planning.written(db, target.stack_id, target.traversal, "join")
        self.resumed = bool(nodes_written or joins_written)
        for node in layout.order:
            is_join = node >= layout.size
            found = joins_written.get(layout.labels[node]) if is_join else nodes_written.get(keys[node])
            if found is not None:
                self._ids[node] = found

    def slices(self) -> Iterator[list[int]]:
        """Yield the nodes still to be written, a slice at a time; at least one slice, so that the finish is
        held.
        """
        left = [node for node in self.layout.order if node not in self._ids]
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
        self._ids.update(fresh)
        return fresh

    def row(
        self, node: int, id_: int, resource_id: int | None, definition_id: int | None, queue: str
    ) -> NodeRow:
        """Return the row of a node that visits a resource."""
        return NodeRow(
            id_,
            self.kind,
            resource_id,
            definition_id,
            queue,
            self.labels[node],
            self._needed_by(node),
            self.layout.blocked_by[node],
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
                self.layout.labels[node],
                self._needed_by(node),
                self.layout.blocked_by[node],
            )
            for node in part
            if node >= self.layout.size
        ]

    def _needed_by(self, node: int) -> list[int]:
        return [
            self.target.finish_id if target == FINISH else self._ids[target]
            for target in self.layout.needed_by[node]
        ]
