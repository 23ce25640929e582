"""What child stacks are made from, and how they are now: what a visit to a nested resource reads.

What is read of revisions and texts is kept for a while, for neither ever changes.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import orjson

from orchestrator.config import Settings
from orchestrator.deprecation import renamed_attributes
from orchestrator.engine.check.child_status import ChildState
from orchestrator.engine.check.visit import StackView, Visit
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver, UnknownType
from orchestrator.errors import InvalidTemplate, LimitExceeded, NotFound
from orchestrator.operations.outputs.outputs import resolve_outputs
from orchestrator.operations.runtime.file_cache import FileCache
from orchestrator.operations.runtime.parameter_cache import pseudo_parameters, stored_values
from orchestrator.operations.snapshots.restored_template import with_restored_resources
from orchestrator.resources.base import ResourceType
from orchestrator.resources.nested_type import ChildTemplate, Member, NestedType, Sibling
from orchestrator.security.encryption import Cipher
from orchestrator.store import snapshots
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.repository import CheckConnection
from orchestrator.store.stacks import revisions, stacks
from orchestrator.store.traversals import child_reads
from orchestrator.store.traversals.children import ChildWanted
from orchestrator.template.definition import ResourceDefinition
from orchestrator.template.environment import Environment
from orchestrator.template.formats import Format
from orchestrator.template.function_view import ParentResourceProxy
from orchestrator.template.global_environment import global_environment
from orchestrator.template.group_template import MembersDraft, is_members, load_stored, read_stored
from orchestrator.template.parameters import ParameterSchema, ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import Draft, Template, load

Key = TypeVar("Key")
Value = TypeVar("Value")

CACHE_SIZE: Final = 128  # revisions, texts and roots a process keeps
CONDITIONAL: Final = re.compile(r'"(if|Fn::If|condition|conditions|Condition|Conditions)"')
# Resources of a child up to which the tree's are not counted, unless a tree may have but few: what is known
# when the root is accepted was counted then, and counting for each of many children would take its square.
MOST_PLAIN: Final = 100
FEW: Final = 10_000
SHORT: Final = 32 * 1024  # bytes of a text up to which a process keeps what it made of it


@dataclass(frozen=True, slots=True)
class InheritedContext:
    """What a nested resource's stack says about its children."""

    environment: Environment
    files: Mapping[str, str]  # name -> the hash of its text, in hexadecimal
    kinds: TypeResolver


@dataclass(frozen=True, slots=True)
class UnconditionalTemplate:
    """What a text is read as, where that is the same whatever the values: it has no conditions."""

    form: Format
    parameters: Mapping[str, ParameterSchema]
    template: Template
    stored: bytes  # as JSON
    outline: Mapping[str, Any]


class RevisionFiles(Mapping[str, str]):
    """The files of a revision, read when asked for."""

    def __init__(self, hashes: Mapping[str, str], cache: FileCache) -> None:
        """Take their hashes."""
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
        """Return how many there are."""
        return len(self._hashes)


