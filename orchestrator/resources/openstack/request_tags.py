"""The request token of an object as one of its tags, for services that accept tags in a create request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TAG_PREFIX: Final = "stack-orchestrator:"  # of the tag with the request token


def token_tag(token: str) -> str:
    """Return the tag by which the object of a request is found."""
    return f"{TAG_PREFIX}{token}"


def tags(token: str, given: Sequence[str] | None) -> list[str]:
    """Return all tags of an object: the template's, and the request token's."""
    return [*dict.fromkeys(given or ()), token_tag(token)]


def own_tags(actual: Mapping[str, Any]) -> list[str]:
    """Return the tags of an object without that of the request token."""
    return sorted(tag for tag in actual.get("tags") or () if not tag.startswith(TAG_PREFIX))


def changed_tags(actual: Mapping[str, Any], given: Sequence[str] | None) -> list[str]:
    """Return new tags for an object, which keeps that of the request token."""
    kept = [tag for tag in actual.get("tags") or () if tag.startswith(TAG_PREFIX)]
    return [*dict.fromkeys(given or ()), *kept]
