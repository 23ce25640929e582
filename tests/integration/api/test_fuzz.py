"""The API driven by its own description: no 5xx, no status, type or body that is not in the document.

A slice that is the same every time in `make test`; twenty minutes in `make test-long`, or FUZZ_SECONDS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from orchestrator.security.encryption import new_key
from qa.fuzz.world import populate, run
from tests.e2e.running import Up
from tests.integration.served_api import served

SECONDS = int(os.environ.get("FUZZ_SECONDS", "1200"))
ALLOWED = {"enable_stack_abandon": "true", "enable_stack_adopt": "true"}


def poster(url: str) -> Callable[[str, dict[str, Any]], Any]:
    def post(path: str, body: dict[str, Any]) -> Any:
        return httpx.post(f"{url}{path}", json=body, timeout=60).raise_for_status().json()

    return post


def test_examples_of_every_route_are_answered_as_described(
    new_database: Callable[[], str], valkey_server: Any, broker_numbers: Iterator[int], tmp_path: Path
) -> None:
    database_url = new_database()
    with psycopg.connect(database_url) as db:  # where no worker reports, services are answered with 503
        db.execute(
            "INSERT INTO worker (uuid, name, hostname, queues, report_interval)"
            " VALUES (gen_random_uuid(), 'check1@here', 'here', 'check', 3600)"
        )
    settings = {
        "database_url": database_url,
        "broker_url": valkey_server.url(next(broker_numbers)),
        "encryption_keys": new_key(),
        **ALLOWED,
    }
    with served(settings, tmp_path / "gunicorn.log") as port:
        url = f"http://127.0.0.1:{port}"
        options = ("--phases", "examples", "--seed", "1", "--request-timeout", "15")  # ends streams of events
        completed = run(url, populate(poster(url)), tmp_path, *options)
        assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.long
def test_every_request_is_answered_as_described(tmp_path: Path) -> None:
    env = {f"ORCHESTRATOR_{name.upper()}": value for name, value in ALLOWED.items()}
    up = Up(tmp_path / "data", env=env)
    try:
        up.wait_ready(300)  # the machine may be busy
        additional = ("--max-time", str(SECONDS), "--continue-on-failure")
        completed = run(up.url, populate(poster(up.url)), tmp_path, *additional)
        assert completed.returncode == 0, completed.stdout + completed.stderr
        assert httpx.get(f"{up.url}/healthcheck", timeout=10).text == "OK"
    finally:
        up.stop()
