"""Requests and responses as bytes: framing, forbidden characters, bytes after the end."""

from __future__ import annotations

import httpcore
import pytest

from orchestrator.clients.http_messages import (
    MAX_OVERHEAD,
    Content,
    ResponseReader,
    request_body,
    request_head,
)

HOST = (b"Host", b"cloud.example")
OK = b"HTTP/1.1 200 OK\r\n"
TWO = b"Content-Length: 2\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

# Method, received bytes, and the expected status, body and reuse of the connection.
COMPLETE = {
    "length": (b"GET", OK + TWO + b"\r\nok", 200, b"ok", True),
    "no body": (b"POST", b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", 202, b"", True),
    "chunks": (b"GET", OK + CHUNKED + b"\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", 200, b"abc", True),
    "trailer": (b"GET", OK + CHUNKED + b"\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n", 200, b"a", True),
    "no reason": (b"GET", b"HTTP/1.1 200\r\n" + TWO + b"\r\nok", 200, b"ok", True),
    "advertisement of a protocol": (
        b"GET",
        OK + TWO + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\nok",
        200,
        b"ok",
        True,
    ),
    "length of HEAD": (b"HEAD", OK + TWO + b"\r\n", 200, b"", True),
    "chunks of HEAD": (b"HEAD", OK + CHUNKED + b"\r\n", 200, b"", True),
    "HEAD without length": (b"HEAD", OK + b"\r\n", 200, b"", True),
    "204": (b"DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "204 with length": (b"DELETE", b"HTTP/1.1 204 No Content\r\n" + TWO + b"\r\n", 204, b"", True),
    "304 with length": (b"GET", b"HTTP/1.1 304 Not Modified\r\n" + TWO + b"\r\n", 304, b"", True),
    "informational": (
        b"PUT",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" + OK + TWO + b"\r\nok",
        200,
        b"ok",
        True,
    ),
    "close": (b"GET", OK + TWO + b"Connection: Keep-Alive, Close\r\n\r\nok", 200, b"ok", False),
    "HTTP/1.0": (b"GET", b"HTTP/1.0 200\r\n" + TWO + b"Connection: keep-alive\r\n\r\nok", 200, b"ok", False),
    "a byte more": (b"GET", OK + TWO + b"\r\nokx", 200, b"ok", False),
    "a line break more": (b"GET", OK + TWO + b"\r\nok\r\n", 200, b"ok", False),
    "another response": (b"GET", OK + TWO + b"\r\nok" + OK + TWO + b"\r\nno", 200, b"ok", False),
    "a body of HEAD": (b"HEAD", OK + TWO + b"\r\nok", 200, b"", False),
    "a body of 204": (b"GET", b"HTTP/1.1 204 No Content\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 204, b"", False),
    "a line break after chunks": (b"GET", OK + CHUNKED + b"\r\n1\r\na\r\n0\r\n\r\n\r\n", 200, b"a", False),
}  # fmt: skip

MALFORMED = {
    "lengths": OK + TWO + b"Content-Length: 3\r\n\r\nok",
    "equal lengths": OK + TWO + TWO + b"\r\nok",
    "list of lengths": OK + b"Content-Length: 2, 2\r\n\r\nok",
    "signed length": OK + b"Content-Length: +2\r\n\r\nok",
    "length and chunks": OK + TWO + CHUNKED + b"\r\n2\r\nok\r\n0\r\n\r\n",
    "chunks and length": OK + CHUNKED + TWO + b"\r\n2\r\nok\r\n0\r\n\r\n",
    "encoding": OK + b"Transfer-Encoding: gzip\r\n\r\nok",
    "encodings": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "chunks twice": OK + CHUNKED + CHUNKED + b"\r\n2\r\nok\r\n0\r\n\r\n",
    "size of a chunk": OK + CHUNKED + b"\r\nx\r\nok\r\n0\r\n\r\n",
    "end of a chunk": OK + CHUNKED + b"\r\n2\r\nokay\r\n0\r\n\r\n",
    "line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "continued line": OK + b"X-Long: a\r\n b\r\n" + TWO + b"\r\nok",
    "NUL": OK + b"X-Nul: a\0b\r\n" + TWO + b"\r\nok",
    "NUL in the reason": b"HTTP/1.1 200 O\0K\r\n" + TWO + b"\r\nok",
    "space in a name": OK + b"Content-Length : 2\r\n\r\nok",
    "protocol": b"SSH-2.0-OpenSSH_9.9\r\n",
    "status": b"HTTP/1.1 099 Low\r\n\r\n",
    "switch of protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "informational with a body": b"HTTP/1.1 100 Continue\r\n" + TWO + b"\r\nok" + OK + TWO + b"\r\nok",
}


def received(method: bytes, data: bytes, size: int) -> ResponseReader:
    """Feed `data` in pieces of `size` bytes; those after the end are not read."""
    reader = ResponseReader(method)
    for start in range(0, len(data), size):
        if not reader.is_complete:
            reader.feed(data[start : start + size])
    return reader


@pytest.mark.parametrize("case", COMPLETE)
def test_a_response_is_complete_at_its_end(case: str) -> None:
    method, data, status, body, is_reusable = COMPLETE[case]
    whole = received(method, data, len(data))
    assert (whole.is_complete, whole.status, bytes(whole.body)) == (True, status, body)
    assert whole.keeps_open is is_reusable
    for size in (1, 7):
        pieces = received(method, data, size)
        assert (pieces.is_complete, pieces.status, bytes(pieces.body)) == (True, status, body)
        assert pieces.headers == whole.headers


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_headers_are_those_of_the_head_in_their_order(size: int) -> None:
    head = (
        b"HTTP/1.1 103 Early\r\nX-Early: 1\r\n\r\nHTTP/1.1 409 So not \xe4\r\n"
        b"X-b:  two words \t\r\nEmpty:\r\nx-B: \xe4\r\n" + CHUNKED + b"\r\n0\r\nX-Sum: 1\r\n\r\n"
    )
    reader = received(b"GET", head, size)
    assert reader.is_complete
    assert reader.reason == b"So not \xe4"
    assert reader.headers == [
        (b"X-b", b"two words"),
        (b"Empty", b""),
        (b"x-B", b"\xe4"),
        (b"Transfer-Encoding", b"chunked"),
    ]


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_response_is_refused(case: str, size: int) -> None:
    with pytest.raises(httpcore.RemoteProtocolError):
        received(b"GET", MALFORMED[case], size)


def test_a_response_without_a_stated_length_ends_with_the_connection() -> None:
    for head in (OK, b"HTTP/1.0 200 OK\r\n"):
        reader = received(b"GET", head + b"\r\nok", 4)
        assert not reader.is_complete
        reader.end()
        assert (reader.is_complete, bytes(reader.body), reader.keeps_open) == (True, b"ok", False)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "without a response"),
        (OK, "without a response"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "without a response"),
        (OK + TWO + b"\r\no", "after 1 bytes"),
        (OK + CHUNKED + b"\r\n2\r\nok\r\n", "after 2 bytes"),
    ],
)
def test_a_connection_that_ends_within_a_response_is_a_failure(data: bytes, reason: str) -> None:
    reader = received(b"GET", data, 1000)
    with pytest.raises(httpcore.RemoteProtocolError, match=reason):
        reader.end()


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (OK + b"X-Long: ", b"x" * 1000),
        (OK, b"X-More: 1\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (OK + CHUNKED + b"\r\n1\r\na\r\n0\r\n", b"X-More: 1\r\n"),
        (OK + CHUNKED + b"\r\n1;", b"x" * 1000),
    ],
)
def test_head_and_trailers_of_a_response_are_limited(begin: bytes, more: bytes) -> None:
    reader = ResponseReader(b"GET")
    reader.feed(begin + more)
    reader.feed(more * (MAX_OVERHEAD // len(more) - 10))
    with pytest.raises(httpcore.RemoteProtocolError, match="too long"):
        reader.feed(more * 100)


def test_a_large_body_in_small_chunks_is_not_limited() -> None:
    reader = ResponseReader(b"GET")
    reader.feed(OK + CHUNKED + b"\r\n")
    for _ in range(20):
        reader.feed(b"1;" + b"x" * 2000 + b"\r\na\r\n" + b"1\r\nb\r\n" * 1000)
    assert len(reader.body) == 20 * 1001


@pytest.mark.parametrize(
    ("fields", "content", "ends", "body"),
    [
        ((), None, b"\r\n\r\n", b""),
        ((), b"{}", b"\r\nContent-Length: 2\r\n\r\n", b"{}"),
        (((b"content-length", b"2"),), b"{}", b"\r\ncontent-length: 2\r\n\r\n", b"{}"),
        (((b"Content-Length", b"0"),), None, b"\r\nContent-Length: 0\r\n\r\n", b""),
        (
            (),
            [b"ab", b"", b"c"],
            b"\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (((b"Content-Length", b"3"),), [b"ab", b"c"], b"\r\nContent-Length: 3\r\n\r\n", b"abc"),
        (
            ((b"Transfer-Encoding", b"chunked"),),
            b"ab",
            b"\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"2\r\nab\r\n0\r\n\r\n",
        ),
    ],
)
def test_a_request_states_the_end_of_its_body(
    fields: tuple[tuple[bytes, bytes], ...], content: Content, ends: bytes, body: bytes
) -> None:
    head, length = request_head(b"POST", b"/x?y=z", [HOST, (b"X-A", b"1  \t2"), *fields], content)
    assert head == b"POST /x?y=z HTTP/1.1\r\nHost: cloud.example\r\nX-A: 1  \t2" + ends
    assert b"".join(request_body(content, length)) == body


@pytest.mark.parametrize("content", [b"abc", [b"ab", b"c"], b"a", [], None])
def test_a_body_has_the_stated_length(content: Content) -> None:
    _, length = request_head(b"POST", b"/", [HOST, (b"Content-Length", b"2")], content)
    sent: list[bytes] = []
    with pytest.raises(httpcore.LocalProtocolError):
        sent.extend(request_body(content, length))
    assert len(b"".join(sent)) <= 2


@pytest.mark.parametrize("bad", [b"\r\n", b"\n", b"\r", b"\0", b"\x0b", b"\x7f", b"\n ", b"\r\nX-Evil: 1"])
def test_nothing_can_be_injected_into_a_head(bad: bytes) -> None:
    for place in (bad + b"x", b"x" + bad, b"x" + bad + b"x"):
        for method, target, fields in (
            (place, b"/", [HOST]),
            (b"GET", place, [HOST]),
            (b"GET", b"/", [HOST, (place, b"1")]),
            (b"GET", b"/", [HOST, (b"X-A", place)]),
            (b"GET", b"/", [(b"Host", place)]),
        ):
            with pytest.raises(httpcore.LocalProtocolError):
                request_head(method, target, fields, None)


@pytest.mark.parametrize(
    ("target", "fields"),
    [
        (b"/a b", [HOST]),
        (b"/\xe4", [HOST]),
        (b"", [HOST]),
        (b"/", []),
        (b"/", [HOST, (b"host", b"other.example")]),
        (b"/", [HOST, (b"X-A ", b"1")]),
        (b"/", [HOST, (b"X:A", b"1")]),
        (b"/", [HOST, (b"", b"1")]),
        (b"/", [HOST, (b"X-A", b" 1")]),
        (b"/", [HOST, (b"Content-Length", b"2"), (b"content-length", b"2")]),
        (b"/", [HOST, (b"Content-Length", b"2"), (b"Transfer-Encoding", b"chunked")]),
        (b"/", [HOST, (b"Content-Length", b"-2")]),
        (b"/", [HOST, (b"Transfer-Encoding", b"gzip")]),
    ],
)
def test_a_malformed_request_is_refused(target: bytes, fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(httpcore.LocalProtocolError):
        request_head(b"POST", target, fields, b"{}")


def test_the_value_of_a_malformed_header_is_not_reported() -> None:
    with pytest.raises(httpcore.LocalProtocolError, match="X-Auth-Token") as refused:
        request_head(b"GET", b"/", [HOST, (b"X-Auth-Token", b"secret\n")], None)
    assert "secret" not in str(refused.value)
