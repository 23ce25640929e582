"""Plan the traversal from a stack's rows to its template, or to no resources for a delete."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.config import Settings
from orchestrator.engine.check.hooks import UPDATES, Hooks
from orchestrator.engine.check.visit import StackView
from orchestrator.engine.plan_changes import Row, plan_changes
from orchestrator.engine.validation.implicit_requirements import with_implicit
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.operations.children.loader import MAX_CACHED_BYTES, ChildStackLoader
from orchestrator.operations.planning.adopted_resources import AdoptedResources
from orchestrator.operations.planning.definitions import PlannedDefinitions
from orchestrator.operations.planning.group_subset import GroupSubset, changed_subset, is_large_group
from orchestrator.operations.planning.row_writer import NodeWriter, ResourceWriter
from orchestrator.operations.planning.small_plans import MAX_RESOURCES
from orchestrator.operations.planning.traversal_plan import QueueOf, plan_of_changes
from orchestrator.operations.runtime.parameter_cache import ParameterCache
from orchestrator.resources.base import ResourceType
from orchestrator.security.encryption import Cipher
from orchestrator.store.nodes import hooks
from orchestrator.store.planning import bulk_writer, group_diff, plan_inputs
from orchestrator.store.planning.bulk_writer import PlanTarget
from orchestrator.store.traversals import child_reads
from orchestrator.template.group_template import load_stored
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Template

DELETE_ACTIONS = frozenset({"DELETE"})

Db = Connection[TupleRow]


class TooLarge(Exception):
    """The plan needs its own process; nothing of this plan is written."""


@dataclass(frozen=True, slots=True)
class TemplatePlanner:
    """Plans with the caches of this process."""

    cipher: Cipher
    types: Mapping[str, ResourceType]
    settings: Settings
    parameters: ParameterCache
    stacks: ChildStackLoader
    queue_of: QueueOf

    def write(
        self,
        db: Db,
        stack: StackView,
        target: PlanTarget,
        template: Template | None,
        max_members: int | None,
    ) -> None:
        """Write the plan in slices; `template` is the stack's, if parsed already.

        Raises:
            TooLarge: more than `max_members` members of a group have to be planned.
        """
        values = self.parameters.get(stack)
        revision = plan_inputs.revision(db, stack.revision_id)
        resolver = self.stacks.inherited_context(stack).resolver
        stack_hooks = Hooks(resolver.registry, stack.action)
        if template is None and stack.action not in DELETE_ACTIONS:
            template = self._template(db, stack, values, resolver, revision)
        resumed_adoption = self._finish_adoption(db, stack, target)
        subset = None
        if not (resumed_adoption or stack_hooks):
            subset = _group_subset(db, stack, template, resolver)
        if subset is not None:
            template = subset.template
        elif max_members is not None and template is not None and is_large_group(template, max_members):
            raise TooLarge
        planned = self._planned(stack, template, values, resolver, revision)
        in_force = _definitions_in_force(db, stack, subset)
        planned.keep_permitted({name: digest for name, (_, digest, _) in in_force.items()})
        defined = planned.desired.keys() & in_force.keys()
        planned.discard([name for name in defined if in_force[name][1] == planned.desired[name].digest])
        forced = self._always_visited(db, stack, planned, stack_hooks)
        back = stack.action == "ROLLBACK"
        changes = plan_changes(_rows(db, stack, subset), planned.desired, forced, back=back)
        adopted = None
        if stack.action == "ADOPT":
            adopted = AdoptedResources(self.cipher, plan_inputs.adopted_resources(db, stack.revision_id))
        definition_row = None if planned.template is None else planned.definition_row
        resources = ResourceWriter(db, target, planned, changes, in_force, definition_row, adopted)
        resources.write_row_changes()

        def put_hooks(ids: Mapping[int, int]) -> None:
            hooks.write_hooks(db, stack_hooks.of_slice(ids, changes))

        nodes = NodeWriter(db, target, plan_of_changes(changes, planned.desired), self.queue_of)
        nodes.write(resources.write_visited, put_hooks if stack_hooks else None)
        if stack.action == "ADOPT" or resumed_adoption:
            with bulk_writer.slice_of(db, target):
                plan_inputs.clear_adoptions(db, stack.id)

    def _planned(
        self,
        stack: StackView,
        template: Template | None,
        values: ParameterValues,
        resolver: TypeResolver,
        revision: plan_inputs.RevisionTexts,
    ) -> PlannedDefinitions:
        nested = stack.root_id != stack.id
        return PlannedDefinitions(template, values, resolver, revision.files, nested=nested)

    def _template(
        self,
        db: Db,
        stack: StackView,
        values: ParameterValues,
        resolver: TypeResolver,
        revision: plan_inputs.RevisionTexts,
    ) -> Template:
        """Return a stack's template; a short one, which many children share, is parsed once per process."""
        template = None
        if revision.length <= MAX_CACHED_BYTES:
            template = self.stacks.template(revision.template_hash, values, MAX_RESOURCES)
        if template is None:
            text = plan_inputs.template_text(db, stack.revision_id)
            template = load_stored(text, Limits.of_stored(self.settings), values)
        elif isinstance(template.resources, dict):  # the plan discards unchanged resources from its copy
            template = replace(template, resources=dict(template.resources))
        return with_implicit(template, resolver)

    def _always_visited(
        self, db: Db, stack: StackView, planned: PlannedDefinitions, stack_hooks: Hooks
    ) -> Collection[str]:
        """Return the names of resources to visit even if unchanged."""
        if stack.converge:
            return planned.desired
        forced = {
            *bulk_writer.written(db, stack.id, stack.traversal, "update"),
            *stack_hooks.visited(planned.desired),
        }
        if stack.action in UPDATES:
            forced.update(self._always_updated(planned))
        if stack.traversal > 1:
            forced.update(child_reads.stale_resources(db, stack.id))
        if stack.action == "RESTORE":  # the resources inside nested stacks are restored too
            forced.update(planned.nested)
        return forced

    def _always_updated(self, planned: PlannedDefinitions) -> Collection[str]:
        """Return the resources whose type asks for a visit in every update."""
        type_names = {desired.resource_type for desired in planned.desired.values()}
        always = {
            name
            for name in type_names
            if (resource_type := self.types.get(name)) and resource_type.always_visited
        }
        return (
            [name for name, desired in planned.desired.items() if desired.resource_type in always]
            if always
            else ()
        )

    def _finish_adoption(self, db: Db, stack: StackView, target: PlanTarget) -> bool:
        """Write the rows of an adoption that a newer traversal interrupted; return whether there was any."""
        continues = stack.traversal > 1 and stack.action not in DELETE_ACTIONS | {"ROLLBACK"}
        pending = plan_inputs.pending_adoption(db, stack.id) if continues else None
        if pending is None:
            return False
        revision_id, number, sealed = pending
        then = stack._replace(revision_id=revision_id)
        values, resolver = self.parameters.get(then), self.stacks.inherited_context(then).resolver
        revision = plan_inputs.revision(db, revision_id)
        template = self._template(db, then, values, resolver, revision)
        planned = self._planned(stack, template, values, resolver, revision)
        AdoptedResources(self.cipher, sealed).apply_interrupted_adoption(db, target, planned, number)
        return True


def _group_subset(
    db: Db, stack: StackView, template: Template | None, resolver: TypeResolver
) -> GroupSubset | None:
    """Return the changed part of a group's template, None to plan the whole template."""
    if template is None or stack.traversal == 1 or stack.converge:
        return None
    return changed_subset(db, stack.id, template, resolver)


def _definitions_in_force(
    db: Db, stack: StackView, subset: GroupSubset | None
) -> dict[str, tuple[int, bytes, int]]:
    if subset is not None:
        return group_diff.definitions(db, stack.id, subset.names)
    if stack.traversal > 1 and stack.action not in DELETE_ACTIONS:
        return bulk_writer.definitions(db, stack.id)
    return {}


def _rows(db: Db, stack: StackView, subset: GroupSubset | None) -> Sequence[Row]:
    if subset is not None:
        return group_diff.rows(db, stack.id, subset.names)
    return bulk_writer.rows(db, stack.id) if stack.traversal > 1 else []