class ChildStackLoader:
    """What this process knows of the stacks around nested resources."""

    def __init__(
        self,
        database: Database,
        cipher: Cipher,
        types: Mapping[str, ResourceType],
        settings: Settings,
        files: FileCache,
    ) -> None:
        """Keep what is the same for all of them."""
        self.database, self.cipher, self.types, self.settings = database, cipher, types, settings
        self.files = files
        self._around: OrderedDict[int, InheritedContext] = OrderedDict()
        self._shared: OrderedDict[bytes, InheritedContext] = OrderedDict()
        self._roots: OrderedDict[int, str] = OrderedDict()
        self._templates: OrderedDict[str, Template | None] = OrderedDict()
        self._plain: OrderedDict[str, UnconditionalTemplate] = OrderedDict()
        self._lock = threading.Lock()

    def root_of(self, stack: StackView) -> str:
        """Return the uuid of the stack at the top of the tree."""
        if stack.root_id == stack.id:
            return stack.uuid
        return self._kept(self._roots, stack.root_id, lambda: self._uuid(stack.root_id))

    def type_of(self, visit: Visit) -> ResourceType:
        """Return the type of a visited resource, one made from a template too.

        Raises:
            NotFound: there is none of that name.
        """
        resource = visit.resource
        assert resource is not None
        kind = self.types.get(resource.kind)
        if kind is not None:
            return kind
        body = visit.definition.body if visit.definition else {}
        if "nested" in body:
            definition = ResourceDefinition(resource.name, body["type"], body, frozenset(), {}, frozenset())
            found = self.inherited_context(visit.stack).kinds.of(definition)
            if isinstance(found, NestedType):
                return found
            if isinstance(found, UnknownType) and visit.kind == "update":
                raise InvalidTemplate(found.faults)
        if "nested" in body or resource.runs_as is not None or "/" in resource.type:
            return MissingType(resource.kind)
        raise NotFound("resource type", resource.kind)

    def child_view(self, db: CheckConnection, visit: Visit, child: ChildState | None) -> StoredChildView:
        """Return the child of a visited resource."""
        assert visit.resource is not None
        kinds = self.inherited_context(visit.stack).kinds
        return StoredChildView(db, self, child, kinds, visit.stack.id, visit.resource.name)

    def inherited_context(self, stack: StackView) -> InheritedContext:
        """Return what a stack, as it is wanted now, says about its children."""
        return self._kept(self._around, stack.revision_id, lambda: self._around_of(stack))

    def inherited_context_of(
        self, revision_id: int, environment: Mapping[str, Any], files: Mapping[str, str], depth: int
    ) -> InheritedContext:
        """Return the same from what was read of a revision."""
        return self._kept(self._around, revision_id, lambda: self._shared_by(environment, files, depth))

    def template(self, hash_: str, values: ParameterValues, most: int) -> Template | None:
        """Return a stored template with these values; None when it has more resources than `most`.

        One that has no conditions is the same whatever the values.

        Raises:
            InvalidTemplate: with these values it is wrong.
        """
        found = self._templates.get(hash_)
        if found is not None:
            return found if len(found.resources) <= most else None
        text = self.files.get(hash_)
        if text is None:
            return None
        template = load_stored(text, Limits.of(self.settings), values)
        if len(template.resources) > most:
            return None
        if CONDITIONAL.search(text) is None:
            self._kept(self._templates, hash_, lambda: template)
        return template

    def desired_child(
        self,
        visit: Visit,
        child: ChildTemplate,
        *,
        child_uuid: str,
        name: str,
        secret: bool,
        parent: ParentResourceProxy,
        keeps: int | None = None,
    ) -> tuple[ChildWanted, bool]:
        """Return a child as it is to be written down, and whether anything in it is secret.

        It keeps the files of its revision `keeps` that the stack around it has not.

        Raises:
            InvalidTemplate, LimitExceeded: it cannot be.
        """
        settings, limits = self.settings, Limits.of(self.settings)
        around = self.inherited_context(visit.stack)
        environment = child.environment
        found = self._plain.get(child.text)  # of a thousand children alike, the text is read once
        draft = found or read_stored(child.text, limits)
        given = pseudo_parameters(child_uuid, name, visit.stack.project_id, draft.form)
        values = ParameterValues.build(
            draft.parameters,
            environment.parameters,
            environment.parameter_defaults,
            given,
            parent=parent,
        )
        plain = (
            draft if isinstance(draft, UnconditionalTemplate) else self._defined(child.text, draft, values)
        )
        template = plain.template
        count = len(template.resources)
        if around.kinds.depth >= settings.max_nested_stack_depth:
            raise LimitExceeded(f"Recursion depth exceeds {settings.max_nested_stack_depth}.")
        if count > MOST_PLAIN or settings.max_resources_per_stack <= FEW:
            self._refuse_too_many(visit.stack.root_id, child_uuid, count)
        own = values.hidden if not secret else values.hidden | frozenset(template.parameters)
        hidden = {one: values[one] for one in own if one in values}
        shown = {one: None if one in hidden else v for one, v in values.items() if one not in given}
        kept = environment.to_json()
        for section in ("parameters", "parameter_defaults"):
            kept[section] = {one: None if one in hidden else value for one, value in kept[section].items()}
        wanted = ChildWanted(
            uuid=child_uuid,
            name=name,
            template=plain.stored,
            files=around.files if keeps is None else {**self._files_of(keeps), **around.files},
            environment=kept,
            parameters=shown,
            sealed=self.cipher.seal(hidden) if hidden else None,
            outline=plain.outline,
            timeout_mins=child.timeout_mins,
        )
        return wanted, bool(hidden)

    def _defined(
        self, text: str, draft: Draft | MembersDraft, values: ParameterValues
    ) -> UnconditionalTemplate:
        """Return a template with these values, kept when it is the same with others.

        Raises:
            InvalidTemplate: with these values it is wrong.
        """
        template = draft.define(values)
        stored = orjson.dumps(draft.document)
        made = UnconditionalTemplate(draft.form, draft.parameters, template, stored, template.outline())
        if len(text) <= SHORT and not is_members(text) and CONDITIONAL.search(stored.decode()) is None:
            return self._kept(self._plain, text, lambda: made)
        return made

    def restored(self, wanted: ChildWanted, snapshot_id: int) -> ChildWanted:
        """Return a child that is brought back to a snapshot: what that copied is made from the copies."""
        wanted = replace(wanted, restores=snapshot_id)
        copies = list(snapshots.copies(self.database, snapshot_id, kept_only=True))
        if not copies or is_members(wanted.template):  # members are made alike, from no copies of their own
            return wanted
        values = stored_values(dict(wanted.parameters), wanted.sealed, self.cipher, {})
        template = load(wanted.template, Limits.of(self.settings), values)
        own = {section: value for section, value in wanted.environment.items() if section != "parameters"}
        kinds = self._shared_by(own, {}, 0).kinds
        document = orjson.loads(wanted.template)
        made = with_restored_resources(document, template, kinds, copies, self.types, self.cipher)
        return wanted if made is None else replace(wanted, template=orjson.dumps(made))

    def _refuse_too_many(self, root_id: int, child_uuid: str, count: int) -> None:
        """Refuse a child of so many resources with which the tree would have more than it may.

        Raises:
            LimitExceeded: it would.
        """
        most = self.settings.max_resources_per_stack
        with self.database.engine.connect() as connection:
            found = child_reads.count_below(connection, root_id, most, child_uuid)
        if found + count > most:
            raise LimitExceeded("Maximum resources per stack exceeded.")

    def _files_of(self, revision_id: int) -> Mapping[str, str]:
        return revisions.files(self.database, revision_id)

    def _around_of(self, stack: StackView) -> InheritedContext:
        with self.database.borrow() as db:
            environment, files, depth = child_reads.around(db, stack.id, stack.revision_id)
        return self._shared_by(environment, files, depth)

    def _shared_by(
        self, environment: Mapping[str, Any], files: Mapping[str, str], depth: int
    ) -> InheritedContext:
        """Return what stacks have in common whose environments differ in parameters only."""
        own = {section: value for section, value in environment.items() if section != "parameters"}
        key = hashlib.sha256(orjson.dumps([own, files, depth], option=orjson.OPT_SORT_KEYS)).digest()
        return self._kept(self._shared, key, lambda: self._made(own, files, depth))

    def _made(self, own: Mapping[str, Any], files: Mapping[str, str], depth: int) -> InheritedContext:
        environment, settings = Environment.parse({"parameters": {}, **own}), self.settings
        of_root = TypeEnvironment.of_stack(
            self.types,
            environment,
            RevisionFiles(files, self.files),
            Limits.of(settings),
            globals=global_environment(settings.environment_dir),
        )
        type_environment = replace(
            of_root,
            depth=depth,
            max_depth=settings.max_nested_stack_depth,
            max_resources=settings.max_resources_per_stack,
        )
        return InheritedContext(environment, files, TypeResolver(type_environment))

    def _uuid(self, stack_id: int) -> str:
        return stacks.uuid(self.database, stack_id)

    def _kept(self, held: OrderedDict[Key, Value], key: Key, make: Callable[[], Value]) -> Value:
        with self._lock:
            found = held.get(key)
        if found is None:
            found = make()
            with self._lock:
                held[key] = found
                if len(held) > CACHE_SIZE:
                    held.popitem(last=False)
        return found


