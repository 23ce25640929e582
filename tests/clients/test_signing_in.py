"""Authentication of the stock client with a token, and requests for operators only.

A second API in this process, on the server's database, authenticates callers; the server does its work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from werkzeug.serving import WSGIRequestHandler, make_server

from api.app import create_app
from orchestrator.config import Settings
from orchestrator.embedded.data_dir import DataDir
from orchestrator.security.tokens import create_token
from orchestrator.store.connections.database import Database
from tests.clients.stock import Openstack
from tests.e2e.running import Up, eventually


class Quiet(WSGIRequestHandler):
    """Says nothing."""

    def log(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def database(up: Up) -> Iterator[Database]:
    """The server's."""
    made = Database(DataDir(up.data_dir).postgres().url())
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def serve(up: Up, database: Database) -> Iterator[Callable[..., str]]:
    """Serve the API with other settings; return its URL. No messages are sent for its work: the sweep
    enqueues it.
    """
    key = SecretStr(DataDir(up.data_dir).keys_file().read_text())
    running = []

    def start(**settings: object) -> str:
        chosen = Settings(**{"auth": "none", "encryption_keys": key, **settings})  # type: ignore[arg-type]
        app = create_app(chosen, database, lambda _messages: None)
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_opens_its_project_and_no_other(
    openstack: Openstack, serve: Callable[..., str], database: Database, template: Path
) -> None:
    token = create_token(database, openstack.project, "ada")
    signed_in = replace(openstack, url=serve(auth="token"), who=("admin_token", "--os-token", token))
    signed_in("stack create", "-t", template, "--wait", "--poll", "1", "one")
    assert signed_in.json("stack show", "one")["stack_owner"] == "ada"
    assert signed_in.json("stack output show", "one", "it")["output_value"] == "short"
    assert [item["Stack Name"] for item in openstack.json("stack list")] == ["one"]
    elsewhere = replace(signed_in, project="another")
    assert "Access was denied to this resource" in elsewhere.refused("stack list")
    forged = replace(signed_in, who=("admin_token", "--os-token", "forged"))
    for nobody in forged, replace(signed_in, who=("none",)):
        assert "requires authentication" in nobody.refused("stack list")


def test_an_admin_sees_the_workers_and_a_member_does_not(
    openstack: Openstack, serve: Callable[..., str], database: Database
) -> None:
    url = serve(auth="token")

    def somebody(role: str) -> Openstack:
        token = create_token(database, openstack.project, roles=[role])
        return replace(openstack, url=url, who=("admin_token", "--os-token", token))

    assert "service:index" in somebody("member").refused("orchestration service list")
    operator = somebody("admin")
    eventually(lambda: len(operator.json("orchestration service list")) == 2)
    services = operator.json("orchestration service list")
    assert {service["Topic"] for service in services} == {"bulk,check", "observe,provider"}
    assert {service["Status"] for service in services} == {"up"}
    assert {service["Binary"] for service in services} == {"orchestrator-worker"}
