"""A list as the text that a parameter of a template resource takes (docs/internals/hot-language.md §10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def list_to_text(items: Iterable[Any]) -> str:
    """Return the items joined by commas: null as an empty text, a map as ``.member.0.key=value`` per
    entry.
    """
    return ",".join(text for index, item in enumerate(items) for text in _texts(index, item))


def _texts(index: int, item: Any) -> Iterable[str]:
    if isinstance(item, Mapping):
        return (f".member.{index}.{key}={value}" for key, value in item.items())
    return ("" if item is None else str(item),)
