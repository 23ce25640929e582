"""Fetch a text from a URL in a template. The template's author must not gain access to our network.

Size, time and redirects are bounded. Addresses of private networks are refused unless the operator allows
them: a host name is resolved once, and the connection uses the resolved address, so a changed DNS answer has
no effect. Proxies, cookies and credentials are not used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import httpcore
import httpx

from orchestrator.clients.deadline import Deadline, open_response, read_body
from orchestrator.clients.public_addresses import is_public
from orchestrator.config import Settings
from orchestrator.errors import CouldNotFetch

REMOTE: Final = ("http", "https")
MAX_REDIRECTS: Final = 5
MAX_BYTES: Final = 4 * 1024 * 1024  # of a document
FETCH_SECONDS: Final = 60.0  # for all fetches of a request
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
        self._remaining = rules.most
        self._deadline: Deadline | None = None

    def __call__(self, url: str, schemes: Collection[str] = REMOTE) -> str:
        """Return the text at a URL. With `file` among `schemes`, local files are allowed.

        Raises:
            CouldNotFetch: it does not exist, exceeds a limit, or must not be fetched.
        """
        scheme = url.partition(":")[0].lower() if ":" in url else ""
        if scheme not in schemes:
            raise CouldNotFetch(url, f"Invalid URL scheme {scheme}")
        if self._deadline is None:
            self._deadline = Deadline(self.rules.seconds)
        if not self._remaining:
            raise _failed(url, f"a request may make us fetch {self.rules.most} texts")
        self._remaining -= 1
        try:
            data = self._read_file(url) if scheme == "file" else self._get(url, self._deadline)
            return data.decode()
        except _TooLarge as error:
            message = f"Template exceeds maximum allowed size ({self.rules.max_bytes} bytes)"
            raise CouldNotFetch(url, message) from error
        except UnicodeDecodeError as error:
            raise _failed(url, "it is no text in UTF-8") from error
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise _failed(url, f"it took longer than {self.rules.seconds:g} seconds") from error
        except (OSError, ValueError, httpx.InvalidURL, *_BROKEN) as error:
            raise _failed(url, str(error) or type(error).__name__) from error

    def _read_file(self, url: str) -> bytes:
        with Path(unquote(urlsplit(url).path)).open("rb") as file:
            return self._bounded(file.read(self.rules.max_bytes + 1))

    def _get(self, url: str, deadline: Deadline) -> bytes:
        accept = None if self.rules.private else is_public
        for _ in range(MAX_REDIRECTS + 1):
            with open_response("GET", parts_of(url), _headers(url), deadline, accept=accept) as answer:
                if answer.status not in REDIRECTS:
                    return self._body(answer)
                url = _onwards(url, answer.headers)
        raise ValueError(f"it leads on more than {MAX_REDIRECTS} times")

    def _body(self, answer: httpcore.Response) -> bytes:
        if answer.status != httpx.codes.OK:
            raise ValueError(f"the answer was {answer.status}")
        return self._bounded(read_body(answer, self.rules.max_bytes))

    def _bounded(self, data: bytes) -> bytes:
        if len(data) > self.rules.max_bytes:
            raise _TooLarge
        return data


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
            max_bytes=min(MAX_BYTES, settings.max_template_size),
            seconds=FETCH_SECONDS,
            private=settings.template_fetch_allow_private,
        )
    )
