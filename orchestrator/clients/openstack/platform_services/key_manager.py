"""Barbican's API: secrets, orders that generate secrets, and containers.

Barbican names its objects by URLs. The requests go to the endpoint of the catalog: the host in a URL is a
setting of Barbican that may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from orchestrator.clients.openstack.service_api import ServiceApi
from orchestrator.json_types import JsonMapping, JsonObject

PAGE: Final = 100  # Barbican's limit
TEXT: Final = "text/plain"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects."""

    path: str
    ref_key: str  # the URL of an object in its description
    list_key: str


SECRETS: Final = Kind("/secrets", "secret_ref", "secrets")
ORDERS: Final = Kind("/orders", "order_ref", "orders")
CONTAINERS: Final = Kind("/containers", "container_ref", "containers")


class KeyManager(ServiceApi):
    """Barbican, called as a credential."""

    service: ClassVar[str] = "barbican"
    service_type: ClassVar[str] = "key-manager"

    def create(self, kind: Kind, values: JsonMapping) -> str:
        """Create an object; return its URL."""
        return str(self.post(kind.path, values)[kind.ref_key])

    def find(self, kind: Kind, ref: str) -> JsonObject | None:
        """Return the description of an object, None if it does not exist."""
        return self.find_one(f"{kind.path}/{id_of(ref)}")

    def each(self, kind: Kind, name: str = "") -> Iterator[JsonObject]:
        """Yield the objects of the project; a name restricts a list of secrets to similar names."""
        query = {"name": name} if name and kind is SECRETS else {}
        return self.listed(kind.path, kind.list_key, query, page=PAGE)

    def remove(self, kind: Kind, ref: str) -> bool:
        """Delete an object. Return whether it existed."""
        return self.delete(f"{kind.path}/{id_of(ref)}")

    def payload(self, ref: str, content_type: str = TEXT) -> bytes:
        """Return the content of a secret."""
        path = f"{SECRETS.path}/{id_of(ref)}/payload"
        return self.exchange("GET", path, headers={"Accept": content_type}).content


def id_of(ref: str) -> str:
    """Return the id in the URL of an object."""
    return ref.rstrip("/").rpartition("/")[2]
