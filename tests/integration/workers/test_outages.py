"""The API during an outage of its servers: a fast and clear answer, no blocked thread, automatic recovery.

test_never_lost_servers.py covers the workers during the outage.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from orchestrator.config import Settings
from orchestrator.embedded.postgres import Postgres
from orchestrator.embedded.process import Process
from orchestrator.embedded.processes import api, environment
from orchestrator.security.encryption import new_key
from tests.conftest import OwnServer
from tests.e2e.running import eventually, free_port
from tests.integration.cluster import read_only
from tests.patience import pause, slowness

TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::TestResource"}}}
STACKS = "/v1/demo/stacks"
CALLERS = 40  # more than the API has threads


class Served:
    """An API process on servers that may be stopped."""

    def __init__(self, folder: Path, postgres: OwnServer, valkey: OwnServer) -> None:
        settings = Settings(auth="none", port=free_port(), data_dir=folder)
        env = environment(settings, postgres.url, valkey.url, None)
        env |= {"ORCHESTRATOR_ENCRYPTION_KEYS": new_key(), "ORCHESTRATOR_MAX_JSON_BODY_SIZE": "300000"}
        self.url = settings.address
        self.process = Process(api(env, folder, settings), folder / "api.log")
        if postgres.is_running:
            self.process.wait_ready()

    def get(self, path: str) -> tuple[httpx.Response, float]:
        """Return an answer and the seconds it took."""
        begun = time.monotonic()
        return httpx.get(self.url + path, timeout=30), time.monotonic() - begun

    def is_alive(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return self.get("/livez")[0].status_code == 200
        return False

    def create(self, name: str) -> httpx.Response:
        return httpx.post(self.url + STACKS, json={"stack_name": name, "template": TEMPLATE}, timeout=30)

    def at_once(self, path: str, times: int = CALLERS) -> list[tuple[httpx.Response, float]]:
        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(lambda _: self.get(path), range(times)))


@pytest.fixture
def served(tmp_path: Path, own_postgres: OwnServer, own_valkey: OwnServer) -> Iterator[Served]:
    made = Served(tmp_path, own_postgres, own_valkey)
    yield made
    made.process.stop()


@pytest.fixture
def own_administrator(tmp_path: Path, own_postgres: OwnServer) -> Iterator[psycopg.Connection[Any]]:
    url = Postgres(tmp_path / "own-postgres").administrator_url()
    with psycopg.connect(url, autocommit=True) as db:
        yield db


def unavailable(answer: httpx.Response) -> bool:
    """Whether an answer is a 503 as clients know it, with a time to come back."""
    body = answer.json()
    assert answer.status_code == 503, answer.text
    assert 1 <= int(answer.headers["Retry-After"]) <= 30
    assert (body["code"], body["title"]) == (503, "Service Unavailable")
    assert body["error"]["type"] == "HTTPServiceUnavailable"
    return True


def test_it_answers_while_its_servers_are_away_and_goes_on_when_they_are_back(
    served: Served, own_postgres: OwnServer, own_valkey: OwnServer
) -> None:
    assert served.create("before").status_code == 201
    assert served.get("/readyz")[0].json()["status"] == "ok"

    own_valkey.stop()
    assert served.create("unheard").status_code == 201  # the doorbell is away: it is found in the database
    degraded = served.get("/readyz")[0]
    assert (degraded.status_code, degraded.json()["status"]) == (200, "degraded")
    assert degraded.json()["parts"]["broker"]["status"] == "failed"
    assert "orchestrator_broker_reachable 0.0" in served.get("/metrics")[0].text

    own_postgres.kill()
    waited = served.at_once(STACKS)  # they wait for it together, in case it just restarts
    assert all(unavailable(answer) for answer, _ in waited)
    assert max(seconds for _, seconds in waited) < 9 * slowness()
    refused = served.at_once(STACKS)
    assert all(unavailable(answer) for answer, _ in refused)
    assert max(seconds for _, seconds in refused) < 4 * slowness()  # at once
    assert unavailable(served.create("refused"))
    assert served.get("/livez")[0].status_code == served.get("/healthcheck")[0].status_code == 200
    not_ready = served.get("/readyz")[0]
    assert (not_ready.status_code, not_ready.json()["status"]) == (503, "failed")
    assert "orchestrator_database_reachable 0.0" in served.get("/metrics")[0].text

    own_postgres.start()
    eventually(lambda: served.get(STACKS)[0].status_code == 200, 15)
    assert {answer.status_code for answer, _ in served.at_once(STACKS)} == {200}
    names = {stack["stack_name"] for stack in served.get(STACKS)[0].json()["stacks"]}
    assert names == {"before", "unheard"}
    own_valkey.start()
    eventually(lambda: served.get("/readyz")[0].json()["status"] == "ok", 15)


def test_an_api_started_without_its_database_serves_as_soon_as_it_is_there(
    tmp_path: Path, own_postgres: OwnServer, own_valkey: OwnServer
) -> None:
    own_postgres.stop()
    served = Served(tmp_path, own_postgres, own_valkey)
    try:
        eventually(served.is_alive)
        assert served.get("/readyz")[0].status_code == 503
        assert unavailable(served.create("refused"))
        own_postgres.start()
        eventually(lambda: served.get("/readyz")[0].status_code == 200, 15)
        assert served.create("accepted").status_code == 201
    finally:
        served.process.stop()


def test_a_database_that_accepts_no_writes_is_an_outage_and_ends_by_itself(
    served: Served, own_postgres: OwnServer
) -> None:
    assert served.create("before").status_code == 201
    with read_only(own_postgres.url):
        refused = [served.create(f"refused{number}") for number in range(5)]
        assert all(unavailable(answer) for answer in refused)
        assert unavailable(httpx.delete(f"{served.url}{STACKS}/before", timeout=30))
        not_ready = served.get("/readyz")[0]
        assert (not_ready.status_code, not_ready.json()["status"]) == (503, "failed")
        assert served.get("/livez")[0].status_code == 200
    eventually(lambda: served.get("/readyz")[0].status_code == 200, 15)
    answers = [served.create(f"after{number}") for number in range(5)]
    assert {answer.status_code for answer in answers} == {201}


def test_a_server_that_turns_read_only_under_open_sessions_is_an_outage(
    served: Served, own_postgres: OwnServer, own_administrator: psycopg.Connection[Any]
) -> None:
    assert served.create("before").status_code == 201
    own_administrator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    own_administrator.execute("SELECT pg_reload_conf()")
    eventually(lambda: served.get("/readyz")[0].status_code == 503, 15)
    assert unavailable(served.create("refused"))
    own_administrator.execute("SET default_transaction_read_only = off")
    own_administrator.execute("ALTER SYSTEM RESET default_transaction_read_only")
    own_administrator.execute("SELECT pg_reload_conf()")
    eventually(lambda: served.get("/readyz")[0].status_code == 200, 15)
    assert served.create("after").status_code == 201


def chunked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def talk(url: str) -> tuple[socket.socket, Callable[[], bytes]]:
    place = urlsplit(url)
    made = socket.create_connection((place.hostname, place.port), 20)

    def rest() -> bytes:
        result = b""
        while b"\r\n\r\n" not in result and (additional := made.recv(65536)):
            result += additional
        return result

    return made, rest


def head(length: str) -> bytes:
    kind = "Content-Type: application/json"
    return f"POST {STACKS} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n{length}\r\n\r\n".encode()


def test_a_body_without_a_length_is_counted_and_a_request_under_way_outlives_a_stop(
    served: Served,
) -> None:
    def body(name: str, **options: Any) -> bytes:
        return json.dumps({"stack_name": name, "template": TEMPLATE, **options}).encode()

    def post(content: Iterator[bytes]) -> httpx.Response:
        return httpx.post(
            served.url + STACKS, content=content, headers={"Content-Type": "application/json"}, timeout=30
        )

    assert post(iter([body("pieces")[:20], body("pieces")[20:]])).status_code == 201
    refused = post(iter([body("large", note="x" * 400_000)]))
    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "RequestLimitExceeded"

    def endless() -> Iterator[bytes]:
        until = time.monotonic() + 20.0
        while time.monotonic() < until:
            yield b" " * 65536

    connection, rest = talk(served.url)
    with connection:
        connection.sendall(head("Transfer-Encoding: chunked"))

        def send() -> None:
            for piece in chunked(endless()):
                connection.sendall(piece)

        with pytest.raises(OSError, match=r"Broken pipe|reset"):  # it hangs up, and keeps nothing
            send()

    whole = body("survivor")
    connection, rest = talk(served.url)
    with connection:
        connection.sendall(head(f"Content-Length: {len(whole)}") + whole[:10])
        pause(0.5)  # it is being read by now
        os.kill(served.process.pid, signal.SIGTERM)
        pause(0.3)
        connection.sendall(whole[10:])
        assert rest().startswith(b"HTTP/1.1 201")
    assert served.process.wait(15)
    assert served.process.returncode == 0
