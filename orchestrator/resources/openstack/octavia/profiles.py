"""The common verbs of flavors, availability zones and their profiles, which only administrators may use.

They take effect at once and have no tags. The object of a create request without an answer is found by its
name and values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.resources.openstack.octavia.base import OctaviaType, load_balancing
from orchestrator.schema.constraints import Custom


class Profile(OctaviaType):
    """An object that only administrators may change."""

    found_by: ClassVar[tuple[str, ...]]  # properties whose values, with the name, identify the object
    json_texts: ClassVar[frozenset[str]] = frozenset()  # properties that are JSON

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        """Create the object, which exists after the answer."""
        values = self.new_values(ctx, props)
        created = load_balancing(ctx).create(self.collection, values)
        return Created(str(created[self.id_key]), observation=self.observation(ctx, created))

    def delete(self, ctx: Context, physical_id: str) -> Observation | None:
        """Delete the object, which does not exist after the answer; while it is in use, the request is
        repeated.
        """
        super().delete(ctx, physical_id)
        return Observation(exists=False)

    def find(self, ctx: Context, token: str) -> str | Sequence[str] | None:
        """Return the object with the name and values; the physical name is unique."""
        props = ctx.properties
        name = props.get("name") or ctx.physical_name
        return [
            str(item[self.id_key])
            for item in load_balancing(ctx).search(self.collection, name=name)
            if item.get("name") == name
            and all(self.equal(one, props.get(one), self.from_api(one, item)) for one in self.found_by)
        ]

    def equal(self, name: str, before: Value, after: Value) -> bool:
        """Return whether two values of a property are equal: JSON is compared by its meaning."""
        if name in self.json_texts:
            return bool(_parsed(before) == _parsed(after))
        return bool(before == after)


def provider_property() -> Property:
    """Return the property with the name of the provider."""
    return Property("string", "Name of the provider.", update_allowed=True)


def data_property(doc: str) -> Property:
    """Return the property with the data of a profile."""
    return Property("string", doc, required=True, update_allowed=True, constraints=(Custom("json_string"),))


def _parsed(value: Value) -> Value:
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value
