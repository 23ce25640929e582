"""Barbican's API: secrets, orders that generate secrets, and containers.

Barbican names its objects by URLs. The requests go to the endpoint of the catalog: the host in a URL is a
setting of Barbican that may be wrong.
"""

from __future__ import annotations

from typing import ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections

PAGE: Final = 100  # Barbican's limit
TEXT: Final = "text/plain"

# A name restricts a list of secrets to similar names.
SECRETS: Final = Collection("/secrets", "", "secrets", id_key="secret_ref", urls=True, page=PAGE)
ORDERS: Final = Collection("/orders", "", "orders", id_key="order_ref", urls=True, page=PAGE, by_name=False)
CONTAINERS: Final = Collection(
    "/containers", "", "containers", id_key="container_ref", urls=True, page=PAGE, by_name=False
)


class KeyManager(Collections):
    """Barbican, called as a credential."""

    service: ClassVar[str] = "barbican"
    service_type: ClassVar[str] = "key-manager"

    def payload(self, ref: str, content_type: str = TEXT) -> bytes:
        """Return the content of a secret."""
        return self.exchange("GET", f"{SECRETS.of(ref)}/payload", headers={"Accept": content_type}).content
