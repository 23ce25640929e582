"""The mount point of the console: `/ui` is a separate application before the routes of the API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from api.dependencies import Wsgi

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX: Final = "/ui"
MOUNT: Final = "orchestrator.console.mount"  # SCRIPT_NAME of the API for a request of the console


class Mounted:
    """WSGI middleware that passes requests below `/ui` to the console and all other requests to the API."""

    def __init__(self, api: Wsgi, console: Wsgi) -> None:
        """Connect the two applications."""
        self.api, self.console = api, console

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on; for the console the prefix moves to SCRIPT_NAME."""
        path = environ.get("PATH_INFO", "")
        if path != PREFIX and not path.startswith(f"{PREFIX}/"):
            return self.api(environ, start_response)
        environ[MOUNT] = environ.get("SCRIPT_NAME", "")
        environ["SCRIPT_NAME"] = environ[MOUNT] + PREFIX
        environ["PATH_INFO"] = path[len(PREFIX) :]
        return self.console(environ, start_response)
