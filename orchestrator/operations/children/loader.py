"""The desired state of child stacks, and the inherited context of nested resources.

Revisions and templates never change, so their contents are cached.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import orjson

from orchestrator.config import Settings
from orchestrator.engine.check.child_status import ChildState
from orchestrator.engine.check.visit import ResourceVisit, StackView
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver, UnknownType
from orchestrator.errors import InvalidTemplate, LimitExceeded, NotFound
from orchestrator.json_types import JsonMapping
from orchestrator.operations.children.child_parameters import child_values, secret_parameters, visible_values
from orchestrator.operations.children.child_view import StoredChildView
from orchestrator.operations.children.missing_types import MissingType
from orchestrator.operations.quotas.limits import CachedQuotas
from orchestrator.operations.quotas.room import RESOURCES, STORED_BYTES, require_room
from orchestrator.operations.resource_context.state import ResourceState
from orchestrator.operations.runtime.caches import BoundedCache, FileCache
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.runtime.sealed_parameters import (
    hidden_defaults,
    opened_environment,
    sealed_values,
    without_hidden,
)
from orchestrator.operations.snapshots.restored_template import with_restored_resources
from orchestrator.operations.validation.cloud_services import services_of_workers
from orchestrator.operations.validation.types_of_author import denied_to_author
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import ChildTemplate, NestedType
from orchestrator.security.encryption import Cipher
from orchestrator.store import snapshots
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.repository import CheckConnection
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.traversals import child_reads
from orchestrator.store.traversals.child_reads import InheritedInputs
from orchestrator.store.traversals.children import DesiredChild, child_bytes
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import Format
from orchestrator.template.function_view import ParentResourceProxy
from orchestrator.template.global_environment import global_environment
from orchestrator.template.group_template import MembersDraft, is_members, load_stored, read_stored
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Draft, Template, load

CACHE_SIZE: Final = 128  # entries of each cache
MAX_CACHED_BYTES: Final = 32 * 1024  # of a template's text; a longer text is parsed each time
CONDITIONAL: Final = re.compile(r'"(if|Fn::If|condition|conditions|Condition|Conditions)"')
# Children up to this size skip the count of the tree's resources, unless the tree's limit is low. The root's
# own templates were counted when the root was accepted, and counting the tree once per child is O(n²).
MAX_UNCOUNTED_RESOURCES: Final = 100
LOW_TREE_LIMIT: Final = 10_000


@dataclass(frozen=True, slots=True)
class InheritedContext:
    """The part of a stack that its children inherit."""

    environment: Environment
    files: Mapping[str, str]  # name -> the hash of its text, in hexadecimal
    resolver: TypeResolver
    denied_types: Sequence[str] | None = None  # to the author of the revision; None: not known


@dataclass(frozen=True, slots=True)
class UnconditionalTemplate:
    """A parsed template without conditions: it is the same for any parameter values."""

    form: Format
    parameters: Mapping[str, ParameterSchema]
    template: Template
    stored: bytes  # as JSON
    outline: JsonMapping


class RevisionFiles(Mapping[str, str]):
    """The texts of a revision's files by name, read on demand."""

    def __init__(self, hashes: Mapping[str, str], cache: FileCache) -> None:
        """Take the hashes of the texts."""
        self._hashes, self._cache = hashes, cache

    def __getitem__(self, name: str) -> str:
        """Return a file's text."""
        text = self._cache.get(self._hashes[name])
        if text is None:
            raise KeyError(name)
        return text

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._hashes)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._hashes)


