"""The locations from which Glance imports an image. Nothing is downloaded."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

PORTS: Final = {"http": 80, "https": 443}


def is_allowed(location: str) -> bool:
    """Whether Glance, with its default settings, accepts a location: HTTP, its usual ports, no loopback."""
    try:
        url = urlsplit(location)
        port = url.port or PORTS.get(url.scheme)
    except ValueError:
        return False
    if url.scheme not in PORTS or port not in PORTS.values() or not url.hostname:
        return False
    return not _is_loopback(url.hostname)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
