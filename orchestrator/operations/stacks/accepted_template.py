"""The resources of the template that a stack was accepted with, while its plan is written.

Between the answer to a request and the end of its plan, resources have no rows. Readers take them from here
(`resources.py`). Nothing is parsed per request: a small template is parsed once per process, a group's is a
range of numbers, and the resources of a large template are stored in slices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Final
from uuid import UUID

from orchestrator import config
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import OperationContext
from orchestrator.operations.runtime.caches import BoundedCache
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.validation.request import ValidatedRequest, kinds_of
from orchestrator.store.connections.database import Database
from orchestrator.store.planning import plan_inputs
from orchestrator.store.stacks import accepted_resources as store
from orchestrator.store.stacks import revisions
from orchestrator.store.stacks.accepted_resources import AcceptedResource, Part, PlannedRevision
from orchestrator.store.stacks.stacks import StackRow
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.group_template import MemberDefinitions, Members, load_stored
from orchestrator.template.parse import Limits

MAX_PARSED_BYTES: Final = 1 << 20  # of a template without slices: of a nested stack, or accepted long ago
CACHED: Final = 8  # parsed templates per process


class AcceptedTemplate(ABC):
    """The resources of an accepted template, ordered by name."""

    @abstractmethod
    def after(self, name: str | None) -> Iterator[AcceptedResource]:
        """Yield the resources after a name, exclusive, or all."""

    @abstractmethod
    def get(self, name: str) -> AcceptedResource | None:
        """Return the resource with a name."""

    def dependents(self, name: str) -> Sequence[str]:  # noqa: ARG002
        """Return the direct dependents of a resource; a large template does not tell them."""
        return ()


class ParsedTemplate(AcceptedTemplate):
    """A small template."""

    def __init__(self, resources: Mapping[str, ResourceDefinition], kinds: TypeResolver) -> None:
        """Keep the resources, without their properties."""
        self._all = {name: _accepted(resources[name], kinds) for name in sorted(resources)}
        self._names = list(self._all)

    def after(self, name: str | None) -> Iterator[AcceptedResource]:
        """Yield the resources after a name, exclusive, or all."""
        first = 0 if name is None else bisect_right(self._names, name)
        return (self._all[self._names[place]] for place in range(first, len(self._names)))

    def get(self, name: str) -> AcceptedResource | None:
        """Return the resource with a name."""
        return self._all.get(name)

    def dependents(self, name: str) -> Sequence[str]:
        """Return the direct dependents of a resource."""
        return self._dependents.get(name, ())

    @cached_property
    def _dependents(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for resource in self._all.values():
            for required in resource.requires:
                found.setdefault(required, []).append(resource.name)
        return found


class GroupTemplate(AcceptedTemplate):
    """The template of a group's child: eight bytes per member."""

    def __init__(self, members: Members, kinds: TypeResolver) -> None:
        """Order the members by name."""
        self._members, self._resources, self._kinds = members, MemberDefinitions(members), kinds
        self._numbers = array("q", sorted(members.all, key=members.name))

    def after(self, name: str | None) -> Iterator[AcceptedResource]:
        """Yield the members after a name, exclusive, or all."""
        first = 0 if name is None else bisect_right(self._numbers, name, key=self._members.name)
        for place in range(first, len(self._numbers)):
            yield _accepted(self._resources[self._members.name(self._numbers[place])], self._kinds)

    def get(self, name: str) -> AcceptedResource | None:
        """Return the member with a name."""
        return _accepted(self._resources[name], self._kinds) if name in self._resources else None


