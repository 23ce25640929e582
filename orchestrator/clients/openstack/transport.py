"""The way of a request to a service, and its answer.

`ServiceApi` builds a `Request`, a `Transport` sends it. Tests have their own transport.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlencode

import orjson

from orchestrator.clients.provider_calls import Reservation

Query = Mapping[str, Any]
Content = bytes | Iterable[bytes]

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Request(NamedTuple):
    """A request to a service; `path` is relative to the endpoint of the major version: `/servers`."""

    service: str  # as Heat names it: nova
    service_type: str  # as the catalog names it: compute
    method: str
    path: str
    query: Query = NOTHING  # a list is a repeated key; None is left out
    body: Any = None  # a JSON value; None: no body
    content: Content | None = None  # a body that is no JSON
    headers: Mapping[str, str] = NOTHING
    microversion: str | None = None
    root: str = ""  # between the endpoint and the path: /lbaas
    owner: str = ""  # the tree of stacks; trees share the budget of a service fairly
    background: bool = False  # after all other requests
    reservation: Reservation | None = None  # of the create that it belongs to

    @property
    def target(self) -> str:
        """The path below the endpoint, with the query."""
        if not self.query:
            return self.root + self.path
        given = {key: value for key, value in self.query.items() if value is not None}
        query = f"?{urlencode(given, doseq=True)}" if given else ""
        return f"{self.root}{self.path}{query}"

    @property
    def changes(self) -> bool:
        """Whether the request is more than a read."""
        return self.method not in ("GET", "HEAD")

    @property
    def kind(self) -> str:
        """The method and the collection: requests of similar duration."""
        parts = self.path.strip("/").split("/")
        return f"{self.method} {parts[0]}/{parts[-1] if len(parts) > 2 or parts[-1] == 'detail' else ''}"


class Answer(NamedTuple):
    """The answer of a service."""

    status: int
    headers: Mapping[str, str] = NOTHING  # names in lower case
    content: bytes = b""

    def json(self) -> Any:
        """Return the JSON of the answer, {} without a body; its text if it is no JSON."""
        if not self.content:
            return {}
        try:
            return orjson.loads(self.content)
        except ValueError:
            return self.content.decode(errors="replace")


@runtime_checkable
class Transport(Protocol):
    """Sends requests as a credential in a region."""

    def send(self, request: Request, seconds: float) -> Answer:
        """Return the answer of a service, whatever its status, within `seconds`.

        Raises:
            ProviderUnreachable: nothing was sent.
            ProviderSilent: the request may have been carried out.
            ProviderError: the credentials are not valid, or the service has no endpoint.
        """
        ...

    def versions(self, service: str, service_type: str, seconds: float) -> tuple[str, str]:
        """Return the lowest and the highest microversion of a service, ("", "") without microversions."""
        ...

    def url(self, service: str, service_type: str, seconds: float) -> str:
        """Return the URL of a service's major version."""
        ...

    def owner(self, seconds: float) -> tuple[str, str]:
        """Return the names of the project and of the user of the credential."""
        ...
