"""Bad input as bytes, to the API as deployed: slow, truncated, malformed and oversized requests.

No such request may delay other answers, leave rows behind, or end in a 5xx.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import psycopg
import pytest

from orchestrator.security.encryption import new_key
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from tests.integration.served_api import answer, received, served, status
from tests.patience import took_at_most

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::None"}}}
TABLES = ("stack", "revision", "resource", "graph_node", "event", "software_config", "content")


@dataclass
class Server:
    """The API under test, and the token of a caller."""

    port: int
    token: str
    database_url: str

    def request(
        self, method: str, path: str, body: bytes = b"", *headers: str, length: int | None = None
    ) -> bytes:
        """Return the bytes of a request with a token."""
        lines = [f"{method} {path} HTTP/1.1", "Host: a", f"X-Auth-Token: {self.token}", *headers]
        if not any(header.lower().startswith("transfer-encoding") for header in headers):
            lines.append(f"Content-Length: {len(body) if length is None else length}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def create(self, body: bytes, *headers: str, length: int | None = None) -> bytes:
        return self.request(
            "POST", "/v1/p/stacks", body, "Content-Type: application/json", *headers, length=length
        )

    def rows(self) -> list[int]:
        """Count the rows that a refused request must not leave behind."""
        with psycopg.connect(self.database_url) as connection:
            counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)
            row = connection.execute(f"SELECT {counts}").fetchone()
        assert row is not None
        return list(row)

    def answers_others(self) -> float:
        """Send a request as another caller; return its seconds."""
        begun = time.monotonic()
        assert status(answer(self.port, self.request("GET", "/v1/p/stacks"))) == 200
        return time.monotonic() - begun


@pytest.fixture(scope="module")
def server(
    new_database: Callable[[], str],
    valkey_server: object,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """A server for all tests: tokens are required, Heat's limits apply."""
    url = new_database()
    database = Database(url)
    token = create_token(database, "p", "tests")
    database.engine.dispose()
    settings = {
        "database_url": url,
        "broker_url": valkey_server.url(next(broker_numbers)),  # type: ignore[attr-defined]
        "encryption_keys": new_key(),
        "auth": "token",
        "limits": "heat",
    }
    with served(settings, tmp_path_factory.mktemp("api") / "gunicorn.log") as port:
        yield Server(port, token, url)


@pytest.fixture(autouse=True)
def _nothing_left(server: Server) -> Iterator[None]:
    before = server.rows()
    yield
    assert server.rows() == before
    server.answers_others()


GOOD = json.dumps({"stack_name": "s", "template": TEMPLATE}).encode()
BIG = b'{"stack_name": "s", "template": "' + b"x" * 1_100_000 + b'"}'


@pytest.mark.parametrize("kind", ["application/xml", "application/x-www-form-urlencoded", "nonsense"])
def test_with_tokens_a_body_of_another_type_is_ignored_as_in_heat(server: Server, kind: str) -> None:
    """No browser adds a token on its own, so that another type does no harm."""
    request = server.request("POST", "/v1/p/stacks", GOOD, f"Content-Type: {kind}; charset=utf-8")
    given = answer(server.port, request)
    assert status(given) == 400
    assert json.loads(given.partition(b"\r\n\r\n")[2])["error"]["message"] == (
        "No stack name specified. The request body was not read as JSON because its Content-Type is "
        f"{kind}; send Content-Type: application/json."
    )


def chunked(body: bytes, size: int = 65_536) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def message(answered: bytes) -> str:
    result: str = json.loads(answered.partition(b"\r\n\r\n")[2])["error"]["message"]
    return result


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: Server) -> None:
    refused = answer(server.port, server.create(b"", length=1_048_577))
    assert status(refused) == 400
    assert message(refused) == (
        "Request limit exceeded: JSON body size (1048577 bytes) exceeds maximum allowed size (1048576 bytes)."
    )


def test_a_body_that_is_too_large_is_refused_however_it_comes(server: Server) -> None:
    assert status(answer(server.port, server.create(BIG))) == 400
    reported = server.create(b"", "Transfer-Encoding: chunked") + chunked(BIG)
    assert status(answer(server.port, reported)) == 400


@pytest.mark.parametrize(
    "more",
    [
        b"zz\r\n{}\r\n0\r\n\r\n",  # a size that is none
        b"5\r\n{}\r\n0\r\n\r\n",  # fewer bytes than the size
        b"ffffffffffffffffff\r\n{}",
        b"-1\r\n{}\r\n0\r\n\r\n",
        b"2\r\n{}XX0\r\n\r\n",  # no end of the chunk
    ],
)
def test_a_malformed_chunk_is_the_senders_fault(server: Server, more: bytes) -> None:
    head = server.create(b"", "Transfer-Encoding: chunked")
    assert status(answer(server.port, head + more)) in {0, 400, 408}


@pytest.mark.parametrize("cut", [1, 10, len(GOOD) - 1])
def test_a_body_that_ends_too_early_is_refused(server: Server, cut: int) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(server.create(GOOD[:cut], length=len(GOOD)))
        connection.shutdown(socket.SHUT_WR)
        refused = received(connection)
    assert status(refused) == 400
    assert message(refused) == "The request body could not be read to its end."


