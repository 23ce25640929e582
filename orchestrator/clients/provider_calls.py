"""The requests of a verb to its provider: passed in the context of the verb, and used for each request."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Protocol

NOT_FOUND: Final = 404


class NeedsOwnRequest(Exception):
    """An object that is observed with a shared list needs a request of its own; nothing was sent."""


class HeldConnection(Protocol):
    """An open connection for a request."""

    def take(self, key: object) -> Any:
        """Return the connection, once, if it is to this origin; None otherwise."""
        ...


class Reservation(NamedTuple):
    """A place in the budget of a service, and an open connection to it, for the requests of a create."""

    budget: object
    connection: HeldConnection


class ListBatch(NamedTuple):
    """Objects that are observed together: their number, and the moment of the observation."""

    objects: int
    asked_at: float  # on the monotonic clock


class ProviderCalls:
    """The services that verbs have called, for circuit breakers; whether a service does not know an object.

    With a `batch`, only lists that observers share may be requested: an object that needs a request of its
    own would delay the rest. `needs_request` then says that another request was refused, whatever the type
    has made of the error.
    """

    __slots__ = ("_in_list", "batch", "needs_request", "reservation", "services", "unknown_object")

    def __init__(self, batch: ListBatch | None = None) -> None:
        """Nothing is called yet."""
        self.batch = batch
        self.reservation: Reservation | None = None  # of the create in progress
        self.services: set[str] = set()
        self.unknown_object = self.needs_request = self._in_list = False

    def note_request(self, service: str) -> None:
        """Note a request to a service before it is sent.

        Raises:
            NeedsOwnRequest: only shared lists may be requested.
        """
        if self.batch is not None and not self._in_list:
            self.needs_request = True
            raise NeedsOwnRequest("the object needs a request of its own")
        self.services.add(service)

    def note_answer(self, status: int) -> None:
        """Note the status of an answer."""
        if status == NOT_FOUND:
            self.unknown_object = True

    @contextmanager
    def list_request(self) -> Iterator[None]:
        """Permit the requests during the body: they are for a shared list."""
        before, self._in_list = self._in_list, True
        try:
            yield
        finally:
            self._in_list = before

    @property
    def objects(self) -> int:
        """The number of objects that are observed together, 0 for a single object."""
        return 0 if self.batch is None else self.batch.objects

    @property
    def asked_at(self) -> float:
        """The moment of the present observation: all objects observed together have the same."""
        return time.monotonic() if self.batch is None else self.batch.asked_at
