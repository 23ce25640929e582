"""Settings of objects as the services store them: maps of texts, and lists without an order."""

from __future__ import annotations

import json
from collections.abc import Mapping

from orchestrator.resources.base import Value


def as_texts(given: Mapping[str, Value] | None) -> dict[str, str]:
    """Return extra specs, or the metadata of an administrator's object: all values as texts."""
    return {str(key): str(value) for key, value in (given or {}).items()}


def as_json_texts(given: Mapping[str, Value] | None) -> dict[str, str]:
    """Return the metadata of a server or a volume: values that are no texts as JSON."""
    return {
        str(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in (given or {}).items()
    }


def equal_settings(name: str, before: Value, after: Value, *, members: str, texts: str) -> bool:
    """Return whether two values of a property are equal, for a type with a property that lists `members` in
    any order, and one whose values are stored as `texts`.
    """
    if name == members:
        return set(before or ()) == set(after or ())
    if name == texts:
        return as_texts(before) == as_texts(after)
    return bool((before or None) == (after or None))
