"""Sample resources for the contract.

Most types need no additional data: required properties, and changed values for each, are generated from the
schema. A `Sample` holds the data that cannot be generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Change, Context, Property, ResourceType
from orchestrator.schema.constraints import AllowedValues, Length, Range
from orchestrator.schema.properties import convert

MAX_GUESSES: Final = 50  # per property
TEXTS: Final = ("text", "other", "1", "true", "2030-01-01T00:00:00Z", "10.0.0.1", "10.0.0.0/8", "a.example.")

Intercept = Callable[[Callable[[], Any]], Any]  # makes a call and returns its result, or raises an error


def _nothing(operated: object) -> None: ...


def _as_it_is(ctx: Context) -> Context:
    return ctx


@dataclass(frozen=True)
class Sample:
    """A resource of a type, with the data that the contract cannot derive."""

    type: str
    properties: JsonMapping = field(default_factory=dict)  # absent required properties are generated
    changes: JsonMapping = field(default_factory=dict)  # by property: a changed value
    # by property: the effect of a change, if it differs from the declaration
    answers: Mapping[str, Change] = field(default_factory=dict)
    fixtures: tuple[str, ...] = ()  # pytest fixtures that must run first
    # receives the `Operated` and performs the external action that makes it ready
    finish: Callable[[Any], None] = _nothing
    prepare_context: Callable[[Context], Context] = (
        _as_it_is  # adds the data that the type expects to the context
    )
    optional: frozenset[str] = frozenset()  # attributes that are not always present
    failing_changes: frozenset[str] = frozenset()  # properties whose changed value makes the object fail

    slow_changes: frozenset[str] = frozenset()  # properties not to change: the test would wait too long

    files: Mapping[str, str] = field(default_factory=dict)  # of the stack
    environment: JsonMapping = field(default_factory=dict)  # of the stack

    # For tests in a stack, where the resource's name is "it".
    other_resources: JsonMapping = field(default_factory=dict)  # further resources of the template
    # properties with different values there: references
    in_stack: JsonMapping = field(default_factory=dict)
    signals: tuple[tuple[str, Any], ...] = ()  # resource and details: sent during the create

    # the provider cannot be reached while the context is entered
    outage: Callable[[], AbstractContextManager[object]] | None = None
    # every call of the provider goes through the given function while the context is entered
    intercept: Callable[[Intercept], AbstractContextManager[object]] | None = None

    # Times of the provider.
    call_seconds: float = 2.0  # longest duration of a verb
    deadline_seconds: float = 5.0  # of a call
    patience_seconds: float = 10.0  # longest duration of an operation; for local types the clock is simulated
    pause_seconds: float = 0.05  # longest pause between two observations


def full_properties(kind: ResourceType, given: JsonMapping) -> JsonObject:
    """Return `given` completed with the required properties."""
    made = {
        name: next(iter(guesses(prop)))
        for name, prop in kind.properties.items()
        if prop.required and name not in given
    }
    return {**made, **given}


def other_value(kind: ResourceType, sample: Sample, name: str) -> Any:
    """Return a changed value for a property.

    Raises:
        LookupError: none could be generated; the sample must specify one.
    """
    if name in sample.changes:
        return sample.changes[name]
    given = full_properties(kind, sample.properties)
    before, _ = kind.read_properties(given)
    for value in islice(guesses(kind.properties[name]), MAX_GUESSES):
        after, faults = kind.read_properties({**given, name: value})
        if not faults and after.get(name) != before.get(name) and not kind.validate(after, 3600.0):
            return value
    raise LookupError(f'no other value of {kind.name}\'s "{name}" could be generated: put one into `changes`')


def is_changed_in_place(kind: ResourceType, sample: Sample, name: str) -> bool:
    """Whether the tests may change a property, and its change is an update in place that succeeds."""
    prop = kind.properties[name]
    changes = prop.update_allowed and prop.implemented
    excluded = sample.slow_changes | sample.failing_changes
    return changes and name not in excluded and sample.answers.get(name, "update") == "update"


def guesses(prop: Property) -> Iterator[Any]:
    """Yield values that satisfy the property's own schema."""
    for value in _made_up(prop):
        _, faults = convert({"it": prop}, {"it": value})
        if not faults:
            yield value


def _made_up(prop: Property) -> Iterator[Any]:
    low = high = None
    for constraint in prop.constraints:
        if isinstance(constraint, AllowedValues):
            yield from ([value] for value in constraint.values) if prop.type == "list" else constraint.values
        elif isinstance(constraint, Range | Length):
            low, high = constraint.min, constraint.max
    match prop.type:
        case "boolean":
            yield from (True, False)
        case "integer" | "number":
            start = int(low if low is not None else (high or 2) - 1)
            yield from range(start, start + 20)
        case "list":
            yield from _lists(prop)
        case "map":
            yield from _maps(prop)
        case _:
            yield from TEXTS
            yield from (letter * int(low or high or 3) for letter in "abc")


def _lists(prop: Property) -> Iterator[list[Any]]:
    items = guesses(prop.schema) if isinstance(prop.schema, Property) else iter(TEXTS)
    several = list(islice(items, 3))
    yield from (several[:count] for count in range(1, len(several) + 1))
    yield []


def _maps(prop: Property) -> Iterator[JsonObject]:
    if not isinstance(prop.schema, Mapping):
        yield from ({"key": text} for text in TEXTS)
        yield {}
        return
    required = {name: member for name, member in prop.schema.items() if member.required}
    least = {name: next(guesses(member), None) for name, member in required.items()}
    for name, member in prop.schema.items():
        yield from ({**least, name: value} for value in islice(guesses(member), 3))
    yield least
