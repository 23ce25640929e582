"""The faults of a simulated installation, with their probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LATE = ("create", "update", "suspend", "resume", "delete")  # verbs whose requests are carried out late


@dataclass
class Faults:
    """Faults, each with its probability."""

    crash: float = 0.0  # a worker dies before or after a statement
    switch: float = 0.0  # other workers run between two of its statements
    lose: float = 0.0  # a message
    repeat: float = 0.0
    calls: Mapping[str, float] | None = None  # fates of the provider's calls
    age: float = 0.02  # for leases to expire during such an interruption

    def fate(self, verb: str, chance: float) -> str:
        """Return the fate of a call of the provider, for a chance between 0 and 1."""
        calls = self.calls or {}
        for fate, share in calls.items():
            chance -= share
            if chance < 0:
                if fate in ("broken", "dead") and verb not in ("create", "update"):
                    return "done"
                if fate in ("late", "killed late") and verb not in LATE:
                    return "done"
                if fate == "refused" and verb in ("observe", "find"):
                    return "busy"
                return fate
        return "done"


CALM = Faults()
