"""The request token of an object, kept at the end of its description.

Neutron's objects have no field for a request token, and networks accept no tags in a POST. Descriptions can
be set in a POST and searched, so that the object of a request without an answer is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

MAX_DESCRIPTION: Final = 255  # characters
_MARK: Final = re.compile(r" ?\(stack-orchestrator:([^ ;)]+)(?:; addresses ([^)]*))?\)$")


def marked(description: str, token: str) -> str:
    """Return a description with a token; without it if there is no room."""
    return _with_mark(description, f"(stack-orchestrator:{token})")


def unmarked(description: str | None) -> str:
    """Return a description without its token."""
    return _MARK.sub("", description or "")


def described(current: str | None, description: str) -> str:
    """Return a new description with the token of the current description."""
    mark = _MARK.search(current or "")
    return description if mark is None else _with_mark(description, mark.group().strip())


def with_addresses(current: str | None, addresses: Sequence[str]) -> str:
    """Return the current description with released addresses, to be restored; `()` removes them."""
    mark = _MARK.search(current or "")
    token = "" if mark is None else mark.group(1)
    kept = f"; addresses {' '.join(addresses)}" if addresses else ""
    return _with_mark(unmarked(current), f"(stack-orchestrator:{token or '-'}{kept})")


def released_addresses(description: str | None) -> list[str]:
    """Return the released addresses in a description."""
    mark = _MARK.search(description or "")
    return mark.group(2).split() if mark and mark.group(2) else []


def _with_mark(description: str, mark: str) -> str:
    text = f"{description} {mark}" if description else mark
    return text if len(text) <= MAX_DESCRIPTION else description
