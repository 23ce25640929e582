"""Masking of secret values of any shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.template.parameters import MASK


def masked(value: object) -> Any:
    """Return a value of the same shape with all content masked."""
    match value:
        case Mapping():
            return {key: masked(item) for key, item in value.items()}
        case list():
            return [masked(item) for item in value]
        case _:
            return MASK


def is_masked(value: object) -> bool:
    """Whether a value contains a mask."""
    match value:
        case Mapping():
            return any(is_masked(item) for item in value.values())
        case list():
            return any(is_masked(item) for item in value)
        case _:
            return bool(value == MASK)
