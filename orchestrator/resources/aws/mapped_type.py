"""Types whose resources belong to an OpenStack type, with the property names of CloudFormation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Observation, ResourceType, Value
from orchestrator.resources.capabilities import derived


class MappedType(ResourceType):
    """A type that translates its properties and calls the verbs of another type."""

    live_show = True
    target_type: ClassVar[type[ResourceType]]
    lists: ClassVar[str] = derived(lambda type_: type_.target_type.lists)
    delete_stalled_seconds: ClassVar[float] = derived(lambda type_: type_.target_type.delete_stalled_seconds)
    # By property: the properties of the target that change with it.
    changes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @cached_property
    def target(self) -> ResourceType:
        """The type that does the work."""
        return self.target_type()

    def mapped(self, props: Mapping[str, Value]) -> JsonObject:
        """Return properties of the target, as a template has them. `props` may be incomplete in a delete."""
        raise NotImplementedError(self.name)

    def observed_properties(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return actual properties; `actual` belong to the target."""
        return {}

    def attribute_values(self, ctx: Context, physical_id: str, observation: Observation) -> JsonObject:
        """Return the attributes; `observation` is the target's."""
        return {}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Request the object."""
        mapped, values = self._checked(ctx, props)
        created = self.target.create(mapped, values)
        seen = created.observation
        if seen is None:
            return created
        if seen.ready:
            return replace(created, observation=None)  # it has the target's attributes
        own = self.attribute_values(ctx, created.physical_id, seen)
        return replace(created, observation=replace(seen, attributes=own))

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the objects with the token."""
        return self.target.find(self.context(ctx), token)

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Read the object."""
        observation = self.target.observe(self.context(ctx), physical_id)
        if not observation.exists:
            return observation
        attributes = {} if ctx.action == "DELETE" else self.attribute_values(ctx, physical_id, observation)
        actual = self.observed_properties(ctx, observation.properties or {})
        return replace(observation, attributes=attributes, properties=actual)

    def list_objects(self, ctx: Context) -> Iterable[tuple[str, Value]]:
        """Yield the objects of the target."""
        return self.target.list_objects(ctx)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Carry out a step of the target."""
        ctx, values = self._checked(ctx, props)
        return self.target.advance(ctx, physical_id, values, step)

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], changed: frozenset[str]
    ) -> Created:
        """Request an update in place."""
        ctx, values = self._checked(ctx, props)
        names = frozenset(name for one in changed for name in self.changes.get(one, ()))
        return self.target.update(ctx, physical_id, values, names)

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Request the deletion."""
        return self.target.delete(self.context(ctx), physical_id)

    def read_attributes(self, ctx: Context, physical_id: str, names: frozenset[str]) -> Mapping[str, Value]:
        """Return the target's `show`."""
        return self.target.read_attributes(self.context(ctx), physical_id, names & {"show"})

    def context(self, ctx: Context) -> Context:
        """Return the context of a verb of the target."""
        values, _ = self.target.read_properties(self.mapped(ctx.properties))
        return replace(ctx, properties=values)

    def _checked(self, ctx: Context, props: Mapping[str, Value]) -> tuple[Context, JsonObject]:
        """Return context and properties of the target.

        Raises:
            ProviderError: the properties violate a rule of the target.
        """
        values, faults = self.target.read_properties(self.mapped(props))
        if faults:
            raise ProviderError(faults[0].message, "StackValidationFailed")
        return replace(ctx, properties=values), values
