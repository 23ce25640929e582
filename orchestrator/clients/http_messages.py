"""Requests and responses of HTTP/1.1 as bytes; no input or output.

Responses are parsed by httptools (llhttp, in C), which rejects ambiguous framing: several lengths, a length
together with chunks, bare line feeds. Request heads are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import httpcore
import httptools

MAX_OVERHEAD: Final = 100 * 1024  # bytes of a response without a byte of its body: head, trailers

TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE: Final = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")
TARGET: Final = re.compile(rb"[\x21-\x7e]+")
WITHOUT_BODY: Final = (204, 304)
SWITCHING_PROTOCOLS: Final = 101

Fields = Sequence[tuple[bytes, bytes]]
Content = bytes | Iterable[bytes] | None


def request_head(method: bytes, target: bytes, fields: Fields, content: Content) -> tuple[bytes, int | None]:
    """Return the head of a request, and the length of its body; None for a body that is sent in chunks.

    Unless the fields state either, the length of bytes is added, and other contents are sent in chunks.

    Raises:
        httpcore.LocalProtocolError: a part contains line breaks or other forbidden characters, or the fields
            contradict each other.
    """
    if TOKEN.fullmatch(method) is None or TARGET.fullmatch(target) is None:
        raise httpcore.LocalProtocolError("the method or the target of the request is malformed")
    lines = [b"%b %b HTTP/1.1\r\n" % (method, target)]
    hosts, lengths, encodings = 0, [], []
    for name, value in fields:
        if TOKEN.fullmatch(name) is None or VALUE.fullmatch(value) is None:
            raise httpcore.LocalProtocolError(f"the header {name!r} of the request is malformed")
        match name.lower():
            case b"host":
                hosts += 1
            case b"content-length":
                lengths.append(value)
            case b"transfer-encoding":
                encodings.append(value.lower())
        lines.append(b"%b: %b\r\n" % (name, value))
    if hosts != 1 or len(lengths) + len(encodings) > 1:
        raise httpcore.LocalProtocolError("the request has several hosts, lengths or encodings, or no host")
    if (encodings and encodings != [b"chunked"]) or (lengths and not lengths[0].isdigit()):
        raise httpcore.LocalProtocolError("the length or the encoding of the request is malformed")
    length = int(lengths[0]) if lengths else None if encodings else 0
    if content is not None and not lengths and not encodings:
        length = len(content) if isinstance(content, bytes) else None
        lines.append(
            b"Transfer-Encoding: chunked\r\n" if length is None else b"Content-Length: %d\r\n" % length
        )
    lines.append(b"\r\n")
    return b"".join(lines), length


def request_body(content: Content, length: int | None) -> Iterator[bytes]:
    """Yield the pieces of a body: chunks without a length.

    Raises:
        httpcore.LocalProtocolError: the content does not have this length.
    """
    pieces = () if content is None else (content,) if isinstance(content, bytes) else content
    if length is None:
        for piece in pieces:
            if piece:
                yield b"%x\r\n%b\r\n" % (len(piece), piece)
        yield b"0\r\n\r\n"
        return
    for piece in pieces:
        length -= len(piece)
        if length < 0:
            break
        yield piece
    if length != 0:
        raise httpcore.LocalProtocolError("the body of the request does not have the stated length")


class ResponseReader:
    """Collects the response to a request; informational responses before it are skipped.

    `is_complete`: all parts were received. `keeps_open`: the connection can carry another request. `headers`
    belong to the head, without trailers.
    """

    def __init__(self, method: bytes) -> None:
        """Expect the response to a request with this method."""
        self.status, self.reason, self.headers = 0, b"", list[tuple[bytes, bytes]]()
        self.body = bytearray()
        self.is_complete = self.keeps_open = False
        self._to_head = method == b"HEAD"
        self._ends_with_connection = False
        self._overhead = 0  # bytes since the last byte of the body
        self._failure = ""
        self._reason, self._fields = b"", list[tuple[bytes, bytes]]()
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Take received bytes, not zero.

        Raises:
            httpcore.RemoteProtocolError: the response is malformed.
        """
        before = len(self.body), self.status
        try:
            self._parse(memoryview(data))
        except httptools.HttpParserCallbackError:
            raise  # an error of this class, not of the service
        except httptools.HttpParserUpgrade:
            pass  # only after SWITCHING_PROTOCOLS, which is a failure
        except httptools.HttpParserError as error:
            if not self.is_complete:
                raise httpcore.RemoteProtocolError(f"the response is malformed: {error}") from error
            self.keeps_open = False
        self._overhead = 0 if before != (len(self.body), self.status) else self._overhead + len(data)
        if self._overhead > MAX_OVERHEAD:
            self._failure = "a head or a trailer is too long"
        if self._failure:
            raise httpcore.RemoteProtocolError(f"the response is malformed: {self._failure}")

    def end(self) -> None:
        """Take the end of the connection, which completes a response without a stated length.

        Raises:
            httpcore.RemoteProtocolError: the response is not complete.
        """
        if not self.status:
            raise httpcore.RemoteProtocolError("the connection was closed without a response")
        if not self._ends_with_connection:
            raise httpcore.RemoteProtocolError(
                f"the connection was closed within the response, after {len(self.body)} bytes of its body"
            )
        self.is_complete = True

    def _parse(self, data: memoryview) -> None:
        # The parser would skip line breaks after the response. Whether bytes follow it is certain if the last
        # byte is parsed alone.
        if len(data) > 1:
            self._parser.feed_data(data[:-1])
        if self.is_complete:
            self.keeps_open = False
        else:
            self._parser.feed_data(data[-1:])

    # The following methods are called by the parser, also for bytes after the response.

    def on_status(self, piece: bytes) -> None:
        """Take a part of the reason phrase."""
        self._reason += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header or a trailer."""
        self._fields.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Take the end of a head."""
        fields, self._fields = self._fields, []
        reason, self._reason = self._reason, b""
        if self.is_complete:
            return
        status = self._parser.get_status_code()
        framing = _framing(fields)
        if status < 100 or status == SWITCHING_PROTOCOLS:
            self._failure = f"unexpected status {status}"
        elif not framing.is_supported:
            self._failure = "unsupported Transfer-Encoding"
        elif b"\0" in reason:
            self._failure = "NUL in the reason"
        elif status >= 200:
            self.status, self.reason, self.headers = status, reason, fields
            self.is_complete = self._to_head or status in WITHOUT_BODY
            self._ends_with_connection = not framing.is_stated
            self.keeps_open = (
                not framing.is_last
                and self._parser.get_http_version() == "1.1"
                and (framing.is_stated or self.is_complete)
            )

    def on_body(self, piece: bytes) -> None:
        """Take a part of the body."""
        if not self.is_complete:
            self.body += piece

    def on_message_complete(self) -> None:
        """Take the end of a response, which may be informational."""
        if self.status:
            self.is_complete = True


class _Framing(NamedTuple):
    """The end of a response, according to its fields."""

    is_stated: bool  # a length or chunks; otherwise it ends with the connection
    is_supported: bool
    is_last: bool  # the service closes the connection after it


def _framing(fields: Fields) -> _Framing:
    is_stated = is_last = False
    is_supported = True
    for name, value in fields:
        match name.lower():
            case b"content-length":
                is_stated = True
            case b"transfer-encoding":
                is_supported = not is_stated and value.lower() == b"chunked"
                is_stated = True
            case b"connection":
                is_last = is_last or b"close" in (option.strip() for option in value.lower().split(b","))
    return _Framing(is_stated, is_supported, is_last)
