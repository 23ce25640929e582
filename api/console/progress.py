"""Progress of a stack as the pages show it."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.json_types import JsonMapping


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of the visits of an action."""

    total: int
    ready: int
    failed: int
    running: int
    waiting: int
    blocked: int

    @classmethod
    def of(cls, body: JsonMapping) -> Progress:
        """Read the counts of the API."""
        return cls(**{name: int(body.get(name) or 0) for name in cls.__slots__})

    @property
    def percent(self) -> int:
        """Return the finished share; 100 only if nothing is left."""
        return (
            0
            if not self.total
            else min(99 if self.ready < self.total else 100, self.ready * 100 // self.total)
        )
