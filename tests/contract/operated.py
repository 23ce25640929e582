"""One resource, operated by a test as the engine would, and properties of those that need no more said."""

from __future__ import annotations

from typing import Any

from orchestrator.testing.operated import Operated

__all__ = ["PROPERTIES", "Operated"]

# Properties with which one of a type can be made; what cannot be said like that has a `Sample` in `samples/`.
PROPERTIES: dict[str, dict[str, Any]] = {}
