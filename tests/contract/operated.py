"""A resource, operated by a test as the engine would, with default properties."""

from __future__ import annotations

from typing import Any

from orchestrator.testing.operated import Operated

__all__ = ["PROPERTIES", "Operated"]

# Properties for the creation of a resource by type; types with further needs have a `Sample` in `samples/`.
PROPERTIES: dict[str, dict[str, Any]] = {}
