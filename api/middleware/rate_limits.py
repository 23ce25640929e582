"""Rate limits per caller and per project: token buckets with a burst.

Each API process counts separately, so the limits work without the broker and cost no round trip. An
installation with several processes accepts a multiple of the rate.
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
from orchestrator.rate_errors import TooManyRequests

MAX_BUCKETS: Final = 10_000  # buckets; the least recently used buckets are full again anyway


@dataclass(slots=True)
class TokenBuckets:
    """Buckets of the same size, by owner."""

    rate: float  # requests per second
    burst: float  # burst size in requests
    _levels: OrderedDict[str, tuple[float, float]] = field(
        default_factory=OrderedDict
    )  # level and time of the last update
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, whose: str) -> float:
        """Take a token; return the seconds until the next token is available, 0 on success."""
        now = time.monotonic()
        with self._lock:
            level, at = self._levels.pop(whose, (self.burst, now))
            level = min(self.burst, level + (now - at) * self.rate)
            accepted = level >= 1.0
            self._levels[whose] = (level - 1.0 if accepted else level, now)
            if len(self._levels) > MAX_BUCKETS:
                self._levels.popitem(last=False)
        return 0.0 if accepted else (1.0 - level) / self.rate


def take_for_caller(request: Request) -> None:
    """Count a request of a token, or of a client address without a token. No authentication is needed.

    Raises:
        TooManyRequests: the rate is exceeded.
    """
    buckets = _buckets("caller", dependencies().settings.request_rate_per_caller)
    if buckets is not None:
        token = request.headers.get("X-Auth-Token")
        owner = request.remote_addr or "" if token is None else hashlib.sha256(token.encode()).hexdigest()
        _take(buckets, owner, "The caller")


def take_for_project(project_id: str) -> None:
    """Count a request of a project.

    Raises:
        TooManyRequests: the rate is exceeded.
    """
    buckets = _buckets("project", dependencies().settings.request_rate_per_project)
    if buckets is not None:
        _take(buckets, project_id, "The project")


def _take(buckets: TokenBuckets, whose: str, client: str) -> None:
    seconds = buckets.take(whose)
    if seconds:
        metrics.count_rate_limited()
        raise TooManyRequests(client, buckets.rate, math.ceil(seconds))


def _buckets(scope: str, rate: float) -> TokenBuckets | None:
    if not rate:
        return None
    created: dict[str, TokenBuckets] = current_app.extensions.setdefault("buckets", {})
    if scope not in created:
        created.setdefault(
            scope, TokenBuckets(rate, max(1.0, rate * dependencies().settings.request_burst_seconds))
        )
    return created[scope]
