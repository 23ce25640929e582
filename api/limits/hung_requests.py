"""Requests that hang a process of the API (operations/adr/0028): named for the watchdog, then rejected."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from werkzeug.wrappers import Request

from orchestrator.errors import RequestHung, WorkerHung
from orchestrator.operations.runtime.quarantine import Quarantine
from orchestrator.store.connections.database import UNREACHABLE, Database
from orchestrator.store.maintenance.quarantine import REQUEST_SECONDS

REFRESH_SECONDS: Final = 10.0  # a process that replaces a hung process reads the table at its first request


class HungRequests:
    """The quarantined requests, and the requests in progress in this process."""

    def __init__(self, database: Database) -> None:
        """Know nothing before the first request."""
        self._database = database
        self._quarantine = Quarantine(database, REFRESH_SECONDS)

    @contextlib.contextmanager
    def guarding(self, request: Request) -> Iterator[None]:
        """Name a request for the watchdog until its response is made.

        Raises:
            RequestHung: it has hung a process twice.
        """
        if self._quarantine.is_stale():
            with contextlib.suppress(*UNREACHABLE), self._database.borrow() as db:
                self._quarantine.refresh(db)
        id_ = digest(request)
        try:
            self._quarantine.require_released("request", id_)
        except WorkerHung as error:
            raise RequestHung(error.hangs, error.position, REQUEST_SECONDS) from None
        with self._quarantine.guarding("request", id_):
            yield


def digest(request: Request) -> int:
    """Return the number of a request: its method, path with the project, query, and length of the body."""
    text = f"{request.method} {request.full_path} {request.content_length}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1  # as a bigint
