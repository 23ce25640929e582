"""The turns of requests (`operations/runtime/turns.py`): from authentication until the response is built.

A turn includes the authentication if the project is expected (`in_flight.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from api.middleware import in_flight
from orchestrator.operations.runtime import turns
from orchestrator.operations.runtime.fair_slots import NoFreeSlot
from orchestrator.rate_errors import TooManyConcurrentRequests

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TURNS: Final = "orchestrator.turns"
REFUSED: Final = "orchestrator.turns.refused"  # the project whose turn did not come in time


@dataclass(slots=True)
class Turns:
    """WSGI middleware that ends the turn of each request."""

    app: Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]
    turns: turns.Turns = field(default_factory=turns.Turns)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request; its turn ends before the response is sent."""
        environ[TURNS] = self.turns
        expected = in_flight.expected_project(environ)
        try:
            if expected is not None:
                _begin_expected(environ, self.turns, expected)
            return self.app(environ, start_response)
        finally:
            turns.end()


def begin(environ: dict[str, Any], project_id: str) -> None:
    """Wait for a turn of the project.

    Raises:
        TooManyConcurrentRequests: it did not come in time.
    """
    process: turns.Turns | None = environ.get(TURNS)
    if process is None:
        return
    has_waited = environ.get(REFUSED) == project_id
    try:
        turns.begin(process, project_id, 0.0 if has_waited else None)
    except NoFreeSlot as error:
        raise TooManyConcurrentRequests(
            "The project", process.slots.per_owner, "requests in computation"
        ) from error


def _begin_expected(environ: WSGIEnvironment, process: turns.Turns, project_id: str) -> None:
    try:
        turns.begin(process, project_id)
    except NoFreeSlot:  # the request is refused after its authentication, unless a turn is free by then
        environ[REFUSED] = project_id
