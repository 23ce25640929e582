"""The services that a verb calls: circuit breakers count their answers, whatever the type of the resource."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

NOT_FOUND: Final = 404


@dataclass(slots=True)
class Contacts:
    """The services that a verb has called, and whether a service does not know an object."""

    services: set[str] = field(default_factory=set)
    unknown_object: bool = False


_contacts: ContextVar[Contacts | None] = ContextVar("contacts", default=None)


@contextmanager
def recorded_contacts(contacts: Contacts) -> Iterator[None]:
    """Record the requests of this thread during the body."""
    token = _contacts.set(contacts)
    try:
        yield
    finally:
        _contacts.reset(token)


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
