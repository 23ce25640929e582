"""Names of the things made for resources (spec/engine-semantics.md §14)."""

from __future__ import annotations

from uuid import UUID

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_SHORT_LENGTH = 12
_BITS = 5


def short_id(uuid: UUID | str) -> str:
    """Return twelve characters for a random uuid: the 60 bits of its time fields in lower-case base32."""
    bits = (uuid if isinstance(uuid, UUID) else UUID(uuid)).time
    return "".join(_BASE32[bits >> shift & 31] for shift in range((_SHORT_LENGTH - 1) * _BITS, -1, -_BITS))


def physical_name(stack_name: str, resource_name: str, uuid: UUID | str, limit: int = 255) -> str:
    """Return ``<stack>-<resource>-<12 characters>``, at most `limit` characters long.

    One that is longer keeps its first two characters, a hyphen, and as much of its end as fits, so that the
    twelve characters that make it unique survive.
    """
    name = f"{stack_name}-{resource_name}-{short_id(uuid)}"
    if len(name) <= limit:
        return name
    return f"{name[:2]}-{name[3 - limit :]}"
