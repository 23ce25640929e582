"""The HTTP client of the command line: lookups, pages, refusals, broken connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.exit_codes import ApiFailure, Exit, Failure
from tests.unit.cli.stub import Stub, serving


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture
def client(stub: Stub) -> Iterator[Client]:
    with Client(stub.url, "demo", "secret-token") as client:
        yield client


def test_a_name_is_looked_up_and_the_same_method_and_query_are_repeated_there(
    stub: Stub, client: Client
) -> None:
    stack = stub.add("shop")
    client.stacks.show("shop", outputs=False)
    client.stacks.delete("shop")
    assert [(method, path, query) for method, path, query, *_ in stub.requests] == [
        ("GET", "/v1/demo/stacks/shop", {"resolve_outputs": ["false"]}),
        ("GET", f"/v1/demo/stacks/shop/{stack.id}", {"resolve_outputs": ["false"]}),
        ("DELETE", "/v1/demo/stacks/shop", {}),
        ("DELETE", f"/v1/demo/stacks/shop/{stack.id}", {}),
    ]


def test_the_token_stays_with_the_server_it_was_given_for(stub: Stub, client: Client) -> None:
    stub.add("shop")
    stub.shown_host = "http://192.0.2.1:9"  # nobody answers there; a client that followed it would hang
    assert client.stacks.show("shop")["stack_name"] == "shop"
    assert {headers["X-Auth-Token"] for *_, headers, _ in stub.requests} == {"secret-token"}


def test_names_are_encoded_so_that_they_cannot_leave_their_place_in_the_path(
    stub: Stub, client: Client
) -> None:
    with pytest.raises(ApiFailure):
        client.stacks.show("../../admin?x=1#y")
    assert stub.requests[0][1] == "/v1/demo/stacks/..%2F..%2Fadmin%3Fx%3D1%23y"


def test_lists_longer_than_a_page_are_read_to_the_end(stub: Stub, client: Client) -> None:
    for number in range(1201):
        stub.add(f"s{number}")
    assert len(list(client.stacks.list_all({}))) == 1201
    assert len(stub.requests_of("GET")) == 3
    assert len(list(client.stacks.list_all({}, limit=501))) == 501


def test_a_refusal_is_told_in_the_servers_words(stub: Stub, client: Client) -> None:
    with pytest.raises(ApiFailure, match=r"^The Stack \(nope\) could not be found\.$") as caught:
        client.stacks.show("nope")
    assert caught.value.exit_code == Exit.ERROR


@pytest.mark.parametrize(
    ("status", "body", "message", "code"),
    [
        (401, {"error": {"code": 401, "message": "Please log in."}}, "Please log in.", Exit.AUTH),
        (403, {"error": {"type": "Forbidden", "message": "Not yours."}}, "Not yours.", Exit.AUTH),
        (404, {"message": "no such path", "code": "404 Not Found"}, "no such path", Exit.ERROR),
        (
            500,
            {"error": {"type": "X"}},
            "the server answered 500 without a reason; see its log under req-1",
            Exit.ERROR,
        ),
        (413, None, "the server answered 413 without a reason; see its log under req-1", Exit.ERROR),
        (400, ["odd"], "the server answered 400 without a reason; see its log under req-1", Exit.ERROR),
    ],
)
def test_every_shape_of_an_error_body_gives_one_line_and_an_exit_code(
    stub: Stub, client: Client, *, status: int, body: object, message: str, code: Exit
) -> None:
    stub.refusal = (status, body)
    with pytest.raises(ApiFailure) as caught:
        list(client.stacks.list_all({}))
    assert (caught.value.message, caught.value.exit_code) == (message, code)


def test_a_question_is_asked_again_when_the_connection_breaks(stub: Stub, client: Client) -> None:
    stub.add("shop")
    stub.breaks = 2
    assert client.stacks.show("shop")["stack_name"] == "shop"


def test_a_request_that_may_have_arrived_is_not_sent_twice(stub: Stub, client: Client) -> None:
    stub.breaks = 1
    with pytest.raises(Failure, match="did not answer POST /v1/demo/stacks"):
        client.stacks.create({"stack_name": "shop"})
    assert len(stub.requests_of("POST")) == 1


def test_nobody_there_is_said_with_what_to_do() -> None:
    with (
        Client("http://127.0.0.1:1", "demo", patience_seconds=0.1) as client,
        pytest.raises(Failure) as caught,
    ):
        client.stacks.show("shop")
    assert caught.value.message.startswith("cannot reach http://127.0.0.1:1: ")
    assert "orchestrator up" in caught.value.details[0]


def test_an_address_that_is_none_is_said_so() -> None:
    with Client("nonsense", "demo", patience_seconds=0.1) as client, pytest.raises(Failure, match="nonsense"):
        client.stacks.show("shop")
