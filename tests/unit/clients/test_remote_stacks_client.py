"""The client for the stacks of another region, against a server with prepared answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from orchestrator.clients import remote_stacks
from orchestrator.clients.region_catalog import Endpoint
from orchestrator.clients.remote_stacks import Gone, RemoteStacks
from orchestrator.errors import (
    ProviderBusy,
    ProviderChanging,
    ProviderError,
    ProviderGatewayFailed,
    ProviderSilent,
    ProviderUnreachable,
)
from tests.patience import took_at_most

ID = "11111111-2222-3333-4444-555555555555"


class Server(ThreadingHTTPServer):
    """Gives a prepared answer, and records the request."""

    daemon_threads = True
    answer: tuple[int, Any, dict[str, str]]
    requests: list[tuple[str, str, dict[str, str]]]

    def handle_error(self, *args: Any) -> None:
        """The client did not wait for the end."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append((self.command, self.path, dict(self.headers)))
        status, body, headers = self.server.answer
        if self.path.endswith(f"/stacks/{ID}"):
            status, body, headers = 302, {}, {"Location": f"http://elsewhere.example/v1/x/stacks/name/{ID}"}
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in body if isinstance(body, list) else [json.dumps(body).encode()]:
            time.sleep(0.2 * isinstance(body, list))
            self.wfile.write(piece)
            self.wfile.flush()

    do_POST = do_GET  # noqa: N815 - as the library calls it
    do_PUT = do_GET  # noqa: N815
    do_DELETE = do_GET  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.requests, made.answer = [], (200, {}, {})
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def stacks(server: Server) -> RemoteStacks:
    return RemoteStacks(Endpoint("north", f"http://127.0.0.1:{server.server_address[1]}/v1/p", "t0ken"), 5.0)


def fault(kind: str, message: str = "no") -> dict[str, Any]:
    return {"code": 400, "error": {"type": kind, "message": message}}


def test_a_stack_is_led_to_by_name_and_id_and_nobody_else_gets_the_token(server, stacks):
    server.answer = (200, {"stack": {"stack_name": "name"}}, {})
    assert stacks.show(ID) == {"stack_name": "name"}
    assert [path for _, path, _ in server.requests] == [f"/v1/p/stacks/{ID}", f"/v1/p/stacks/name/{ID}"]
    assert all(headers["X-Auth-Token"] == "t0ken" for _, _, headers in server.requests)
    stacks.delete(ID)
    assert server.requests[-1][:2] == ("DELETE", f"/v1/p/stacks/name/{ID}")


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (404, fault("EntityNotFound", "The Stack (x) could not be found."), Gone, "could not be found"),
        (404, {"message": "no such path"}, ProviderError, "it answered 404"),
        (404, "<html>", ProviderError, "it answered 404"),
        (400, fault("StackValidationFailed", "wrong"), ProviderError, "^wrong$"),
        (401, fault("HTTPUnauthorized", "who?"), ProviderError, "who?"),
        (403, fault("Forbidden", "not you"), ProviderError, "not you"),
        (409, fault("StackExists", "taken"), ProviderError, "taken"),
        (409, fault("ActionInProgress", "busy"), ProviderChanging, "busy"),
        (429, {}, ProviderBusy, "it answered 429"),
        (503, {}, ProviderBusy, "it answered 503"),
        (500, fault("Internal"), ProviderGatewayFailed, "no"),
        (502, {}, ProviderGatewayFailed, "it answered 502"),
        (504, {}, ProviderGatewayFailed, "it answered 504"),
    ],
)
def test_what_a_refusal_means(server, stacks, status, body, kind, said):
    server.answer = (status, body, {})
    with pytest.raises(kind, match=said) as caught:
        stacks.create({"stack_name": "s"})
    assert type(caught.value) is kind


def test_a_redirect_elsewhere_is_not_followed(server, stacks):
    server.answer = (302, {}, {"Location": "http://elsewhere.example/"})
    with pytest.raises(ProviderError):
        stacks.create({})
    assert len(server.requests) == 1


@pytest.mark.parametrize("place", ["/x", "/v1/p/stacks/only-one", "/v1/p/stacks/../../a", ""])
def test_a_way_to_no_stack_is_not_gone_along(server, stacks, place):
    server.answer = (302, {}, {"Location": place})
    with pytest.raises(ProviderError):
        stacks.show("another")


def test_a_server_that_drips_costs_the_deadline_and_no_more(server):
    stacks = RemoteStacks(Endpoint("north", f"http://127.0.0.1:{server.server_address[1]}/v1/p"), 0.5)
    server.answer = (200, [b"."] * 50, {})
    began = time.monotonic()
    with pytest.raises(ProviderSilent, match="did not answer in time"):
        stacks.create({})
    assert took_at_most(began, 8.0)  # the whole answer takes 10 seconds
    assert "X-Auth-Token" not in server.requests[0][2]


def test_an_answer_that_is_too_large_is_refused(server, stacks, monkeypatch):
    monkeypatch.setattr(remote_stacks, "MAX_BYTES", 10)
    server.answer = (200, {"stack": "x" * 20}, {})
    with pytest.raises(ProviderError, match="sent a response that is too large"):
        stacks.create({})


def test_a_server_that_is_not_there_was_asked_for_nothing():
    stacks = RemoteStacks(Endpoint("north", "http://127.0.0.1:9/v1/p"), 1.0)
    with pytest.raises(ProviderUnreachable):  # and no error after which the request may be carried out
        stacks.create({})


def test_a_certificate_that_is_none_is_refused():
    stacks = RemoteStacks(Endpoint("north", "https://127.0.0.1:9/v1/p"), 1.0, ca_cert="nonsense")
    with pytest.raises(ProviderError, match="CA certificate"):
        stacks.create({})


def test_the_token_is_not_shown():
    assert "t0ken" not in repr(Endpoint("north", "http://x/v1/p", "t0ken"))


def test_a_token_that_is_not_good_any_more_is_renewed_once(server: Server) -> None:
    server.answer = (401, {}, {})
    renewed: list[str] = []

    def renew() -> str:
        renewed.append("new")
        return "new"

    endpoint = Endpoint("north", f"http://127.0.0.1:{server.server_port}/v1/p", "old", None, renew)
    with pytest.raises(ProviderError):
        RemoteStacks(endpoint, 5.0).with_tag("t")
    assert renewed == ["new"]
    assert [headers["X-Auth-Token"] for _, _, headers in server.requests] == ["old", "new"]
