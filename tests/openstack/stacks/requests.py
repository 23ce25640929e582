"""The requests of the engine to a cloud."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.clients.openstack.transport import Answer, Request
from orchestrator.errors import ProviderSilent
from tests.scenarios.fake_cloud import Crash


class Requests:
    """Sends requests, and ends a worker before or after a request."""

    def __init__(self, send: Callable[..., Answer]) -> None:
        self._send = send
        self.sent: list[str] = []  # "DELETE cinder /volumes/…"
        self.deadly: int | None = None  # number of the request that is not sent, or not answered
        self.carried_out = False  # whether that request is carried out
        self.before: dict[str, Callable[[], object]] = {}  # actions before the next request, by its beginning
        self.held: list[Callable[[], Answer]] = []  # requests without an answer, to be sent later
        self.to_hold = ""  # the beginning of the next request that is held

    def die_at(self, number: int, *, carried_out: bool) -> None:
        """Let the worker die at a request, counted from now on."""
        self.sent.clear()
        self.deadly, self.carried_out = number, carried_out

    def send(self, transport: Any, request: Request, seconds: float) -> Answer:
        """Send a request."""
        told = f"{request.method} {request.service} {request.path}"
        self.sent.append(told)
        for beginning in [one for one in self.before if told.startswith(one)]:
            self.before.pop(beginning)()
        if self.to_hold and told.startswith(self.to_hold):
            self.to_hold = ""
            self.held.append(lambda: self._send(transport, request, seconds))
            raise ProviderSilent("no answer")
        dies = self.deadly == len(self.sent)
        if dies and not self.carried_out:
            self.deadly = None
            raise Crash
        answer = self._send(transport, request, seconds)
        if dies:
            self.deadly = None
            raise Crash
        return answer
