"""The property `Tags` of CloudFormation's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from orchestrator.resources.base import Property, Value

TAG: Final[Mapping[str, Property]] = {
    "Key": Property("string", "Key of the tag.", required=True),
    "Value": Property("string", "Value of the tag.", required=True),
}
# Of objects that keep no tags: recognized, and rejected when it is used.
UNUSED_TAGS: Final = Property(
    "list", "Tags; not implemented.", schema=Property("map", "A tag.", schema=TAG, implemented=False)
)


def as_map(tags: Iterable[Mapping[str, Value]] | None) -> dict[str, Value]:
    """Return tags as a map of keys to values."""
    return {tag["Key"]: tag["Value"] for tag in tags or ()}


def as_tags(values: Mapping[str, Value]) -> list[dict[str, Value]]:
    """Return a map as tags."""
    return [{"Key": key, "Value": value} for key, value in values.items()]
