"""Followers and webhooks lose no event when processes are killed: on a running `orchestrator up`."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.watch.follow import End, follow
from tests.e2e.running import Up, eventually

COUNT = 8


@pytest.fixture(scope="module")
def up(start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    """A server whose webhooks may be on this machine, and are soon free of a killed worker."""
    settings = {"ORCHESTRATOR_WEBHOOK_ALLOW_PRIVATE": "true"}
    folder: Path = tmp_path_factory.mktemp("live")
    up: Up = start_up(folder / "data", env=settings)
    return up.wait_ready()


def slowly(up: Up, name: str) -> str:
    """Create a stack whose resources are created in sequence; return its id."""
    kind = "OS::Heat::TestResource"
    resources: dict[str, Any] = {"r0": {"type": kind, "properties": {"wait_secs": 0.3}}}
    for number in range(1, COUNT):
        snippet = {"type": kind, "depends_on": f"r{number - 1}", "properties": {"wait_secs": 0.3}}
        resources[f"r{number}"] = snippet
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    answer = httpx.post(
        f"{up.url}/v1/demo/stacks", json={"stack_name": name, "template": template}, timeout=20
    )
    return str(answer.raise_for_status().json()["stack"]["id"])


def happened(up: Up, name: str, stack_id: str) -> list[str]:
    """Return the sequences of all events of a stack, as a list has them in the end."""
    answer = httpx.get(f"{up.url}/v1/demo/stacks/{name}/{stack_id}/events?after=0.0", timeout=20)
    return [raise_for_statu["sequence"] for raise_for_statu in answer.raise_for_status().json()["events"]]


def test_a_follower_hears_everything_once_over_an_api_that_is_killed(up: Up) -> None:
    stack_id, heard = slowly(up, "followed"), list[str]()
    with Client(up.url, "demo") as client:
        stack = client.stacks.find("followed")
        for step in follow(client, stack, after=None):
            if isinstance(step, End):
                assert step.status == "CREATE_COMPLETE"
                break
            heard.append(step["sequence"])
            if len(heard) == 4:
                os.kill(up.child("api.app"), signal.SIGKILL)
    assert heard == happened(up, "followed", stack_id)


def test_a_webhook_gets_every_event_although_api_and_workers_are_killed(up: Up) -> None:
    reported: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reported.extend(event["sequence"] for event in body["events"] if event["stack_name"] == "told")
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        httpx.post(f"{up.url}/v1/demo/webhooks", json={"url": url}, timeout=20).raise_for_status()
        stack_id = slowly(up, "told")
        eventually(lambda: len(reported) > 2)
        os.kill(up.child("api.app"), signal.SIGKILL)
        os.kill(up.child("-n provider1"), signal.SIGKILL)
        eventually(lambda: up.status("told") == "CREATE_COMPLETE", 60)
        expected = happened(up, "told", stack_id)
        eventually(lambda: set(expected) <= set(reported), 60)
        assert list(dict.fromkeys(reported)) == expected  # in order, without repetitions
    finally:
        server.shutdown()
        server.server_close()
