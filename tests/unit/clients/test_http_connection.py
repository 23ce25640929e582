"""Exchanges over real sockets: reuse of connections, early ends, TLS, failures."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpcore
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from orchestrator.clients.deadline import Deadline
from orchestrator.clients.http_connection import HttpConnection, TooLarge
from orchestrator.clients.http_messages import Content
from orchestrator.clients.keystone.deadline_adapter import DeadlineAdapter
from tests.unit.clients.test_http_messages import COMPLETE, MALFORMED

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LENGTH = b"content-length: "

Peer = Callable[[socket.socket], None]


class Service:
    """A service whose connections run `behaviour`, in a thread each."""

    def __init__(self, behaviour: Peer, context: ssl.SSLContext | None = None) -> None:
        self.behaviour, self.context = behaviour, context
        self.connections = 0
        self.ended = threading.Event()  # a connection has ended
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{port}/x"
        threading.Thread(target=self._accept, daemon=True).start()

    def connection(self, seconds: float = 5.0) -> HttpConnection:
        return HttpConnection(httpcore.URL(self.url), None, seconds)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            if self.context is None:
                self.behaviour(connection)
            else:
                with self.context.wrap_socket(connection, server_side=True) as encrypted:
                    self.behaviour(encrypted)
        self.ended.set()


@contextlib.contextmanager
def service(behaviour: Peer, context: ssl.SSLContext | None = None) -> Iterator[Service]:
    running = Service(behaviour, context)
    try:
        yield running
    finally:
        running.listener.shutdown(socket.SHUT_RDWR)
        running.listener.close()


def request_of(connection: socket.socket) -> bytes:
    """Return a complete request, b"" at the end of the connection."""
    data = b""
    while True:
        head, _, body = data.partition(b"\r\n\r\n")
        if data != head:
            lines = head.lower().split(b"\r\n")
            lengths = [int(line.removeprefix(LENGTH)) for line in lines if line.startswith(LENGTH)]
            chunked = b"transfer-encoding: chunked" in lines
            if body.endswith(b"0\r\n\r\n") if chunked else len(body) >= sum(lengths):
                return data
        piece = connection.recv(65_536)
        if not piece:
            return b""
        data += piece


def answering(answer: bytes, requests: list[bytes] | None = None, most: int = 100) -> Peer:
    """Send the answer to each request, and end the connection after `most`."""

    def behaviour(connection: socket.socket) -> None:
        for _ in range(most):
            request = request_of(connection)
            if not request:
                return
            if requests is not None:
                requests.append(request)
            connection.sendall(answer)

    return behaviour


def ask(
    adapter: DeadlineAdapter, url: str, method: str = "GET", content: Content = None, seconds: float = 5.0
) -> tuple[int, bytes]:
    answer = adapter.exchange(method, url, (), content, Deadline(seconds))
    return answer.status, answer.content


@pytest.fixture
def adapter() -> Iterator[DeadlineAdapter]:
    with contextlib.closing(DeadlineAdapter(5.0)) as opened:
        yield opened


@pytest.mark.parametrize("case", COMPLETE)
def test_a_connection_is_used_again_if_nothing_follows_a_complete_response(
    adapter: DeadlineAdapter, case: str
) -> None:
    method, answer, status, body, is_reusable = COMPLETE[case]
    with service(answering(answer)) as running:
        for _ in range(2):
            assert ask(adapter, running.url, method.decode()) == (status, body)
        assert running.connections == (1 if is_reusable else 2)


@pytest.mark.parametrize("case", MALFORMED)
def test_the_connection_of_a_malformed_response_is_closed(adapter: DeadlineAdapter, case: str) -> None:
    with service(answering(MALFORMED[case])) as running:
        with pytest.raises(httpcore.RemoteProtocolError):
            ask(adapter, running.url)
        assert running.ended.wait(60.0)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nX-", ANSWER[:-1], b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_a_connection_that_ends_early_is_a_failure(adapter: DeadlineAdapter, answer: bytes) -> None:
    with service(answering(answer, most=1)) as running, pytest.raises(httpcore.ProtocolError):
        ask(adapter, running.url)


def test_a_response_without_a_stated_length_ends_with_the_connection(adapter: DeadlineAdapter) -> None:
    with service(answering(b"HTTP/1.1 200 OK\r\n\r\nok", most=1)) as running:
        for _ in range(2):
            assert ask(adapter, running.url) == (200, b"ok")
        assert running.connections == 2


def test_bytes_that_arrive_later_end_the_use_of_a_connection() -> None:
    may_send = threading.Event()

    def behaviour(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(ANSWER)
        may_send.wait(60.0)
        connection.sendall(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        request_of(connection)

    with service(behaviour) as running, contextlib.closing(running.connection(60.0)) as connection:
        connection.exchange(b"GET", b"/", [(b"Host", b"x")], None, Deadline(5.0), 100)
        assert connection.is_reusable
        assert not connection.has_expired()
        may_send.set()
        until = time.monotonic() + 5.0
        while not connection.has_expired():
            assert time.monotonic() < until


def test_a_connection_expires() -> None:
    with service(answering(ANSWER)) as running, contextlib.closing(running.connection(0.0)) as connection:
        connection.exchange(b"GET", b"/", [(b"Host", b"x")], None, Deadline(5.0), 100)
        assert connection.is_reusable
        assert connection.has_expired()


@pytest.mark.parametrize(
    ("content", "ends"),
    [
        (None, b"\r\n\r\n"),
        (b"{}", b"Content-Length: 2\r\n\r\n{}"),
        ([b"ab", b"c"], b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"),
        (b"x" * 1_000_000, b"x" * 1_000_000),
        ([b"y" * 400_000] * 2, b"61a80\r\n" + b"y" * 400_000 + b"\r\n0\r\n\r\n"),
    ],
)
def test_a_request_is_sent_with_its_body(adapter: DeadlineAdapter, content: Content, ends: bytes) -> None:
    requests: list[bytes] = []
    with service(answering(ANSWER, requests)) as running:
        for _ in range(2):
            assert ask(adapter, running.url, "POST", content) == (200, b"ok")
        assert running.connections == 1
    for request in requests:
        assert request.startswith(f"POST /x HTTP/1.1\r\nHost: {running.url[7:-2]}\r\n".encode())
        assert request.endswith(ends)


def test_head_and_body_of_a_small_request_are_sent_together(adapter: DeadlineAdapter) -> None:
    pieces: list[bytes] = []

    def behaviour(connection: socket.socket) -> None:
        pieces.append(connection.recv(65_536))
        connection.sendall(ANSWER)

    with service(behaviour) as running:
        ask(adapter, running.url, "POST", b"{}")
    assert pieces[0].endswith(b"\r\n\r\n{}")


@pytest.mark.parametrize("content", [b"x" * 8_000_000, [b"x" * 100_000] * 80])
def test_an_answer_before_the_end_of_a_request_is_read(content: Content) -> None:
    def behaviour(connection: socket.socket) -> None:
        connection.recv(64)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge")
        # The connection is reset, because the request has not been read.

    with service(behaviour) as running, contextlib.closing(running.connection()) as connection:
        answer = connection.exchange(b"POST", b"/", [(b"Host", b"x")], content, Deadline(5.0), 100)
        assert (answer.status, answer.content) == (413, b"large")
        assert not connection.is_reusable


def test_a_content_that_fails_ends_the_connection(adapter: DeadlineAdapter) -> None:
    class Unreadable(Exception):
        pass

    def pieces() -> Iterator[bytes]:
        yield b"a" * 100_000
        raise Unreadable

    with service(answering(ANSWER)) as running:
        with pytest.raises(Unreadable):
            ask(adapter, running.url, "POST", pieces())
        assert running.ended.wait(60.0)
        assert ask(adapter, running.url, "POST", b"{}") == (200, b"ok")


@pytest.mark.parametrize("header", [("X-A", "1\r\nX-Evil: 1"), ("X-A\r\nX-Evil", "1"), ("X-A", "a\0b")])
def test_nothing_is_sent_with_an_injected_header(adapter: DeadlineAdapter, header: tuple[str, str]) -> None:
    with service(answering(ANSWER)) as running:
        with pytest.raises(httpcore.LocalProtocolError):
            adapter.exchange("GET", running.url, [header], None, Deadline(5.0))
        assert running.connections == 0


def test_a_large_response_is_not_read_to_its_end() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
    with service(answering(answer)) as running, contextlib.closing(running.connection()) as connection:
        fields = [(b"Host", b"x")]
        assert connection.exchange(b"GET", b"/", fields, None, Deadline(5.0), 3).content == b"abc"
        with pytest.raises(TooLarge):
            connection.exchange(b"GET", b"/", fields, None, Deadline(5.0), 2)
        assert not connection.is_reusable
        assert connection.has_expired()


def test_a_body_is_not_decompressed(adapter: DeadlineAdapter) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
    with service(answering(answer)) as running:
        answered = adapter.exchange("GET", running.url, (), None, Deadline(5.0))
    assert (answered.content, answered.reason) == (b"\x1f\x8b", "OK")
    assert answered.headers == [(b"Content-Encoding", b"gzip"), (b"Content-Length", b"2")]


def drip(connection: socket.socket, begin: bytes) -> None:
    connection.sendall(begin)
    for _ in range(100):
        connection.sendall(b"x")
        time.sleep(0.05)


@pytest.mark.parametrize(
    "begin", [b"HTTP/1.1 200 OK\r\nX-Long: ", ANSWER[:17] + b"Content-Length: 900\r\n\r\n"]
)
def test_an_exchange_ends_at_its_deadline(adapter: DeadlineAdapter, begin: bytes) -> None:
    with service(lambda connection: drip(connection, begin)) as running:
        with pytest.raises(httpcore.ReadTimeout):
            ask(adapter, running.url, seconds=0.3)
        assert running.ended.wait(60.0)


def test_each_exchange_of_a_connection_has_its_own_deadline() -> None:
    with service(answering(ANSWER)) as running, contextlib.closing(running.connection()) as connection:
        connection.open(Deadline(5.0))
        fields = [(b"Host", b"x")]
        connection.exchange(b"GET", b"/", fields, None, Deadline(5.0), 100)
        with pytest.raises(httpcore.TimeoutException):
            connection.exchange(b"GET", b"/", fields, None, Deadline(0.0), 100)
        connection.exchange(b"GET", b"/", fields, None, Deadline(5.0), 100)
        assert running.connections == 2


def test_a_failure_before_the_request_is_one_of_the_connection(adapter: DeadlineAdapter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(httpcore.ConnectError):
        ask(adapter, f"http://127.0.0.1:{port}/")
    with pytest.raises(httpcore.UnsupportedProtocol):
        HttpConnection(httpcore.URL("ftp://127.0.0.1/"), None, 5.0)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """The certificate of 127.0.0.1, which is its own authority, and the context of a server."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "service")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "service.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return path, context


def test_a_service_is_verified_and_its_connection_kept(
    adapter: DeadlineAdapter, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    path, context = certificate
    with service(answering(ANSWER), context) as running:
        with pytest.raises(httpcore.ConnectError) as refused:
            ask(adapter, running.url)
        assert isinstance(refused.value.__cause__, ssl.SSLCertVerificationError)
        deadline = Deadline(5.0)
        with adapter.connected(running.url, deadline, verify=str(path)) as held:
            for _ in range(2):
                answer = adapter.exchange("GET", running.url, (), None, deadline, verify=str(path), held=held)
                assert (answer.status, answer.content) == (200, b"ok")
        assert running.connections == 2
        assert adapter.exchange("GET", running.url, (), None, deadline, verify=False).status == 200
        assert running.connections == 3


def test_a_held_connection_is_verified_before_its_request(
    adapter: DeadlineAdapter, certificate: tuple[Path, ssl.SSLContext]
) -> None:
    _, context = certificate
    with (
        service(answering(ANSWER), context) as running,
        pytest.raises(httpcore.ConnectError),
        adapter.connected(running.url, Deadline(5.0)),
    ):
        pass
