"""Requests of browsers: names of this machine in the header Host, which no foreign DNS record can take, and
the headers of requests for pages of other sites.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from orchestrator.config import is_loopback

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.IGNORECASE)


@lru_cache(maxsize=1_024)
def host_name(host: str) -> str | None:
    """Return the name in a header Host, in lower case without port; None if the header is malformed."""
    match = _HOST.fullmatch(host)
    return None if match is None else match.group(1).lower().removesuffix(".").strip("[]")


@lru_cache(maxsize=1_024)
def is_loopback_name(host: str) -> bool:
    """Whether a header Host has a loopback address or a name that browsers resolve to one.

    The domain `localhost` is reserved (RFC 6761), so that no DNS server can redirect it.
    """
    name = host_name(host)
    return name is not None and (name.endswith(".localhost") or is_loopback(name))


def names_in(text: str) -> frozenset[str]:
    """Return the names in a list separated by commas, in lower case."""
    return frozenset(_without_empty(name.strip().lower().removesuffix(".") for name in text.split(",")))


def _without_empty(names: Iterable[str]) -> Iterable[str]:
    return (name for name in names if name)


def foreign_header(host: str, origin: str | None, site: str | None, *, trusts_site: bool) -> str:
    """Return the header by which a browser says that a page of another site caused a request, "" for none.

    `trusts_site`: `Sec-Fetch-Site: same-origin` is sufficient, although a proxy may have replaced `host`.
    """
    if site not in {None, "none", "same-origin"}:
        return f"Sec-Fetch-Site: {site}"
    is_same = site == "same-origin" and trusts_site
    return f"Origin: {origin}" if origin is not None and not is_same and not is_own(origin, host) else ""


def is_own(origin: str, host: str) -> bool:
    """Whether a page at `origin` is served by a host."""
    parts = urlsplit(origin.lower())
    port = {"http": ":80", "https": ":443"}.get(parts.scheme)
    return port is not None and parts.netloc.removesuffix(port) == host.lower().removesuffix(port)
