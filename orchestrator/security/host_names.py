"""Host names in the header Host: the names of this machine, which no foreign DNS record can take."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

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
