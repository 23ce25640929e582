"""How one resource of a type is made for its contract.

Most types need nothing said: required properties, and other values for each, are made up from the schema.
A `Sample` says what cannot be guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from orchestrator.deprecation import renamed_fields
from orchestrator.resources.base import Change, Context, Property, ResourceType
from orchestrator.schema.constraints import AllowedValues, Length, Range
from orchestrator.schema.properties import convert

MOST_GUESSES: Final = 50  # of one property's value
TEXTS: Final = ("text", "other", "1", "true", "2030-01-01T00:00:00Z", "10.0.0.1", "10.0.0.0/8", "a.example.")


def _nothing(operated: Any) -> None: ...


def _as_it_is(ctx: Context) -> Context:
    return ctx


@renamed_fields(beside="other_resources")
@dataclass(frozen=True)
class Sample:
    """One resource of a type, and what the suite cannot know of it."""

    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)  # required ones left out are made up
    changes: Mapping[str, Any] = field(default_factory=dict)  # by property: another value that it may have
    answers: Mapping[str, Change] = field(default_factory=dict)  # by property: what a change of it takes,
    # where the type decides otherwise than it declares
    fixtures: tuple[str, ...] = ()  # pytest fixtures that must run first
    finish: Callable[[Any], None] = _nothing  # given the `Operated`, does what has to come from outside
    dress: Callable[[Context], Context] = _as_it_is  # gives the context what the type expects of it
    optional: frozenset[str] = frozenset()  # attributes that there are not always
    breaks: frozenset[str] = frozenset()  # properties whose other value is to make the thing fail

    left_out: frozenset[str] = frozenset()  # properties that no test should change: it would wait too long

    files: Mapping[str, str] = field(default_factory=dict)  # of the stack around it
    environment: Mapping[str, Any] = field(default_factory=dict)  # of the same

    # In a stack, where it is called "it".
    other_resources: Mapping[str, Any] = field(default_factory=dict)  # other resources of the template
    in_stack: Mapping[str, Any] = field(default_factory=dict)  # properties that are others there: references
    signals: tuple[tuple[str, Any], ...] = ()  # resource and details: sent while it is being made


def full_properties(kind: ResourceType, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `given` with what is required besides."""
    made = {
        name: next(iter(guesses(prop)))
        for name, prop in kind.properties.items()
        if prop.required and name not in given
    }
    return {**made, **given}


def other_value(kind: ResourceType, sample: Sample, name: str) -> Any:
    """Return another value for a property.

    Raises:
        LookupError: none could be made up; the sample has to say one.
    """
    if name in sample.changes:
        return sample.changes[name]
    given = full_properties(kind, sample.properties)
    before, _ = kind.read_properties(given)
    for value in islice(guesses(kind.properties[name]), MOST_GUESSES):
        after, faults = kind.read_properties({**given, name: value})
        if not faults and after.get(name) != before.get(name) and not kind.validate(after, 3600.0):
            return value
    raise LookupError(f'no other value of {kind.name}\'s "{name}" could be made up: put one into `changes`')


def guesses(prop: Property) -> Iterator[Any]:
    """Yield values that a property may have, as far as its own schema says."""
    for value in _made_up(prop):
        _, faults = convert({"it": prop}, {"it": value})
        if not faults:
            yield value


def _made_up(prop: Property) -> Iterator[Any]:
    low = high = None
    for constraint in prop.constraints:
        if isinstance(constraint, AllowedValues):
            yield from ([one] for one in constraint.values) if prop.type == "list" else constraint.values
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


def _maps(prop: Property) -> Iterator[dict[str, Any]]:
    if not isinstance(prop.schema, Mapping):
        yield from ({"key": text} for text in TEXTS)
        yield {}
        return
    required = {name: one for name, one in prop.schema.items() if one.required}
    least = {name: next(guesses(one), None) for name, one in required.items()}
    for name, one in prop.schema.items():
        yield from ({**least, name: value} for value in islice(guesses(one), 3))
    yield least
