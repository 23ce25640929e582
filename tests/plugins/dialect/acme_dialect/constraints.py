"""Constraints."""

from __future__ import annotations

from typing import Any

PAINTS = ("blue", "green", "red")


def colour(value: Any) -> str | None:
    """Return why `value` is no colour that we paint in, None when it is one."""
    return None if value in PAINTS else f"we paint in {', '.join(PAINTS)} only"