class LazyStackContext:
    """The stack around a visited resource, as a type may know it."""

    def __init__(self, stacks: ChildStackLoader, visit: Visit) -> None:
        """Read nothing yet."""
        self._stacks, self._visit = stacks, visit

    def file(self, name: str) -> str | None:
        """Return one of its files."""
        return self.files().get(name)

    def files(self) -> Mapping[str, str]:
        """Return all of them, each read when asked for."""
        return self._stacks.inherited_context(self._visit.stack).kinds.files

    def environment(self, parameters: Mapping[str, Any]) -> Environment:
        """Return the environment of a stack nested in the resource."""
        assert self._visit.resource is not None
        around = self._stacks.inherited_context(self._visit.stack).environment
        return around.child(self._visit.resource.name, parameters, None)


class MissingType(NestedType):
    """Stands for a template that is not known any more: what was made from it can still be removed."""

    def __init__(self, name: str) -> None:
        """Take the name that it had."""
        self.name = name  # type: ignore[misc]


@renamed_attributes(beside="sibling")
class StoredChildView:
    """A child stack as it is now, read when asked for."""

    def __init__(
        self,
        db: CheckConnection,
        stacks: ChildStackLoader,
        child: ChildState | None,
        around: TypeResolver,
        stack_id: int,
        resource_name: str,
    ) -> None:
        """Take what is known of it, and of its resource: that one's stack, with its kinds, and its name."""
        self._db, self._stacks, self._around = db, stacks, around
        self._stack_id, self._name = stack_id, resource_name
        self._child = None if child is None or child.gone else child
        self._outputs: dict[str, Any] | None = None
        self.used_secret = False

    @property
    def uuid(self) -> str | None:
        """Its id."""
        return None if self._child is None else self._child.uuid

    @property
    def arn(self) -> str | None:
        """How it is called where an ARN is wanted."""
        child = self._child
        if child is None:
            return None
        return f"arn:openstack:heat::{child.project_id}:stacks/{child.name}/{child.uuid}"

    @property
    def template(self) -> str | None:
        """The text that it was last asked to be."""
        if self._child is None or self._child.revision_id is None:
            return None
        return child_reads.template(self._db, self._child.revision_id)

    def sibling(self, id_: str) -> Sibling | None:
        """Return the resource of the stack around it with this reference or physical id."""
        for name, properties, metadata, sealed in child_reads.beside(self._db, self._stack_id, id_):
            opened: Mapping[str, Any] = self._stacks.cipher.open(sealed.encode()) if sealed else {}
            self.used_secret = self.used_secret or bool(opened)
            return Sibling(
                name, opened.get("properties", properties) or {}, opened.get("metadata", metadata) or {}
            )
        return None

    def members(self) -> Sequence[Member]:
        """Return its resources, oldest first."""
        if self._child is None:
            return []
        found = []
        for name, type_, action, status, id_, reference, at, attributes, sealed, bad in child_reads.members(
            self._db, self._child.id
        ):
            opened: Mapping[str, Any] = self._stacks.cipher.open(sealed.encode()) if sealed else {}
            self.used_secret = self.used_secret or bool(opened)
            values = opened.get("attributes", attributes) or {}
            reference_id = opened.get("reference_id", reference)
            found.append(Member(name, type_, action, status, id_, reference_id, at, values, bad))
        return found

    def failed(self) -> Collection[str]:
        """Return the names of its broken resources."""
        return () if self._child is None else child_reads.failed(self._db, self._child.id)

    def outputs(self) -> Mapping[str, Any]:
        """Return the values of its outputs."""
        if self._outputs is None:
            self._outputs = {}
            if self._child is not None:
                for output in resolve_outputs(self._stacks.database, self._stacks.cipher, self._child):
                    self._outputs[output.key] = output.value
                    self.used_secret = self.used_secret or output.secret
        return self._outputs

    def file(self, name: str) -> str | None:
        """Return a file of the stack around it."""
        return self._around.files.get(name)

    def environment(self, parameters: Mapping[str, Any]) -> Environment:
        """Return the environment that it has: what it inherits, and these parameters."""
        return self._around.environment.child(self._name, parameters, None)
