"""Headers of proxies: X-Forwarded-* take effect only if the peer of the connection is a trusted proxy.

The peer is read from the socket. Gunicorn on its own accepts `SCRIPT_NAME` and the scheme from every local
client; these values are reverted here, because a stock worker class may have applied them.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any, Final

from werkzeug.middleware.proxy_fix import ProxyFix

from api.dependencies import Wsgi
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

SOCKET: Final = "gunicorn.socket"  # key of the connection in the WSGI environment


def peer_address(environ: WSGIEnvironment) -> str | None:
    """Return the address of the connection's peer; None for a unix socket and for a closed connection.

    The PROXY protocol and X-Forwarded-For have no effect on it. A server that does not pass its socket to the
    application must set REMOTE_ADDR itself.
    """
    connection = environ.get(SOCKET)
    if connection is None:
        original: dict[str, Any] = environ.get("werkzeug.proxy_fix.orig", environ)
        return original.get("REMOTE_ADDR") or None
    try:
        name = connection.getpeername()
    except OSError:
        return None
    return str(name[0]) if isinstance(name, tuple) else None


class TrustedProxies:
    """WSGI middleware that applies the headers of trusted proxies and no others."""

    def __init__(self, app: Wsgi, settings: Settings) -> None:
        """Wrap `app`.

        Raises:
            Misconfigured: `trusted_proxy_addresses` is not valid.
        """
        self.app = app
        count = settings.trusted_proxies
        self._forwarded = (
            ProxyFix(app, x_for=count, x_proto=count, x_host=count, x_prefix=count) if count else None
        )
        self._is_trusted = _matcher(settings.trusted_proxy_addresses)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass the request on, with the forwarded values of a trusted proxy."""
        _revert_forwarded_values(environ)
        if self._forwarded is not None and self._is_trusted(peer_address(environ)):
            return self._forwarded(environ, start_response)
        return self.app(environ, start_response)


def _matcher(addresses: str) -> Callable[[str | None], bool]:
    """Return whether the peer with an address is a trusted proxy; a unix socket has no other peers.

    Raises:
        Misconfigured: the list is not valid.
    """
    try:
        networks = [ip_network(text.strip(), strict=False) for text in addresses.split(",") if text.strip()]
    except ValueError as error:
        raise Misconfigured(f"ORCHESTRATOR_TRUSTED_PROXY_ADDRESSES: {error}") from error

    @lru_cache(maxsize=1_024)
    def matches(address: str | None) -> bool:
        if address is None:
            return True
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        embedded = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
        return any((embedded or parsed) in network for network in networks)

    return matches


def _revert_forwarded_values(environ: WSGIEnvironment) -> None:
    """Undo the effect of the headers SCRIPT_NAME and X-Forwarded-Proto in gunicorn."""
    connection = environ.get(SOCKET)
    if connection is None:
        return
    environ["wsgi.url_scheme"] = "https" if isinstance(connection, ssl.SSLSocket) else "http"
    prefix = environ.pop("HTTP_SCRIPT_NAME", None)
    if prefix is not None and environ.get("SCRIPT_NAME") == prefix:
        environ["PATH_INFO"] = prefix + environ["PATH_INFO"]
        environ["SCRIPT_NAME"] = ""
