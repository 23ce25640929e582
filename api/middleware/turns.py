"""The turns of requests (`operations/runtime/turns.py`): from authentication until the response is built, and
for each part of a streamed response.

A turn includes the authentication if the project is expected (`in_flight.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from api.dependencies import Wsgi
from api.middleware import in_flight
from orchestrator.fair_share import NoFreeSlot
from orchestrator.operations.runtime import turns
from orchestrator.rate_errors import TooManyConcurrentRequests
from orchestrator.schema.safe_regex import matching_budget

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

T = TypeVar("T")

TURNS: Final = "orchestrator.turns"
OWN_TURNS: Final = "orchestrator.turns.own"  # of a response that takes its turns itself
REFUSED: Final = "orchestrator.turns.refused"  # the project whose turn did not come in time


@dataclass(slots=True)
class Turns:
    """WSGI middleware that ends the turn of each request, computes streamed responses in turns, and limits
    the steps of the patterns of a request.
    """

    app: Wsgi
    turns: turns.Turns = field(default_factory=turns.Turns)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Handle a request; its turn ends before the response is sent.

        Each further part of a streamed response is computed in a turn, and sent without.
        """
        environ[TURNS] = self.turns
        expected = in_flight.expected_project(environ)
        try:
            if expected is not None:
                _begin_expected(environ, self.turns, expected)
            with matching_budget():
                response = self.app(environ, start_response)
            project = turns.project()
        finally:
            turns.end()
        if project is None or environ.get(OWN_TURNS) or isinstance(response, list | tuple):
            return response
        return Parts(response, self.turns, project)


class Parts:
    """A streamed response, each part of which is computed in a turn of its project."""

    def __init__(self, response: Iterable[bytes], process: turns.Turns, project: str) -> None:
        """Take the response; it is closed with this object."""
        self._response = response
        self._parts = turns.in_slices(process, project, iter(response))

    def __iter__(self) -> Iterator[bytes]:
        """Yield the parts."""
        return self._parts

    def close(self) -> None:
        """Close the response."""
        self._parts.close()
        close = getattr(self._response, "close", None)
        if close is not None:
            close()


def take_own(environ: dict[str, Any]) -> Callable[[Iterator[T]], Iterator[T]]:
    """Let a response that also waits take its turns itself; return the function that computes the items of an
    iterator in turns of the request.
    """
    environ[OWN_TURNS] = True
    process: turns.Turns | None = environ.get(TURNS)
    project = turns.project()
    if process is None or project is None:
        return iter
    return partial(turns.in_slices, process, project)


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
