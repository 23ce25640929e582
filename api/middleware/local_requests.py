"""Requests from this machine: with `auth = none`, all other requests are rejected before any route.

Two facts are checked; with a simulated cloud only the second. The peer of the connection has a loopback
address, regardless of how the socket was bound. The header Host has a loopback name, because a web page can
give its own name an address of this machine (DNS rebinding), and its browser then treats our responses as
the page's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from api.dependencies import Wsgi
from api.middleware.proxies import peer_address
from api.response.errors import fault
from orchestrator import logs
from orchestrator.browser_requests import host_name, is_loopback_name, names_in
from orchestrator.config import Settings, is_loopback

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

log = logs.logger()

MAX_QUOTED: Final = 100  # characters of a header that an error message quotes
FOREIGN_PEER: Final = (
    "Without authentication (ORCHESTRATOR_AUTH=none) the API answers connections from this machine only."
)
FORWARDED_FOR: Final = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP")
_FORWARDED: Final = re.compile(r'for\s*=\s*"?([^";,\s]+)', re.IGNORECASE)


class LocalRequests:
    """WSGI middleware that passes local requests on."""

    def __init__(self, app: Wsgi, settings: Settings) -> None:
        """Wrap `app`. The host of `heat_metadata_server_url` is allowed, since signed URLs contain it."""
        self.app = app
        self._checks_peer = settings.auth == "none"
        endpoint = host_name(urlsplit(settings.endpoint).netloc)
        self._names = names_in(settings.allowed_hosts) | ({endpoint} if endpoint else set())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Reject the request with 403 or 421, or pass it on."""
        peer = peer_address(environ)
        is_near = peer is not None and is_loopback(peer) and _is_forwarded_for_loopback(environ)
        if self._checks_peer and not is_near:
            log.warning("foreign_peer_rejected", peer=peer)
            return fault(403, "Forbidden", FOREIGN_PEER)(environ, start_response)
        original = environ.get("werkzeug.proxy_fix.orig", {}).get("HTTP_HOST")
        for host in (environ.get("HTTP_HOST"), original):
            if host is not None and not self._is_allowed(host):
                log.warning("foreign_host_rejected", host=host[:MAX_QUOTED])
                return fault(421, "HTTPMisdirectedRequest", _foreign(host))(environ, start_response)
        return self.app(environ, start_response)

    def _is_allowed(self, host: str) -> bool:
        return is_loopback_name(host) or host_name(host) in self._names


def _is_forwarded_for_loopback(environ: WSGIEnvironment) -> bool:
    """Whether no proxy reports a client of another machine."""
    listed = ",".join(environ[name] for name in FORWARDED_FOR if name in environ)
    addresses = [text.strip() for text in listed.split(",") if text.strip()]
    addresses += _FORWARDED.findall(environ.get("HTTP_FORWARDED", ""))
    return all(is_loopback(text) or is_loopback_name(text) for text in addresses)


def _foreign(host: str) -> str:
    return (
        f"The API does not serve the host name {host[:MAX_QUOTED]!r}. Without authentication "
        "(ORCHESTRATOR_AUTH=none), and with a simulated cloud, it serves loopback names, such as localhost "
        "and 127.0.0.1, and the names in ORCHESTRATOR_ALLOWED_HOSTS."
    )
