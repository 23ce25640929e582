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


def same_texts(before: Mapping[str, Value] | None, after: Mapping[str, Value] | None) -> bool:
    """Return whether two maps that are stored as texts are equal."""
    return as_texts(before) == as_texts(after)


def both_blank_or_equal(before: Value, after: Value) -> bool:
    """Return whether two values are equal: an empty value is none."""
    return bool((before or None) == (after or None))
