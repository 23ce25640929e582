"""Rate limits of authenticated requests, per project and per caller: token buckets with a burst.

Signals have their own rate, since they come in bursts from all servers of a stack at once. Requests
that fail authentication are limited in `failed_logins.py`.

Each API process counts separately, so the limits work without the broker and cost no round trip. An
installation with several processes accepts a multiple of the rate.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from api import postponement
from orchestrator import metrics
from orchestrator.config import Settings
from orchestrator.operations.quotas.limits import CachedQuotas
from orchestrator.rate_errors import TooManyRequests
from orchestrator.security.caller import Caller

BURST_SECONDS: Final = 10.0  # burst size, in seconds of the rate
MAX_BUCKETS: Final = 10_000  # buckets; the least recently used buckets are full again anyway
COUNTED: Final = "orchestrator.counted"  # key in the WSGI environment of a request that was counted
KINDS: Final = {"requests_per_second": "requests", "signals_per_second": "signals"}


@dataclass(slots=True)
class TokenBuckets:
    """Buckets by owner; the burst is as large as the rate of `burst_seconds`, and at least 1."""

    burst_seconds: float
    _levels: OrderedDict[object, tuple[float, float]] = field(
        default_factory=OrderedDict
    )  # level and time of the last update
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, owner: object, rate: float, count: float = 1.0) -> float:
        """Take tokens from a bucket that receives `rate` tokens per second.

        Return 0, or the seconds until they are available. With a `count` of 0, the first token must be
        available.
        """
        now, burst = time.monotonic(), max(1.0, rate * self.burst_seconds)
        with self._lock:
            level, at = self._levels.pop(owner, (burst, now))
            level = min(burst, level + (now - at) * rate)
            accepted = level >= (count or 1.0)
            self._levels[owner] = (level - count if accepted else level, now)
            if len(self._levels) > MAX_BUCKETS:
                self._levels.popitem(last=False)
        return 0.0 if accepted else ((count or 1.0) - level) / rate


class RateLimits:
    """The rate limits of an API process."""

    def __init__(self, settings: Settings, quotas: CachedQuotas) -> None:
        """Start with full buckets."""
        self._settings, self._quotas = settings, quotas
        self._buckets = TokenBuckets(BURST_SECONDS)

    def take(self, environ: MutableMapping[str, Any], caller: Caller, *, signal: bool = False) -> None:
        """Count a request of an authenticated caller, once.

        Raises:
            TooManyRequests: the rate of the caller or of the project is exceeded.
        """
        if environ.get(COUNTED) or postponement.is_counted():
            return
        if caller.user or caller.user_id:  # no name without authentication
            owner = (caller.project_id, caller.user_id, caller.user)
            self._take(owner, self._settings.request_rate_per_caller, "The caller", "requests")
        project = caller.bearer.project_id if caller.bearer is not None else caller.project_id
        name = "signals_per_second" if signal else "requests_per_second"
        self._take((name, project), self._quotas.limit(project, name), "The project", KINDS[name])
        environ[COUNTED] = True

    def _take(self, owner: object, rate: float, party: str, counted: str) -> None:
        seconds = self._buckets.take(owner, rate) if rate > 0 else 0.0
        if seconds:
            metrics.count_rate_limited()
            raise TooManyRequests(party, rate, math.ceil(seconds), counted)
