"""Names of the provider objects of resources (docs/internals/engine-semantics.md §14)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from uuid import UUID

MAX_LENGTH: Final = 255  # of a name unless its type has another limit
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _BASE32 for second in _BASE32]  # ten bits each


@lru_cache(maxsize=256)  # a visit needs its resource's id several times
def short_id(uuid: UUID | str) -> str:
    """Return twelve characters for a random uuid: the 60 bits of its time fields in lower-case base32."""
    digits = (uuid.hex if isinstance(uuid, UUID) else uuid).replace("-", "").lower()
    bits = int(digits[13:16] + digits[8:12] + digits[:8], 16)
    return "".join([_PAIRS[bits >> shift & 1023] for shift in range(50, -1, -10)])


def physical_name(stack_name: str, resource_name: str, uuid: UUID | str, limit: int | None = None) -> str:
    """Return ``<stack>-<resource>-<12 characters>``, at most `limit` characters long (None: MAX_LENGTH).

    A longer name keeps its first two characters, a hyphen, and as much of its end as fits, so that the
    twelve characters that make it unique survive.
    """
    name = f"{stack_name}-{resource_name}-{short_id(uuid)}"
    limit = MAX_LENGTH if limit is None else limit
    if len(name) <= limit:
        return name
    return f"{name[:2]}-{name[3 - limit :]}"
