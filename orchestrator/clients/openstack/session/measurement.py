"""Duration and outcome of requests: for the metrics, and for the budget of the service."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from orchestrator import metrics
from orchestrator.clients.openstack.session.budget import Place
from orchestrator.clients.openstack.transport import Answer, Request
from orchestrator.errors import ProviderSilent

TOO_MANY: Final = 429
UNAVAILABLE: Final = 503


def measured(request: Request, place: Place, send: Callable[[], Answer]) -> Answer:
    """Send a request in its place; return the answer."""
    begun, outcome = time.monotonic(), "unreachable"
    place.failed = True  # unless it is answered
    try:
        answer = send()
        outcome = outcome_of(answer.status)
        place.failed, place.busy = False, outcome == "busy"
        return answer
    except ProviderSilent:
        outcome, place.busy = "no_answer", True
        raise
    finally:
        metrics.observe_provider_request(request.service, request.method, outcome, time.monotonic() - begun)


def outcome_of(status: int) -> str:
    """Return the outcome of an answer: ok, refused, busy or error."""
    if status in (TOO_MANY, UNAVAILABLE):
        return "busy"
    if status >= 500:
        return "error"
    return "refused" if status >= 400 else "ok"
