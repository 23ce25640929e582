"""Fetch a text from a URL in a template. The template's author must not gain access to our network.

Size, time and redirects are bounded. Addresses of private networks are refused unless the operator allows
them: a host name is resolved once, and the connection uses the resolved address, so a changed DNS answer has
no effect. Proxies, cookies and credentials are not used.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

import httpcore
import httpx

from orchestrator.clients.public_addresses import is_public
from orchestrator.config import Settings
from orchestrator.errors import CouldNotFetch

REMOTE: Final = ("http", "https")
MAX_REDIRECTS: Final = 5
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = ((b"Accept-Encoding", b"identity"), (b"User-Agent", b"stack-orchestrator"))
_BROKEN: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


class _TooLarge(Exception):
    """The text exceeds the size limit."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Limits: `max_bytes` for each text, `seconds` for all texts of a `Fetcher`."""

    max_bytes: int
    seconds: float = 60.0
    most: int = 100  # number of texts
    private: bool = False  # allow addresses of private networks


class Fetcher:
    """Fetches the texts of a request."""

    def __init__(self, rules: Fetched) -> None:
        """The time limit starts with the first text."""
        self.rules = rules
        self._remaining, self._deadline = rules.most, 0.0

    def __call__(self, url: str, schemes: Collection[str] = REMOTE) -> str:
        """Return the text at a URL. With `file` among `schemes`, local files are allowed.

        Raises:
            CouldNotFetch: it does not exist, exceeds a limit, or must not be fetched.
        """
        scheme = url.partition(":")[0].lower() if ":" in url else ""
        if scheme not in schemes:
            raise CouldNotFetch(url, f"Invalid URL scheme {scheme}")
        if not self._deadline:
            self._deadline = time.monotonic() + self.rules.seconds
        if not self._remaining:
            raise _failed(url, f"a request may make us fetch {self.rules.most} texts")
        self._remaining -= 1
        try:
            data = self._read_file(url) if scheme == "file" else self._get(url)
            return data.decode()
        except _TooLarge as error:
            message = f"Template exceeds maximum allowed size ({self.rules.max_bytes} bytes)"
            raise CouldNotFetch(url, message) from error
        except UnicodeDecodeError as error:
            raise _failed(url, "it is no text in UTF-8") from error
        except (OSError, ValueError, httpx.InvalidURL, *_BROKEN) as error:
            raise _failed(url, str(error) or type(error).__name__) from error
        except httpcore.TimeoutException as error:
            raise _failed(url, f"it took longer than {self.rules.seconds:g} seconds") from error

    def _read_file(self, url: str) -> bytes:
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            return self._bounded([file.read(self.rules.max_bytes + 1)])

    def _get(self, url: str) -> bytes:
        backend = PublicOnlyBackend(self.rules.private)
        with httpcore.ConnectionPool(network_backend=backend, ssl_context=verifying()) as pool:
            for _ in range(MAX_REDIRECTS + 1):
                with pool.stream(
                    "GET", parts_of(url), headers=_headers(url), extensions=self._times()
                ) as answer:
                    if answer.status not in REDIRECTS:
                        return self._body(answer)
                    url = _onwards(url, answer.headers)
        raise ValueError(f"it leads on more than {MAX_REDIRECTS} times")

    def _body(self, answer: httpcore.Response) -> bytes:
        if answer.status != httpx.codes.OK:
            raise ValueError(f"the answer was {answer.status}")
        return self._bounded(self._in_time(answer.iter_stream()))

    def _bounded(self, chunks: Iterable[bytes]) -> bytes:
        data = bytearray()
        for chunk in chunks:
            data += chunk
            if len(data) > self.rules.max_bytes:
                raise _TooLarge
        return bytes(data)

    def _in_time(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self._times()
            yield chunk

    def _times(self) -> dict[str, Any]:
        """Return the remaining time as the timeout of a single step."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout
        return {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), remaining)}


class PublicOnlyBackend(httpcore.SyncBackend):
    """Connects to public addresses only, unless `private` allows others."""

    def __init__(self, private: bool) -> None:
        self._private = private

    def connect_tcp(self, host: str, port: int, *args: Any, **kwargs: Any) -> httpcore.NetworkStream:
        addresses = [row[4][0] for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        usable = [address for address in map(str, addresses) if self._private or is_public(address)]
        if not usable:
            raise ValueError("its address is not a public one")
        return super().connect_tcp(usable[0], port, *args, **kwargs)


def verifying() -> Any:
    """Return the verification context: the system's authorities, independent of the environment."""
    return httpx.create_ssl_context(trust_env=False)


def parts_of(url: str) -> httpcore.URL:
    """Return the parts of a URL as used for the connection.

    Raises:
        ValueError: it has no host, or has a user name.
    """
    parsed = httpx.URL(url)
    if parsed.userinfo or not parsed.host:
        raise ValueError("its address must have a host, and no user")
    return httpcore.URL(
        scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path
    )


def _headers(url: str) -> list[tuple[bytes, bytes]]:
    return [(b"Host", httpx.URL(url).netloc), *_HEADERS]


def _onwards(url: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    location = next((value.decode("latin-1") for name, value in headers if name.lower() == b"location"), "")
    onwards = urljoin(url, location)
    allowed = ("https",) if urlsplit(url).scheme == "https" else REMOTE
    if not location or urlsplit(onwards).scheme not in allowed:
        raise ValueError("it leads on to nowhere that may be fetched")
    return onwards


def _failed(url: str, why: str) -> CouldNotFetch:
    return CouldNotFetch(url, f"Failed to retrieve template from {url}", why)


def fetcher(settings: Settings) -> Fetcher:
    """Return a fetcher for the files of a request."""
    return Fetcher(
        Fetched(
            max_bytes=min(settings.max_fetched_size, settings.max_template_size),
            seconds=settings.template_fetch_timeout,
            private=settings.template_fetch_allow_private,
        )
    )
