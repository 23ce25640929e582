"""Headers of every response: no cache stores it, and no browser guesses another type for it.

A response may contain a secret of its caller, whatever its route. A route whose responses may be stored sets
`Cache-Control` itself: files of the console, and pictures, which a browser keeps and revalidates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from api.dependencies import Wsgi

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

DEFAULTS: Final = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


class ResponseHeaders:
    """WSGI middleware that adds the headers which a response does not have."""

    def __init__(self, app: Wsgi) -> None:
        """Wrap `app`."""
        self.app = app

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on."""

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            given = {name.lower() for name, _ in headers}
            added = [(name, value) for name, value in DEFAULTS if name.lower() not in given]
            return start_response(status, [*headers, *added], *rest)

        return self.app(environ, start)
