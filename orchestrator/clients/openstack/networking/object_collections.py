"""Services whose objects are addressed by their collection: neutron, octavia."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.errors import ProviderError
from orchestrator.json_types import JsonMapping, JsonObject


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of objects: its path, the name of an object and the name of the list in bodies.

    Objects of a nested collection also have a parent: the rule of a QoS policy, the member of a pool.
    """

    path: str
    singular: str
    plural: str

    def of(self, object_id: str = "", parent: str = "") -> str:
        """Return the path of the collection, or of an object in it."""
        path = self.path.format(parent=parent) if parent else self.path
        return f"{path}/{object_id}" if object_id else path


class Collections(ServiceApi):
    """The calls that all collections of a service have."""

    def create(self, collection: Collection, values: JsonMapping, *, parent: str = "") -> JsonObject:
        """Create an object; return it."""
        return self._object(
            collection, self.post(collection.of(parent=parent), {collection.singular: values})
        )

    def find(self, collection: Collection, object_id: str, *, parent: str = "") -> JsonObject | None:
        """Return an object, None if it does not exist."""
        answer = self.find_one(collection.of(object_id, parent))
        return None if answer is None else self._object(collection, answer)

    def observed_object(
        self, collection: Collection, object_id: str, *, parent: str = ""
    ) -> JsonObject | None:
        """Return an object for an observation, None if it does not exist."""
        return self.observed(
            collection.of(parent=parent), collection.singular, object_id, list_key=collection.plural
        )

    def update(
        self, collection: Collection, object_id: str, values: JsonMapping, *, parent: str = ""
    ) -> JsonObject:
        """Change an object; return it."""
        path = collection.of(object_id, parent)
        return self._object(collection, self.put(path, {collection.singular: values}))

    def remove(self, collection: Collection, object_id: str, *, parent: str = "") -> bool:
        """Delete an object. Return whether it existed."""
        return self.delete(collection.of(object_id, parent))

    def search(
        self, collection: Collection, *, parent: str = "", fields: Sequence[str] = (), **filters: Any
    ) -> Iterator[JsonObject]:
        """Yield the objects with these values; of nested collections, all objects with these values."""
        query = {**filters, **({"fields": list(fields)} if fields else {})}
        return self.listed(collection.of(parent=parent), collection.plural, query)

    def id_of(self, collection: Collection, name_or_id: str) -> str:
        """Return the id of the object with this name or id.

        Raises:
            ProviderError: no object, or several objects, have this name.
        """
        if self.find(collection, name_or_id) is not None:
            return name_or_id
        found = [item["id"] for item in self.search(collection, name=name_or_id, fields=("id",))]
        if len(found) != 1:
            problem = "could not be found" if not found else "is not unique: use the id"
            raise ProviderError(f"The {collection.singular} ({name_or_id}) {problem}.", "EntityNotFound")
        return str(found[0])

    @staticmethod
    def _object(collection: Collection, answer: JsonMapping) -> JsonObject:
        return dict(answer.get(collection.singular) or {})
