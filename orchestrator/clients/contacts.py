"""The services that a verb calls: circuit breakers count their answers, whatever the type of the resource."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_contacts: ContextVar[set[str] | None] = ContextVar("contacts", default=None)


@contextmanager
def recorded_contacts(services: set[str]) -> Iterator[None]:
    """Add the services that are called during the body, in this thread."""
    token = _contacts.set(services)
    try:
        yield
    finally:
        _contacts.reset(token)


def note_contact(service: str) -> None:
    """Note a request to a service."""
    services = _contacts.get()
    if services is not None:
        services.add(service)
