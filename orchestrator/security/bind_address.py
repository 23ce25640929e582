"""Addresses that the API may listen on: without authentication, only loopback addresses."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from orchestrator.config import Settings, is_loopback
from orchestrator.errors import Misconfigured

_OPEN_FILES: Final = Path("/dev/fd")  # on Linux a link to /proc/self/fd
_MODES: Final = (
    "Set ORCHESTRATOR_AUTH=token (`orchestrator token create` makes one), basic or keystone, "
    "or listen on 127.0.0.1"
)


def require_safe_binding(settings: Settings) -> None:
    """Check that the API may be bound to `settings.host`.

    Raises:
        Misconfigured: no authentication mode is set, or other machines could call the API without
            authentication.
    """
    if settings.auth is None:
        raise Misconfigured(
            "ORCHESTRATOR_AUTH is not set: set it to token (`orchestrator token create` makes one), basic "
            "or keystone, or to none for an API without authentication that this machine alone can reach"
        )
    if settings.auth == "none" and not settings.loopback:
        raise Misconfigured(
            f"refusing to listen on {settings.host} while ORCHESTRATOR_AUTH is none: "
            f"any caller could do anything. {_MODES}"
        )


def require_safe_sockets(settings: Settings) -> None:
    """Check the listening sockets of this process, which a server may have bound without our settings.

    Examples are `gunicorn --bind` and inherited sockets. Unix sockets are not checked, because a process
    can have others than its API's: `auth = none` rejects their requests (api/middleware).

    Raises:
        Misconfigured: without authentication, a socket is bound to another address than loopback.
    """
    if settings.auth != "none":
        return
    for address in _listening_addresses(_open_files()):
        if not is_loopback(address):
            raise Misconfigured(
                f"refusing to serve a socket bound to {address} while ORCHESTRATOR_AUTH is none: "
                f"any caller could do anything. {_MODES}"
            )


def _open_files() -> list[int]:
    try:
        return [int(entry.name) for entry in _OPEN_FILES.iterdir()]
    except OSError:  # no such directory: each request is checked in any case
        return []


def _listening_addresses(descriptors: Iterable[int]) -> Iterable[str]:
    """Yield the addresses of listening sockets other than unix sockets."""
    for descriptor in descriptors:
        candidate = _socket_of(descriptor)
        if candidate is None:
            continue
        with candidate:
            if candidate.family == socket.AF_UNIX or not _listens(candidate):
                continue
            is_internet = candidate.family in {socket.AF_INET, socket.AF_INET6}
            address = candidate.getsockname()
            yield str(address[0] if is_internet else address)


def _socket_of(descriptor: int) -> socket.socket | None:
    """Return a duplicate of an open socket; None for other files."""
    try:
        duplicate = os.dup(descriptor)
    except OSError:  # closed since the list was read
        return None
    try:
        return socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        return None


def _listens(candidate: socket.socket) -> bool:
    try:
        return bool(candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False
