"""Errors of a caller that sends too many requests: it may repeat the request later.

OrchestratorError
├── TooManyRequests       too many requests in a short time                    429
│   ├── TooManyConcurrentRequests  too many requests in progress              429
│   ├── TooManyFailedLogins    too many requests without valid credentials    429
│   ├── TooManyLargeRequests   too many large bodies at the same time         429
│   └── TooManySignals         too many pending signals of a resource         429
└── TooManyStreams        too many event streams are open                      503
"""

from __future__ import annotations

from orchestrator.errors import OrchestratorError


class TooManyRequests(OrchestratorError):
    """More requests or signals than the rate limit of a caller or a project allows."""

    heat_type = "HTTPTooManyRequests"

    def __init__(self, party: str, rate: float, retry_seconds: int, counted: str = "requests") -> None:
        """Name the limited party, its rate per second, and the delay until its next request."""
        self.retry_seconds = retry_seconds
        super().__init__(
            f"{party} may send {rate:g} {counted} per second. Send the next request in {retry_seconds} s."
        )


class TooManyLargeRequests(TooManyRequests):
    """Too many requests with large bodies are in progress."""

    def __init__(self, retry_seconds: int) -> None:
        """Take the delay until the next request."""
        self.retry_seconds = retry_seconds
        OrchestratorError.__init__(
            self,
            "Too many requests with large bodies are in progress. "
            f"Send the request again in {retry_seconds} s.",
        )


class TooManySignals(TooManyRequests):
    """The resource has too many signals that were not processed yet."""

    def __init__(self, name: str, retry_seconds: int) -> None:
        """Name the resource, and the delay until the next signal."""
        self.retry_seconds = retry_seconds
        OrchestratorError.__init__(
            self,
            f"Resource {name} has too many signals that were not processed yet. "
            f"Send the signal again in {retry_seconds} s.",
        )


class TooManyFailedLogins(TooManyRequests):
    """Too many requests of a client had no valid credentials."""

    def __init__(self, retry_seconds: int) -> None:
        """Take the delay until the next request."""
        self.retry_seconds = retry_seconds
        OrchestratorError.__init__(
            self,
            "Too many requests of this client had no valid credentials. "
            f"Send the next request in {retry_seconds} s.",
        )


class TooManyConcurrentRequests(TooManyRequests):
    """More requests in progress than a caller, a project, a client address or the server may have."""

    def __init__(self, party: str, limit: int, counted: str) -> None:
        """Name the limited party and its maximum of concurrent requests or request bodies."""
        self.retry_seconds = 1
        OrchestratorError.__init__(
            self, f"{party} may have {limit} concurrent {counted}. Send the request again later."
        )


class TooManyStreams(OrchestratorError):
    """This API process already serves its maximum number of event streams."""

    heat_type = "HTTPServiceUnavailable"
