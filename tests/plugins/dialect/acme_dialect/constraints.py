"""Constraints."""

from __future__ import annotations

from typing import Any

PAINTS = ("blue", "green", "red")


def colour(value: Any) -> str | None:
    """Return an error message, or None if `value` is a valid colour."""
    return None if value in PAINTS else f"available colours: {', '.join(PAINTS)}"
