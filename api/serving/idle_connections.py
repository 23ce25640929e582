"""Idle connections to close when an API process has almost its maximum of connections.

Otherwise a client with many idle connections would prevent all others from connecting. Connections are taken
from the address that has the most of them, so that a flood displaces itself.
"""

from __future__ import annotations

from collections import Counter
from typing import Any


def oldest_of_busiest(*connections: tuple[float, Any]) -> Any | None:
    """Return the oldest open connection of the address with the most; each is given with its begin."""
    listed = [(_address(conn), begun, conn) for begun, conn in connections if conn.sock.fileno() >= 0]
    counts = Counter(address for address, _, _ in listed)
    if not listed:
        return None
    _, _, oldest = min(listed, key=lambda item: (-counts[item[0]], item[1]))
    return oldest


def _address(connection: Any) -> object:
    """Return the client's address without its port; a unix socket has none."""
    client = connection.client
    return client[0] if isinstance(client, tuple) else client
