"""Large bodies over HTTP: the process that handles one has a memory limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from orchestrator.security.encryption import new_key
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from tests.integration.served_api import answer, served, status

MEMORY_LIMIT = 400 * 1024**2  # bytes; the process itself needs about half of it


def body(resources: int) -> bytes:
    """Return a create request."""
    value = {"type": "OS::Heat::TestResource", "properties": {"value": "x" * 100}}
    template = {
        "heat_template_version": "2021-04-16",
        "resources": {f"item_{number}": value for number in range(resources)},
    }
    return json.dumps({"stack_name": f"s{resources}", "template": template}).encode()


def test_a_body_beyond_the_memory_limit_is_rejected_and_stores_nothing(
    new_database: Callable[[], str],
    valkey_server: object,
    broker_numbers: Iterator[int],
    tmp_path: Path,
) -> None:
    url = new_database()
    database = Database(url)
    token = create_token(database, "p", "tests")
    database.engine.dispose()
    settings = {
        "auth": "token",
        "database_url": url,
        "broker_url": valkey_server.url(next(broker_numbers)),  # type: ignore[attr-defined]
        "encryption_keys": new_key(),
        "planner_memory_limit": MEMORY_LIMIT,
        "inline_body_size": 1000,
    }
    with served(settings, tmp_path / "log") as port:
        answers = []
        for content in (body(20), body(150_000), body(21)):
            head = (
                f"POST /v1/p/stacks HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {token}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            answers.append(answer(port, head.encode() + content, seconds=120.0))
    assert [status(each) for each in answers] == [201, 400, 201]
    error = json.loads(answers[1].partition(b"\r\n\r\n")[2])["error"]
    assert error["message"] == (
        "Request limit exceeded: The template needs more memory than the limit for requests."
    )
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT name FROM stack ORDER BY name").fetchall()
    assert names == [("s20",), ("s21",)]
