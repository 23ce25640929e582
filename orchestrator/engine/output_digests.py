"""Comparison of the digests of a resource's outputs (docs/internals/protocol.md rule 7). Pure.

Dependents record the digest of each input that they were built with. An object that is not ready may have
early dependents (operations/adr/0015). They record digests of a part of its outputs: `early-X` covers the
ids, `early-X/early-Y` also the early attributes. When the object is ready, its digest is `Z/early-X/early-Y`,
in which Z covers all outputs. An early dependent is current as long as the digests that it recorded are among
these.
"""

from __future__ import annotations

from typing import Final

EARLY: Final = "early-"
SEPARATOR: Final = "/"


def has_early_parts(digest: str | None) -> bool:
    """Whether dependents may have recorded early outputs of the resource."""
    return digest is not None and EARLY in digest


def is_early(digest: str | None) -> bool:
    """Whether it is the digest of an object that was not ready."""
    return digest is not None and digest.startswith(EARLY)


def is_current_input(recorded: str | None, current: str | None) -> bool:
    """Whether a dependent that recorded a digest was built with the current outputs."""
    if recorded == current:
        return True
    if recorded is None or current is None or not recorded.startswith(EARLY):
        return False
    return set(recorded.split(SEPARATOR)) <= set(current.split(SEPARATOR))
