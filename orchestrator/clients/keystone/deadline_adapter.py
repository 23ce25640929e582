"""Transport of keystoneauth1's sessions with a wall-clock limit; requires the extra `keystone`.

keystoneauth1 sends its requests with the library requests, whose timeout applies to each read. This adapter
sends them through `clients/deadline.py` instead. Connections are kept for following requests. Responses are
read completely, up to MAX_BYTES. Proxies of the environment are not used.
"""

from __future__ import annotations

import io
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import httpcore
import httpx
import requests
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3 import HTTPHeaderDict, HTTPResponse

from orchestrator.clients.deadline import PIECE, Deadline, DeadlineBackend, read_body, verifying

MAX_BYTES: Final = 64 * 1024 * 1024  # of a response
KEPT_SECONDS: Final = 5.0  # that an idle connection is kept

_current: ContextVar[Deadline] = ContextVar("keystone_deadline")


class DeadlineAdapter(BaseAdapter):
    """Sends each request within `seconds`, or within the timeout that the session sets for the request."""

    def __init__(self, seconds: float) -> None:
        """Open no connection yet."""
        super().__init__()
        self._seconds = seconds
        self._pools: dict[tuple[object, object], httpcore.ConnectionPool] = {}
        self._lock = threading.Lock()
        self._responses = HTTPAdapter()  # builds requests' response objects; sends nothing

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: ARG002
        timeout: object = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> requests.Response:
        """Return the response.

        Raises:
            requests.exceptions.RequestException: no complete response in time.
        """
        seconds = timeout if isinstance(timeout, int | float) else self._seconds
        token = _current.set(Deadline(seconds))
        try:
            answer, data = _exchange(self._pool(verify, cert), request)
        except httpcore.ConnectTimeout as error:
            raise requests.exceptions.ConnectTimeout(str(error), request=request) from error
        except httpcore.TimeoutException as error:
            raise requests.exceptions.ReadTimeout(str(error), request=request) from error
        except httpcore.ConnectError as error:
            is_tls = isinstance(error.__cause__, ssl.SSLError)
            failure = requests.exceptions.SSLError if is_tls else requests.exceptions.ConnectionError
            raise failure(str(error), request=request) from error
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            why = str(error) or type(error).__name__
            raise requests.exceptions.ConnectionError(why, request=request) from error
        finally:
            _current.reset(token)
        if len(data) > MAX_BYTES:
            raise requests.exceptions.ContentDecodingError("the response is too large", request=request)
        headers = HTTPHeaderDict(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers
        )
        raw = HTTPResponse(
            io.BytesIO(data),
            headers=headers,
            status=answer.status,
            reason=answer.extensions.get("reason_phrase", b"").decode("latin-1"),
            preload_content=False,
            request_method=request.method,
        )
        return self._responses.build_response(request, raw)

    def close(self) -> None:
        """Close the kept connections."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def _pool(self, verify: bool | str, cert: Any) -> httpcore.ConnectionPool:
        key = (verify, tuple(cert) if isinstance(cert, list) else cert)
        with self._lock:
            if key not in self._pools:
                self._pools[key] = httpcore.ConnectionPool(
                    network_backend=DeadlineBackend(_current.get),
                    ssl_context=_context(verify, cert),
                    max_connections=None,
                    keepalive_expiry=KEPT_SECONDS,
                )
            return self._pools[key]


def with_deadline(session: Any, seconds: float) -> Any:
    """Return a session of keystoneauth1 whose requests end within `seconds`."""
    adapter = DeadlineAdapter(seconds)
    for scheme in ("http://", "https://"):
        session.session.mount(scheme, adapter)
    return session


def _exchange(
    pool: httpcore.ConnectionPool, request: requests.PreparedRequest
) -> tuple[httpcore.Response, bytes]:
    """Return the response and its body, which is too large if it has more than MAX_BYTES."""
    url = httpx.URL(request.url or "")
    headers = [
        (b"Host", url.netloc),
        *((_bytes(name), _bytes(value)) for name, value in request.headers.items()),
    ]
    with pool.stream(
        request.method or "GET",
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=headers,
        content=_content(request.body),
    ) as answer:
        return answer, read_body(answer, MAX_BYTES)


def _content(body: Any) -> bytes | Iterator[bytes] | None:
    """Return the body of a request, in the form for httpcore."""
    if body is None or isinstance(body, str | bytes):
        return body.encode() if isinstance(body, str) else body
    pieces = iter(lambda: body.read(PIECE), b"") if hasattr(body, "read") else iter(body)
    return (piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def _context(verify: bool | str, cert: Any) -> ssl.SSLContext:
    """Return the context for a CA file or directory, and a client certificate (path, or paths with key)."""
    if verify is True and not cert:
        return verifying()
    if isinstance(verify, str):
        place = {"capath" if Path(verify).is_dir() else "cafile": verify}
        context = ssl.create_default_context(**place)  # type: ignore[arg-type]
    else:
        context = httpx.create_ssl_context(trust_env=False)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if cert:
        context.load_cert_chain(*((cert,) if isinstance(cert, str) else cert))
    return context


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value