class SlicedTemplate(AcceptedTemplate):
    """A large template, read from its slices."""

    def __init__(self, database: Database, revision_id: int) -> None:
        """Read the slices of a revision."""
        self._database, self._revision_id = database, revision_id

    def after(self, name: str | None) -> Iterator[AcceptedResource]:
        """Yield the resources after a name, exclusive, or all."""
        while part := self._part(name):
            yield from (item for item in part if name is None or item.name > name)
            name = part[-1].name

    def get(self, name: str) -> AcceptedResource | None:
        """Return the resource with a name."""
        with self._database.borrow() as db:
            part = store.part_with(db, self._revision_id, name)
        return next((item for item in part if item.name == name), None)

    def _part(self, name: str | None) -> list[AcceptedResource]:
        with self._database.borrow() as db:
            return store.part_after(db, self._revision_id, name)


def slices_of(template: bytes, validated: ValidatedRequest) -> Sequence[Part]:
    """Return the slices to store with a revision; a small `template` needs none."""
    if len(template) <= config.INLINE_BODY_SIZE:
        return ()
    resources, kinds = validated.template.resources, validated.kinds
    return list(store.parts_of(_accepted(resources[name], kinds) for name in sorted(resources)))


def in_planning(context: OperationContext, stacks: Collection[StackRow]) -> Mapping[int, AcceptedTemplate]:
    """Return the accepted templates of the stacks whose plan is not written completely, by the stacks' ids.
    For stacks at rest nothing is read.
    """
    ids = [stack.id for stack in stacks if stack.in_progress and stack.action in store.TEMPLATE_ACTIONS]
    if not ids:
        return {}
    with context.database.borrow() as db:
        revisions_ = store.planning(db, ids)
    by_id = {stack.id: stack for stack in stacks if stack.id in revisions_}
    found = {id_: _template(context, stack, revisions_[id_]) for id_, stack in by_id.items()}
    return {id_: template for id_, template in found.items() if template is not None}


def _template(
    context: OperationContext, stack: StackRow, revision: PlannedRevision
) -> AcceptedTemplate | None:
    if revision.length > config.INLINE_BODY_SIZE:
        sliced = SlicedTemplate(context.database, revision.id)
        if next(sliced.after(None), None) is not None:
            return sliced
        if revision.length > MAX_PARSED_BYTES:
            return None
    cache, key = _cache(context.database), (stack.uuid, revision.id)
    found = cache.get(key)
    if found is None and (found := _parsed(context, stack, revision)) is not None:
        cache.put(key, found)
    return found


@lru_cache(maxsize=8)  # databases; a process has one
def _cache(database: Database) -> BoundedCache[tuple[UUID, int], AcceptedTemplate]:  # noqa: ARG001 - the key
    """Return the parsed templates of a database, by revision: revisions never change."""
    return BoundedCache(CACHED)


def _parsed(context: OperationContext, stack: StackRow, revision: PlannedRevision) -> AcceptedTemplate | None:
    """Parse the template of a revision; return None if it is invalid: then its plan will fail."""
    with context.database.borrow() as db:
        text, environment = plan_inputs.template_text(db, revision.id), plan_inputs.revision(db, revision.id)
        parameters, sealed = revisions.parameters(db, revision.id)
    pseudo = pseudo_parameters(str(stack.uuid), stack.name, stack.project_id)
    values = stored_values(parameters, sealed, context.cipher, pseudo)
    try:
        resources = load_stored(text, Limits.of_stored(context.settings), values).resources
    except InvalidTemplate:
        return None
    sections = {**environment.environment, "parameters": {}}
    environment_ = Environment.parse(sections)
    kinds = kinds_of(context, environment_, {}, depth=stack.depth, fetching=False, authorizes=False)
    if isinstance(resources, MemberDefinitions):
        return GroupTemplate(resources.members, kinds)
    return ParsedTemplate(resources, kinds)


def _accepted(definition: ResourceDefinition, kinds: TypeResolver) -> AcceptedResource:
    written, runs_as = definition.type, kinds.resolved_name(definition)
    description = str(definition.body.get("description") or "")
    return AcceptedResource(
        definition.name,
        written,
        None if runs_as == written else runs_as,
        description,
        sorted(definition.requires),
    )