class ChildStackLoader:
    """Loads the stacks above and below nested resources; a process has a single loader."""

    def __init__(
        self,
        database: Database,
        cipher: Cipher,
        types: Mapping[str, ResourceType],
        settings: Settings,
        files: FileCache,
    ) -> None:
        """Start with empty caches."""
        self.database, self.cipher, self.types, self.settings = database, cipher, types, settings
        self.files, self._quotas = files, CachedQuotas(database, settings)
        self._limits = Limits.of_stored(settings)
        self._contexts: BoundedCache[int, InheritedContext] = BoundedCache(CACHE_SIZE)  # by revision
        self._shared: BoundedCache[bytes, InheritedContext] = BoundedCache(CACHE_SIZE)  # by content
        self._roots: BoundedCache[int, str] = BoundedCache(CACHE_SIZE)
        self._templates: BoundedCache[str, Template] = BoundedCache(CACHE_SIZE)  # by hash
        self._unconditional: BoundedCache[str, UnconditionalTemplate] = BoundedCache(CACHE_SIZE)  # by text

    def root_of(self, stack: StackView) -> str:
        """Return the uuid of the tree's root stack."""
        if stack.root_id == stack.id:
            return stack.uuid
        return self._roots.get_or_make(stack.root_id, lambda: stacks.uuid(self.database, stack.root_id))

    def type_of(self, visit: ResourceVisit) -> ResourceType:
        """Return the type of a visited resource, including types made from templates.

        Raises:
            NotFound: the type does not exist.
            InvalidTemplate: an update needs the type, and its template is invalid.
        """
        resource = visit.resource
        installed = self.types.get(resource.resource_type)
        if installed is not None:
            return installed
        body = visit.definition.body if visit.definition else {}
        if "nested" in body:
            definition = ResourceDefinition(resource.name, body["type"], body, frozenset(), {}, frozenset())
            resource_type = self.inherited_context(visit.stack).resolver.of(definition)
            if isinstance(resource_type, NestedType):
                return resource_type
            if isinstance(resource_type, UnknownType) and visit.kind == "update":
                raise InvalidTemplate(list(resource_type.at(f"resources.{resource.name}.type")))
        if "nested" in body or self._has_child(resource.id):
            return MissingType(resource.resource_type)
        raise NotFound("resource type", resource.resource_type)

    def _has_child(self, resource_id: int) -> bool:
        """Whether a resource whose type is not known is a stack. The name of a type does not tell it."""
        with self.database.borrow() as db:
            return child_reads.state(db, resource_id) is not None

    def child_view(
        self, db: CheckConnection, visit: ResourceVisit, child: ChildState | None
    ) -> StoredChildView:
        """Return a view of the child of a visited resource."""
        resolver = self.inherited_context(visit.stack).resolver
        return StoredChildView(
            db,
            self.database,
            self.cipher,
            child,
            resolver,
            visit.stack.id,
            visit.resource.name,
            self._resolver_of,
        )

    def _resolver_of(self, child: ChildState) -> TypeResolver:
        """Return the resolver of a child stack's resources."""
        assert child.revision_id is not None
        return self._context_of(child.id, child.revision_id).resolver

    def inherited_context(self, stack: StackView) -> InheritedContext:
        """Return the context that a stack's desired revision gives to its children."""
        return self._context_of(stack.id, stack.revision_id)

    def _context_of(self, stack_id: int, revision_id: int) -> InheritedContext:
        return self._contexts.get_or_make(revision_id, lambda: self._read_context(stack_id, revision_id))

    def inherited_context_of(self, revision_id: int, inputs: InheritedInputs) -> InheritedContext:
        """Return the same, from the contents of a revision."""
        return self._contexts.get_or_make(revision_id, lambda: self._shared_context(inputs))

    def template(self, hash_: str, values: ParameterValues, max_resources: int) -> Template | None:
        """Return a stored template with these values; None when it has more than `max_resources`.

        A template without conditions is cached: it is the same for any values.

        Raises:
            InvalidTemplate: it is invalid with these values.
        """
        cached = self._templates.get(hash_)
        if cached is not None:
            return cached if len(cached.resources) <= max_resources else None
        text = self.files.get(hash_)
        if text is None:
            return None
        template = load_stored(text, self._limits, values)
        if len(template.resources) > max_resources:
            return None
        if CONDITIONAL.search(text) is None:
            self._templates.put(hash_, template)
        return template

    def desired_child(
        self,
        visit: ResourceVisit,
        child: ChildTemplate,
        *,
        child_uuid: str,
        name: str,
        hides: ResourceState,
        parent: ParentResourceProxy,
        keeps: int | None = None,
    ) -> DesiredChild:
        """Return the desired state of a child. `hides` is the state of its parent's resource, whose secrets
        are hidden in the child as well.

        It keeps the files of its revision `keeps` that the parent's stack does not have.

        Raises:
            InvalidTemplate, LimitExceeded: the child cannot have this template.
        """
        context = self.inherited_context(visit.stack)
        # The text of a thousand identical children is parsed once.
        draft = self._unconditional.get(child.text) or read_stored(child.text, self._limits)
        parameters = pseudo_parameters(child_uuid, name, visit.stack.project_id, draft.form)
        values = child_values(child, draft.parameters, parameters, parent, hides)
        inherited = child.environment
        defined = draft
        if not isinstance(defined, UnconditionalTemplate):
            defined = self._define(child.text, defined, values)
        limit = self._check_limits(visit.stack, context, child_uuid, len(defined.template.resources))
        secret = secret_parameters(defined.template.parameters, values, hides)
        hidden = {name: values[name] for name in values.hidden | secret if name in values}
        masked = {*hidden, *inherited.hidden_defaults}
        made = DesiredChild(
            uuid=child_uuid,
            name=name,
            template=defined.stored,
            files=context.files
            if keeps is None
            else {**revisions.files(self.database, keeps), **context.files},
            environment=without_hidden(inherited, masked),
            parameters=visible_values(values, hidden, parameters),
            sealed=sealed_values(self.cipher, hidden, inherited, masked),
            outline=defined.outline,
            resource_count=len(defined.template.resources),
            timeout_mins=child.timeout_mins,
            denied_types=context.denied_types,
        )
        size = self._stored_bytes(visit.stack.project_id, made)
        return replace(made, limits=[near for near in (limit, size) if near is not None])

    def _stored_bytes(self, project_id: str, child: DesiredChild) -> Limit | None:
        quota = self._quotas.limit(project_id, "stored_bytes")
        return require_room(self.database, STORED_BYTES, project_id, quota, child_bytes(child))

    def restored(self, desired: DesiredChild, snapshot_id: int) -> DesiredChild:
        """Return a child to be restored from a snapshot: resources with a copy are created from it."""
        desired = replace(desired, restores=snapshot_id)
        copies = list(snapshots.copies(self.database, snapshot_id, kept_only=True))
        if not copies or is_members(desired.template):  # group members share a definition without copies
            return desired
        values = stored_values(dict(desired.parameters), desired.sealed, self.cipher, {})
        template = load(desired.template, self._limits, values)
        inputs = InheritedInputs(desired.environment, {}, 0, desired.sealed, desired.denied_types)
        resolver = self._shared_context(inputs).resolver
        document = orjson.loads(desired.template)
        made = with_restored_resources(document, template, resolver, copies, self.types, self.cipher)
        return desired if made is None else replace(desired, template=orjson.dumps(made))

    def _define(
        self, text: str, draft: Draft | MembersDraft, values: ParameterValues
    ) -> UnconditionalTemplate:
        """Return a template with these values; a template without conditions is cached.

        Raises:
            InvalidTemplate: it is invalid with these values.
        """
        template = draft.define(values)
        stored = orjson.dumps(draft.document)
        made = UnconditionalTemplate(draft.form, draft.parameters, template, stored, template.outline())
        is_short = len(text) <= MAX_CACHED_BYTES
        if is_short and not is_members(text) and CONDITIONAL.search(stored.decode()) is None:
            self._unconditional.put(text, made)
        return made

    def _check_limits(
        self, parent: StackView, context: InheritedContext, child_uuid: str, count: int
    ) -> Limit | None:
        """Check the depth of a child and, with its `count` resources, the sizes of project and tree. Return
        the limit of the project that its transaction enforces.

        Raises:
            LimitExceeded: a limit is exceeded.
        """
        quota = self._quotas.limit(parent.project_id, "resources")
        near = require_room(
            self.database, RESOURCES, parent.project_id, quota, count, stack_uuid=child_uuid, reserve=False
        )
        max_depth, limit = self.settings.max_nested_stack_depth, self.settings.max_resources_per_stack
        if context.resolver.depth >= max_depth:
            raise LimitExceeded(f"Recursion depth exceeds {max_depth}.")
        if count <= MAX_UNCOUNTED_RESOURCES and limit > LOW_TREE_LIMIT:
            return near
        with self.database.engine.connect() as connection:
            total = child_reads.count_below(connection, parent.root_id, limit, child_uuid)
        if total + count > limit:
            raise LimitExceeded("Maximum resources per stack exceeded.")
        return near

    def _read_context(self, stack_id: int, revision_id: int) -> InheritedContext:
        with self.database.borrow() as db:
            inputs = child_reads.inherited(db, stack_id, revision_id)
        return self._shared_context(inputs)

    def _shared_context(self, inputs: InheritedInputs) -> InheritedContext:
        """Return a context shared by all stacks whose environments differ only in parameters."""
        sections = {name: section for name, section in inputs.environment.items() if name != "parameters"}
        hidden = hidden_defaults(self.cipher, sections, inputs.sealed)
        identity = [sections, inputs.files, inputs.depth, hidden, inputs.denied_types]
        key = hashlib.sha256(orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)).digest()
        return self._shared.get_or_make(
            key, lambda: self._make_context(opened_environment(sections, hidden), inputs)
        )

    def _make_context(self, environment: Environment, inputs: InheritedInputs) -> InheritedContext:
        settings, files, denied = self.settings, inputs.files, inputs.denied_types
        of_root = TypeEnvironment.of_stack(
            self.types,
            environment,
            RevisionFiles(files, self.files),
            Limits.of_stored(settings),
            globals=global_environment(settings.environment_dir),
        )
        type_environment = replace(
            of_root,
            depth=inputs.depth,
            max_depth=settings.max_nested_stack_depth,
            max_resources=settings.max_resources_per_stack,
            denied=denied_to_author(settings, denied),
            offers=services_of_workers(settings),
        )
        return InheritedContext(environment, files, TypeResolver(type_environment), denied)


class LazyStackContext:
    """The stack of a visited resource, as far as resource types may read it; read on demand."""

    def __init__(self, stacks: ChildStackLoader, visit: ResourceVisit) -> None:
        """Read nothing yet."""
        self._stacks, self._visit = stacks, visit

    def file(self, name: str) -> str | None:
        """Return the text of a file."""
        return self.files().get(name)

    def files(self) -> Mapping[str, str]:
        """Return all files by name; each text is read on demand."""
        return self._stacks.inherited_context(self._visit.stack).resolver.files

    def environment(self, parameters: JsonMapping) -> Environment:
        """Return the environment of a stack nested in the resource."""
        inherited = self._stacks.inherited_context(self._visit.stack).environment
        return inherited.child(self._visit.resource.name, parameters, None)
