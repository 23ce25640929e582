"""Collections of objects: the calls that are the same for the objects of all services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote

from orchestrator.clients.openstack.service_api import PAGE, ServiceApi
from orchestrator.errors import ProviderError, ProviderInUse
from orchestrator.json_types import JsonMapping, JsonObject

CHANGED: Final = "PreconditionFailed"  # the object has another revision number
CHANGED_SECONDS: Final = 1.0  # until its present state is read


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection of objects: its path, the name of an object and the name of the list in bodies.

    Objects of a nested collection also have a parent: the rule of a QoS policy, the member of a pool.
    """

    path: str
    singular: str  # "": an object is the whole body
    plural: str
    id_key: str = "id"
    update_verb: Literal["PUT", "PATCH"] = "PUT"
    listing: str = ""  # the path of the list, where it is another
    query: Mapping[str, Any] = field(default_factory=dict)  # of the list
    page: int | None = PAGE  # objects of a page; None: the list knows no limit
    microversion: str | None = None
    urls: bool = False  # ids are URLs, which end with the id in paths
    only_ids: bool = True  # every id has the form of an id (`finding.is_id`)
    by_name: bool = True  # the list can be restricted to a name; False: it is read as a whole
    unnamed: bool = False  # objects have no name beside their id

    def of(self, object_id: str = "", parent: str = "") -> str:
        """Return the path of the collection, or of an object in it."""
        path = self.path.format(parent=quote(parent, safe="")) if parent else self.path
        if self.urls:
            object_id = object_id.rstrip("/").rpartition("/")[2]
        return f"{path}/{quote(object_id, safe='')}" if object_id else path

    def wrapped(self, values: JsonMapping) -> JsonMapping:
        """Return the body of a request with an object."""
        return {self.singular: values} if self.singular else values

    def unwrapped(self, answer: JsonMapping) -> JsonObject:
        """Return the object in an answer."""
        return dict(answer.get(self.singular) or {} if self.singular else answer)


class Collections(ServiceApi):
    """The calls that all collections of a service have."""

    def create(self, collection: Collection, values: JsonMapping, *, parent: str = "") -> JsonObject:
        """Create an object; return it."""
        path, body = collection.of(parent=parent), collection.wrapped(values)
        return collection.unwrapped(self.post(path, body, microversion=collection.microversion))

    def find(
        self, collection: Collection, object_id: str, *, parent: str = "", query: JsonMapping | None = None
    ) -> JsonObject | None:
        """Return an object, None if it does not exist."""
        path = collection.of(object_id, parent)
        answer = self.find_one(path, query, microversion=collection.microversion)
        return None if answer is None else collection.unwrapped(answer)

    def observed_object(
        self, collection: Collection, object_id: str, *, parent: str = ""
    ) -> JsonObject | None:
        """Return an object for an observation, None if it does not exist. Shared lists contain objects by
        `id`.
        """
        if self.complete_lists is None or collection.id_key != "id":
            return self.find(collection, object_id, parent=parent)
        path = collection.of(parent=parent)
        return self.observed(
            path,
            collection.singular,
            object_id,
            listing=collection.listing,
            list_key=collection.plural,
            microversion=collection.microversion,
        )

    def update(
        self,
        collection: Collection,
        object_id: str,
        values: JsonMapping,
        *,
        parent: str = "",
        revision: int | None = None,
    ) -> JsonObject:
        """Change an object; return it. With a revision number the request has no effect after a newer request
        (neutron's extension `revision-if-match`).

        Raises:
            ProviderInUse: the object has been changed; its present state decides about another request.
        """
        headers = {} if revision is None else {"If-Match": f"revision_number={revision}"}
        path, body = collection.of(object_id, parent), collection.wrapped(values)
        try:
            answer = self.request(
                collection.update_verb, path, body, microversion=collection.microversion, headers=headers
            )
        except ProviderError as error:
            if error.kind != CHANGED:
                raise
            raise ProviderInUse(str(error), error.kind, retry_after=CHANGED_SECONDS) from error
        return collection.unwrapped(answer)

    def remove(
        self, collection: Collection, object_id: str, *, parent: str = "", query: JsonMapping | None = None
    ) -> bool:
        """Delete an object. Return whether it existed."""
        return self.delete(collection.of(object_id, parent), query, microversion=collection.microversion)

    def search(
        self, collection: Collection, *, parent: str = "", fields: Sequence[str] = (), **filters: Any
    ) -> Iterator[JsonObject]:
        """Yield the objects with these values; of nested collections, all objects with these values."""
        query = {**collection.query, **filters, **({"fields": list(fields)} if fields else {})}
        path = collection.listing or collection.of(parent=parent)
        return self.listed(
            path, collection.plural, query, microversion=collection.microversion, page=collection.page
        )

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

    def request_action(
        self, collection: Collection, object_id: str, action: str, arguments: Any = None
    ) -> JsonObject:
        """Request an action of an object."""
        path = f"{collection.of(object_id)}/action"
        return self.post(path, {action: arguments}, microversion=collection.microversion)


def inner(answer: JsonMapping) -> JsonObject:
    """Return the object that an answer wraps."""
    return next((value for value in answer.values() if isinstance(value, dict)), {})
