"""OS::Heat::RandomString: a secret that is generated once (docs/internals/resource-types.md §A2)."""

from __future__ import annotations

import secrets
import string
from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.resources.base import (
    Attribute,
    Context,
    Created,
    Fault,
    Observation,
    Property,
    ResourceType,
    Value,
)
from orchestrator.schema.constraints import AllowedValues, Length, Range
from orchestrator.schema.translation import Add, Delete

CLASSES: Final[Mapping[str, str]] = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}
_MINIMUM: Final = Property(
    "integer",
    "The minimum number of characters from the class or sequence.",
    default=1,
    constraints=(Range(1, 512),),
)


class RandomString(ResourceType):
    """A random string, generated once and kept."""

    name = "OS::Heat::RandomString"
    calls_out = False
    support_version = "2014.1"
    properties = {
        "length": Property("integer", "Length of the string.", default=32, constraints=(Range(1, 512),)),
        "character_classes": Property(
            "list",
            "Character classes to draw from, with the minimum number from each.",
            default=[{"class": "lettersdigits", "min": 1}],
            schema=Property(
                "map",
                schema={
                    "class": Property(
                        "string",
                        "Name of the class.",
                        default="lettersdigits",
                        constraints=(AllowedValues(tuple(CLASSES)),),
                    ),
                    "min": _MINIMUM,
                },
            ),
        ),
        "character_sequences": Property(
            "list",
            "Character sequences to draw from, with the minimum number from each.",
            schema=Property(
                "map",
                schema={
                    "sequence": Property(
                        "string", "Characters to draw from.", required=True, constraints=(Length(min=1),)
                    ),
                    "min": _MINIMUM,
                },
            ),
        ),
        "salt": Property("string", "Any text; a different text generates a new string."),
        "sequence": Property(
            "string",
            "The only class to draw from.",
            hidden=True,
            constraints=(AllowedValues(tuple(CLASSES)),),
        ),
    }
    translation = (  # the old name for a class
        Add(("character_classes",), source=("sequence",), make=lambda name: {"class": name, "min": 1}),
        Delete(("sequence",)),
    )
    attributes = {"value": Attribute("The random string, also the reference id.", type="string", secret=True)}

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """The minima must fit into the length, and there must be characters to draw from."""
        if not {"length", "character_classes"} <= properties.keys():
            return ()  # the value is unknown
        pools = _pools(properties)
        if not pools:
            return (Fault("There are no characters to draw from.", "character_classes"),)
        if sum(minimum for _, minimum in pools) > properties["length"]:
            return (
                Fault(
                    "Length property cannot be smaller than combined character class and "
                    "character sequence minimums"
                ),
            )
        return ()

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Draw the string."""
        value = draw(_pools(props), props["length"])
        return Created(physical_id=ctx.physical_name, data={"value": value}, secret=True)

    def find(self, ctx: Context, token: str) -> str | None:
        """Return None: the string exists only in our own row."""
        return None

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        """Show the string; it is its own reference id."""
        if ctx.action == "DELETE":
            return Observation(exists=False)
        value = ctx.data["value"]
        return Observation(exists=True, attributes={"value": value}, reference_id=value)

    def delete(self, ctx: Context, physical_id: str) -> None:
        """Nothing to delete: the string is stored in our own row."""


def draw(pools: Sequence[tuple[str, int]], length: int) -> str:
    """Return `length` random characters, shuffled: the minimum of each pool, the rest from all of them."""
    source = secrets.SystemRandom()
    union = "".join(dict.fromkeys("".join(pool for pool, _ in pools)))
    drawn = [source.choice(pool) for pool, minimum in pools for _ in range(minimum)]
    drawn += [source.choice(union) for _ in range(length - len(drawn))]
    source.shuffle(drawn)
    return "".join(drawn)


def _pools(props: Mapping[str, Value]) -> list[tuple[str, int]]:
    """Return the character pools with their minimum counts."""
    pools = [(CLASSES[item["class"]], item["min"]) for item in props["character_classes"]]
    return pools + [(item["sequence"], item["min"]) for item in props.get("character_sequences") or ()]
