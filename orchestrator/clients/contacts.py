"""The services that a verb calls: circuit breakers count their answers, whatever the type of the resource."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Final

NOT_FOUND: Final = 404


class Contacts:
    """The services that a verb has called, and whether a service does not know an object.

    They record the requests of this thread in the body of a `with`: a class, because a generator makes twice
    as many calls.
    """

    __slots__ = ("_token", "services", "unknown_object")

    _token: Token[Contacts | None]

    def __init__(self) -> None:
        """Nothing is called yet."""
        self.services: set[str] = set()
        self.unknown_object = False

    def __enter__(self) -> None:
        """Record the requests from now on."""
        self._token = _contacts.set(self)

    def __exit__(self, *_: object) -> None:
        """Record no more."""
        _contacts.reset(self._token)


_contacts: ContextVar[Contacts | None] = ContextVar("contacts", default=None)


def note_contact(service: str) -> None:
    """Note a request to a service."""
    contacts = _contacts.get()
    if contacts is not None:
        contacts.services.add(service)


def note_answer(status: int) -> None:
    """Note the status of an answer."""
    contacts = _contacts.get()
    if contacts is not None and status == NOT_FOUND:
        contacts.unknown_object = True
