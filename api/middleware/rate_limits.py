"""How many requests a caller and a project may send: buckets that fill evenly and hold a burst.

Each API process counts for itself, so that the limit holds while the broker is away and costs no round trip:
with several of them an installation takes so many times as much.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from flask import Request, current_app

from api.dependencies import dependencies
from orchestrator import metrics
from orchestrator.errors import TooManyRequests

KEPT: Final = 10_000  # buckets; those that were not used for longest are full again anyway


@dataclass(slots=True)
class TokenBuckets:
    """Buckets of one size, by whose they are."""

    rate: float  # requests a second
    burst: float  # requests at once
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)  # level, when
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, whose: str) -> float:
        """Take one request out of a bucket; return the seconds until there is one, 0 when there was."""
        now = time.monotonic()
        with self._lock:
            level, at = self._levels.pop(whose, (self.burst, now))
            level = min(self.burst, level + (now - at) * self.rate)
            taken = level >= 1.0
            self._levels[whose] = (level - 1.0 if taken else level, now)
            if len(self._levels) > KEPT:
                self._levels.popitem(last=False)
        return 0.0 if taken else (1.0 - level) / self.rate


def take_for_caller(request: Request) -> None:
    """Count a request of whoever shows this token, or comes from this address without one; nobody is looked
    up for it.

    Raises:
        TooManyRequests: there were too many of them.
    """
    buckets = _buckets("caller", dependencies().settings.request_rate_per_caller)
    if buckets is not None:
        token = request.headers.get("X-Auth-Token")
        whose = request.remote_addr or "" if token is None else hashlib.sha256(token.encode()).hexdigest()
        _take(buckets, whose, "The caller")


def take_for_project(project_id: str) -> None:
    """Count a request of a project.

    Raises:
        TooManyRequests: there were too many of them.
    """
    buckets = _buckets("project", dependencies().settings.request_rate_per_project)
    if buckets is not None:
        _take(buckets, project_id, "The project")


def _take(buckets: TokenBuckets, whose: str, who: str) -> None:
    seconds = buckets.take(whose)
    if seconds:
        metrics.count_rate_limited()
        raise TooManyRequests(who, buckets.rate, math.ceil(seconds))


def _buckets(kind: str, rate: float) -> TokenBuckets | None:
    if not rate:
        return None
    made: dict[str, TokenBuckets] = current_app.extensions.setdefault("buckets", {})
    if kind not in made:
        made.setdefault(
            kind, TokenBuckets(rate, max(1.0, rate * dependencies().settings.request_burst_seconds))
        )
    return made[kind]
