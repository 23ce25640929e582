"""Rules about the properties of a resource that the schema cannot express, as declarations of a type.

Some are rules about values, which are checked as soon as these are known. Others are rules about what the
template writes, whichever value it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from orchestrator.resources.base import Fault, ResourceType, Value
from orchestrator.resources.openstack.written_values import conflict, is_unset, unspecified
from orchestrator.template.definition import ResourceDefinition

Definitions = Mapping[str, ResourceDefinition]
Properties = Mapping[str, Value]


class PropertyRule:
    """A rule; it has no faults by default."""

    def of_values(self, properties: Properties) -> Iterator[Fault]:
        """Yield the faults of the values that are known."""
        return iter(())

    def of_template(self, name: str, properties: Properties, resources: Definitions) -> Iterator[Fault]:
        """Yield the faults of the resource `name` as its template writes it."""
        return iter(())


@dataclass(frozen=True, slots=True)
class Exclusive(PropertyRule):
    """Only one of the two properties may be set; `shown` is how Heat names them."""

    first: str
    second: str
    shown: tuple[str, ...] = ()

    def of_values(self, properties: Properties) -> Iterator[Fault]:
        """Yield a fault if both are set."""
        if properties.get(self.first) and properties.get(self.second):
            yield conflict(*(self.shown or (self.first, self.second)))


@dataclass(frozen=True, slots=True)
class AtLeastOne(PropertyRule):
    """One of the properties must be written; `former` are further names of them."""

    names: tuple[str, ...]
    former: tuple[str, ...] = ()

    def of_template(self, name: str, properties: Properties, resources: Definitions) -> Iterator[Fault]:
        """Yield a fault if none is."""
        yield from unspecified(name, resources, self.names, *self.former)


@dataclass(frozen=True, slots=True)
class Refused(PropertyRule):
    """Values that do not fit each other: a condition, and the message with values in braces."""

    message: str
    when: Callable[[Properties], object]
    property: str = ""  # with the path of this property
    alone: bool = True  # without a path
    only_written: bool = False  # checked in templates only

    def of_values(self, properties: Properties) -> Iterator[Fault]:
        """Yield a fault if the condition holds."""
        if not self.only_written:
            yield from self._faults(properties)

    def of_template(self, name: str, properties: Properties, resources: Definitions) -> Iterator[Fault]:
        """Yield a fault if the condition holds."""
        if self.only_written:
            yield from self._faults(properties)

    def _faults(self, properties: Properties) -> Iterator[Fault]:
        if self.when(properties):
            yield Fault(self.message.format_map(properties), self.property, alone=self.alone)


@dataclass(frozen=True, slots=True)
class Required(PropertyRule):
    """A property that must be written under a condition."""

    name: str
    message: str
    when: Callable[[Properties], object]

    def of_template(self, name: str, properties: Properties, resources: Definitions) -> Iterator[Fault]:
        """Yield a fault if the condition holds and the property is not written."""
        if self.when(properties) and is_unset(resources.get(name), self.name):
            yield Fault(self.message.format_map(properties), alone=True)


class RuledType(ResourceType):
    """A type with declared rules."""

    rules: ClassVar[tuple[PropertyRule, ...]] = ()

    def validate(self, properties: Properties, stack_timeout_seconds: float) -> Sequence[Fault]:
        """Return the faults of the values that are known."""
        return [fault for rule in self.rules for fault in rule.of_values(properties)]

    def validate_among(self, name: str, properties: Properties, resources: Definitions) -> Sequence[Fault]:
        """Return the faults of the resource as its template writes it."""
        return [fault for rule in self.rules for fault in rule.of_template(name, properties, resources)]


def among(name: str, values: Sequence[str]) -> Callable[[Properties], bool]:
    """Return the condition that a property has one of the values."""
    return lambda properties: properties.get(name) in values