def test_a_body_that_stops_coming_or_drips_is_given_up(server: Server) -> None:
    assert status(answer(server.port, server.create(GOOD[:20], length=len(GOOD)))) == 408
    dripping = [server.create(b"{", length=5_000), *[b" "] * 30]
    begun = time.monotonic()
    assert status(answer(server.port, *dripping, between=0.1)) in {0, 408}
    assert took_at_most(begun, 10)


@pytest.mark.parametrize("begun", [b"", b"G", b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\n"])
def test_clients_that_never_finish_their_headers_cost_other_clients_nothing(
    server: Server, begun: bytes
) -> None:
    with ExitStack() as held:
        for _ in range(60):  # fifteen times as many as there are threads
            item = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            item.sendall(begun)
        assert server.answers_others() < 5.0
        assert received(item) == b""  # it is closed in the end


def test_a_head_that_drips_is_answered_when_it_is_whole_in_time(server: Server) -> None:
    head = server.request("GET", "/v1/p/stacks")
    assert status(answer(server.port, head[:10], head[10:40], head[40:], between=0.1)) == 200


def test_clients_that_do_not_close_cost_other_clients_nothing(server: Server) -> None:
    with ExitStack() as held:
        for _ in range(8):
            item = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            item.sendall(server.request("GET", "/v1/p/stacks", b"", "Connection: close"))
            assert status(received(item)) == 200
        assert server.answers_others() < 5.0


def test_unwanted_bodies_cost_other_clients_nothing(server: Server) -> None:
    stranger = b"POST /v1/p/stacks HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n{"
    with ExitStack() as held:
        for _ in range(8):
            item = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            item.sendall(stranger)
            assert status(received(item)) == 401
        assert server.answers_others() < 5.0


def test_requests_on_a_connection_are_answered_in_sequence(server: Server) -> None:
    """Bytes read ahead are neither lost nor mixed up."""
    requests = server.request("GET", "/v1/p/stacks") + server.request("GET", "/v1/p/build_info")
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(requests + server.create(b'{"stack_name": "1s"}'))
        answers = b""
        while (answers.count(b"HTTP/1.1") < 3 or not answers.endswith(b"}")) and (
            additional := connection.recv(65536)
        ):
            answers += additional
    assert [int(part[1:4]) for part in answers.split(b"HTTP/1.1")[1:]] == [200, 200, 400]


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\n", {0}),
        (b"GET /v1/p/stacks?" + b"n" * 60_000, {0, 414}),
        (b"G", {0}),
    ],
)
def test_pipelined_requests_are_validated_like_any_other(
    server: Server, behind: bytes, expected: set[int]
) -> None:
    """The thread that answered looks whether more comes: it must not wait for it."""
    with ExitStack() as held:
        for _ in range(8):  # twice as many as there are threads
            item = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            item.sendall(server.request("GET", "/v1/p/stacks") + behind)
            assert status(received(item)) == 200
        assert server.answers_others() < 5.0
        assert status(received(item)) in expected


@pytest.mark.parametrize(
    ("length", "expected"), [(8_000, {200}), (49_000, {200}), (50_001, {414}), (2_000_000, {414})]
)
def test_a_url_has_at_most_50000_bytes(server: Server, length: int, expected: set[int]) -> None:
    path = "/v1/p/stacks?name="
    requests = server.request("GET", path + "n" * (length - len(path) - len("GET  HTTP/1.1")))
    assert status(answer(server.port, requests)) in expected


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\nX-Long: " + b"x" * 200_000 + b"\r\n\r\n",
        b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\n" + b"X-Many: x\r\n" * 200 + b"\r\n",
        b"GET /v1/p/stacks HTTP/9.9\r\nHost: a\r\n\r\n",
        b"GE T /v1/p/stacks HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
        b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\nA: b\r\n\tfolded\r\n\r\n",
        b"GET /v1/p/stacks HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"POST /v1/p/stacks HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /v1/p/stacks HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /v1/p/stacks HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",  # TLS on the plain port
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
    ],
)
def test_invalid_requests_are_refused(server: Server, head: bytes) -> None:
    assert status(answer(server.port, head)) in {0, 400, 401, 405, 414, 431, 501, 505}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/p/../other/stacks",
        "/v1/p/%2e%2e/other/stacks",
        "/v1/p/stacks/..%2f..%2fother",
        "/v1/p//stacks",
        "//v1/p/stacks",
        "/v1//p/stacks",
        "/v1/p/stacks/%00",
        "/v1/p%00/stacks",
        "/v1/p/stacks/%ff%fe",
        "/v1/p/stacks/..;/x",
        "/v1/p/stacks/%5c..%5c",
        "/v1/p/stacks/a%0d%0aX-Injected:%20yes",
        "/v1/p/stacks/' OR 1=1 --".replace(" ", "%20"),
        "/V1/p/stacks",
        "/v1.0.0/p/stacks",
        "/v1/p/stacks/." + "/." * 200,
        "http://127.0.0.1/v1/other/stacks",
        "*",
    ],
)
def test_tricks_with_the_path_lead_nowhere(server: Server, path: str) -> None:
    answered = answer(server.port, server.request("GET", path))
    assert status(answered) in {300, 400, 403, 404}, answered
    assert b"X-Injected" not in answered.partition(b"\r\n\r\n")[0]
