"""Clients that send their requests slowly: most of them hold no thread, and no caller has all threads."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from orchestrator.security.encryption import new_key
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from tests.hostile.slow import TEMPLATE, SlowClients, Victim, create, head
from tests.integration.served_api import answer, served, status

THREADS = 12
CONNECTIONS = 200
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
# Signed with an unknown key.
SIGNATURE = (
    "Authorization: AWS4-HMAC-SHA256 Credential=AKUNKNOWN/20260101/RegionOne/cloudformation/aws4_request, "
    "SignedHeaders=host;x-amz-date, Signature=00",
    "X-Amz-Date: 20260101T000000Z",
)


@dataclass
class Server:
    """The API under attack, the tokens of attacker and victim."""

    port: int
    attacker: str
    victim: str


@pytest.fixture(scope="module")
def server(
    new_database: Callable[[], str],
    valkey_server: object,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    url = new_database()
    database = Database(url)
    attacker, victim = create_token(database, "attacker", "a"), create_token(database, "victim", "v")
    database.engine.dispose()
    settings = {
        "database_url": url,
        "broker_url": valkey_server.url(next(broker_numbers)),  # type: ignore[attr-defined]
        "encryption_keys": new_key(),
        "auth": "token",
        "max_slow_bodies": 4,
    }
    few = ("--worker-connections", str(CONNECTIONS))
    with served(settings, tmp_path_factory.mktemp("api") / "log", threads=THREADS, further=few) as port:
        Victim(port, victim).prepare()
        yield Server(port, attacker, victim)


@pytest.fixture
def victim(server: Server) -> Iterator[Victim]:
    """A caller whose requests are fast after the attack, too."""
    made = Victim(server.port, server.victim, "/v1/victim/stacks")
    yield made
    after = Victim(server.port, server.victim, "/v1/victim/stacks")
    after.work(1.0)
    after.require_fast()
    created = create(server.attacker, "attacker", {"stack_name": "again", "template": TEMPLATE})
    assert status(answer(server.port, created)) in {201, 409}


@pytest.mark.parametrize("length", [50_000, 900_000, 3_000_000_000])
@pytest.mark.parametrize("headers", [(FORM,), (FORM, *SIGNATURE)], ids=["unsigned", "signed"])
def test_slow_queries_of_strangers_block_no_other_caller(
    server: Server, victim: Victim, headers: tuple[str, ...], length: int
) -> None:
    query = head("POST", "/v1/", "", *headers, length=length) + b"Action=ListStacks"
    with SlowClients(server.port, query):
        victim.work(5.0)
    victim.require_fast()


@pytest.mark.parametrize("length", [50_000, 200_000_000])
def test_slow_bodies_of_a_caller_block_no_other_caller(server: Server, victim: Victim, length: int) -> None:
    request = head("POST", "/v1/attacker/stacks", server.attacker, JSON, length=length) + b'{"stack_name": "'
    with SlowClients(server.port, request):
        victim.work(5.0)
    victim.require_fast()


def test_slow_chunked_bodies_block_no_other_caller(server: Server, victim: Victim) -> None:
    request = head("POST", "/v1/attacker/stacks", server.attacker, JSON, "Transfer-Encoding: chunked")
    with SlowClients(server.port, request + b"ffffff\r\n{"):
        victim.work(5.0)
    victim.require_fast()


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["new", "kept"])
def test_idle_connections_prevent_no_other_connection(server: Server, victim: Victim, begun: bytes) -> None:
    """More connections than a process has; they stay open after a response."""
    with ExitStack() as held:
        for _ in range(CONNECTIONS + 50):
            item = held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            item.sendall(begun)
        victim.work(3.0)
    victim.require_fast()


def test_a_small_body_may_arrive_after_the_time_for_its_head(server: Server) -> None:
    request = create(server.victim, "victim", {"stack_name": "late", "template": TEMPLATE})
    pieces = (request[:-40], request[-40:-20], request[-20:])
    assert status(answer(server.port, *pieces, between=1.5)) == 201


def test_a_health_check_does_not_open_its_threads_to_other_requests(server: Server) -> None:
    """Requests that follow it on the connection, or in the same packet, have no reserved thread."""
    slow = head("POST", "/v1/", "", FORM, length=900_000) + b"Action="
    health = head("GET", "/healthcheck")
    for first in (health + slow, health + head("POST", "/v1/", "", FORM, length=50_000)):
        with SlowClients(server.port, first, drips=False):
            caller = Victim(server.port, server.victim, "/v1/victim/stacks")
            caller.work(3.0)
        caller.require_fast()


def test_bodies_of_strangers_are_not_read(server: Server) -> None:
    """A body is rejected by its declared length, its key or its time before it arrives."""
    unknown = head("POST", "/v1/", "", FORM, *SIGNATURE, length=900_000)
    assert b"RequestExpired" in answer(server.port, unknown, seconds=5)
    large = head("POST", "/v1/", "", FORM, length=1_200_000)
    assert b"RequestLimitExceeded" in answer(server.port, large, seconds=5)
    no_token = head("POST", "/v1/attacker/stacks", "", JSON, length=200_000_000)
    assert status(answer(server.port, no_token, seconds=5)) == 401


def test_a_caller_with_too_many_slow_bodies_is_rejected_in_heats_format(server: Server) -> None:
    request = head("POST", "/v1/attacker/stacks", server.attacker, JSON, length=200_000_000)
    with SlowClients(server.port, request, clients=2) as clients:
        Victim(server.port, server.victim, "/v1/victim/stacks").work(1.0)
        rejected = answer(server.port, request, seconds=5)
    assert clients.statuses[429] or status(rejected) == 429
    assert status(rejected) == 429
    assert b"Retry-After: 1" in rejected
    assert b'"type":"HTTPTooManyRequests"' in rejected.replace(b" ", b"").replace(b"\n", b"")
