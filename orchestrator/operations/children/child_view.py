"""The recorded state of a child stack, as the type of its resource reads it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from orchestrator.engine.check.child_status import ChildState, split_request
from orchestrator.engine.validation.type_resolution import TypeResolver
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.outputs.outputs import resolve_outputs
from orchestrator.operations.resource_context.state import recorded_secrets
from orchestrator.resources.nested_type import AttributePath, Member, MemberConditions, NestedType, Sibling
from orchestrator.resources.verbs.contexts import read_context
from orchestrator.security.encryption import Cipher
from orchestrator.store.connections.database import Database
from orchestrator.store.nodes.repository import CheckConnection
from orchestrator.store.traversals import child_reads
from orchestrator.template.environment import Environment
from orchestrator.template.member_attributes import is_mark
from orchestrator.template.secret_values import NO_SECRETS, SecretValues, both, bounded


class _NestedMember(NamedTuple):
    """A resource of a child stack that is a stack itself."""

    type_name: str  # as written
    runs_as: str | None
    data: JsonMapping
    child: ChildState


class StoredChildView:
    """A child stack, read from the database on demand."""

    def __init__(
        self,
        db: CheckConnection,
        database: Database,
        cipher: Cipher,
        child: ChildState | None,
        resolver: TypeResolver,
        stack_id: int,
        resource_name: str,
        resolver_of: Callable[[ChildState], TypeResolver] | None = None,
    ) -> None:
        """`resolver`, `stack_id` and `resource_name` belong to the parent's stack and resource.
        `resolver_of` returns the resolver of a child stack's resources; without it, attributes of stacks
        nested in the child are not read.
        """
        self._resolver_of = resolver_of
        self._nested: dict[str, _NestedMember] | None = None  # by name
        self._db, self._database, self._cipher, self._resolver = db, database, cipher, resolver
        self._stack_id, self._name = stack_id, resource_name
        self._child = None if child is None or child.gone else child
        self._outputs: JsonObject | None = None
        self._ready_timeouts: Callable[[str], float | None] | None = None  # of the environment, by name
        self.secrets: SecretValues | None = NO_SECRETS  # of the values read so far; None: any may be secret

    @property
    def uuid(self) -> str | None:
        """The child's id."""
        return None if self._child is None else self._child.uuid

    @property
    def arn(self) -> str | None:
        """The child's ARN."""
        child = self._child
        if child is None:
            return None
        return f"arn:openstack:heat::{child.project_id}:stacks/{child.name}/{child.uuid}"

    @property
    def template(self) -> str | None:
        """The text of the child's desired template."""
        if self._child is None or self._child.revision_id is None:
            return None
        return child_reads.template(self._db, self._child.revision_id)

    def sibling(self, id_: str) -> Sibling | None:
        """Return the resource of the parent's stack with this reference id or physical id."""
        for name, properties, metadata, sealed, physical_id in child_reads.siblings(
            self._db, self._stack_id, id_
        ):
            opened = self._opened(sealed)
            values = opened.get("properties", properties) or {}
            return Sibling(name, values, opened.get("metadata", metadata) or {}, physical_id)
        return None

    def members(self) -> Sequence[Member]:
        """Return the child's resources, oldest first."""
        if self._child is None:
            return []
        rows = []
        for name, type_, action, status, id_, reference, at, attributes, sealed, bad in child_reads.members(
            self._db, self._child.id
        ):
            opened = self._opened(sealed)
            values = opened.get("attributes", attributes) or {}
            reference_id = opened.get("reference_id", reference)
            inside = partial(self._attributes_inside, name, values) if self._may_be_nested(type_) else None
            rows.append(Member(name, type_, action, status, id_, reference_id, at, values, bad, inside))
        return rows

    def _may_be_nested(self, type_name: str) -> bool:
        installed = self._resolver.type_environment.types.get(type_name)
        return self._resolver_of is not None and (installed is None or isinstance(installed, NestedType))

    def _attributes_inside(
        self, name: str, recorded: JsonMapping, paths: Collection[AttributePath]
    ) -> JsonMapping:
        """Return attributes of a stack nested in the child, which its own row does not have."""
        keys: dict[str, list[AttributePath]] = {}
        for first, *rest in paths:
            if isinstance(first, str) and (first not in recorded or is_mark(recorded[first])):
                keys.setdefault(first, []).append(tuple(rest))
        nested = self._nested_members().get(name) if keys else None
        if nested is None:
            return {}
        assert self._resolver_of is not None
        assert self._child is not None
        resolver = self._resolver_of(self._child)
        nested_type = resolver.nested_type(name, nested.type_name, nested.runs_as)
        if nested_type is None:
            return {}
        view = StoredChildView(
            self._db,
            self._database,
            self._cipher,
            nested.child,
            resolver,
            self._child.id,
            name,
            self._resolver_of,
        )
        ctx = read_context(name, nested.child.name, "", data=nested.data, attribute_paths=keys)
        found = nested_type.child_attributes(ctx, view, keys)
        self.secrets = both(self.secrets, view.secrets)
        return found

    def _nested_members(self) -> dict[str, _NestedMember]:
        if self._nested is None:
            assert self._child is not None
            self._nested = {}
            for name, type_, runs_as, data, sealed, *state in child_reads.nested_members(
                self._db, self._child.id
            ):
                own = split_request(self._opened(sealed).get("data", data) or {})[1]
                self._nested[name] = _NestedMember(type_, runs_as, own, ChildState(*state))
        return self._nested

    def failed(self) -> Collection[str]:
        """Return the names of the child's failed resources."""
        return () if self._child is None else child_reads.failed(self._db, self._child.id)

    def conditions(self) -> MemberConditions:
        """Return the resources of the child that are not in service."""
        if self._child is None:
            return MemberConditions()
        found: dict[str, list[str]] = {"stuck": [], "failed": [], "uncreated": [], "unready": []}
        for name, condition, seconds, type_ in child_reads.conditions(self._db, self._child.id):
            is_late = seconds is not None and seconds > self._ready_timeout(name, type_)
            found["stuck" if is_late else condition].append(name)
        return MemberConditions(**found, total=child_reads.count(self._db, self._child.id))

    def _ready_timeout(self, name: str, type_name: str) -> float:
        """Return within how many seconds a resource of the child must become ready."""
        if self._ready_timeouts is None:
            self._ready_timeouts = self._resolver.environment.registry().child(self._name, None).ready_timeout
        resource_type = self._resolver.type_environment.types.get(type_name)
        of_type = None if resource_type is None else resource_type.ready_timeout_seconds
        limits = (self._ready_timeouts(name), of_type)
        return next((limit for limit in limits if limit is not None), math.inf)

    def names(self) -> Collection[str]:
        """Return the names of the child's resources."""
        return () if self._child is None else child_reads.names(self._db, self._child.id)

    def outputs(self) -> JsonMapping:
        """Return the values of the child's outputs."""
        if self._outputs is None:
            self._outputs = {}
            if self._child is not None:
                for output in resolve_outputs(self._database, self._cipher, self._child):
                    self._outputs[output.key] = output.value
                    if output.secret:
                        self.secrets = both(self.secrets, bounded(SecretValues.within(output.value)))
        return self._outputs

    def file(self, name: str) -> str | None:
        """Return a file of the parent's stack."""
        return self._resolver.files.get(name)

    def environment(self, parameters: JsonMapping) -> Environment:
        """Return the child's environment: the inherited environment with these parameters."""
        return self._resolver.environment.child(self._name, parameters, None)

    def _opened(self, sealed: str | None) -> JsonMapping:
        opened: JsonMapping = self._cipher.open(sealed.encode()) if sealed else {}
        if opened:
            self.secrets = both(self.secrets, recorded_secrets(opened))
        return opened
