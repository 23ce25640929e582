"""Request bodies: size is checked while reading, and memory use is bounded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import orjson
from flask import Request
from werkzeug.exceptions import BadRequest, HTTPException, RequestTimeout

from api.middleware.in_flight import reading_body
from orchestrator import config
from orchestrator.config import Settings
from orchestrator.errors import InvalidRequest, LimitExceeded
from orchestrator.json_types import JsonMapping
from orchestrator.operations.context import Body
from orchestrator.operations.runtime import turns

CHUNK = 64 * 1024
MAX_SMALL_BODY = 1 << 20  # bytes; maximum for bodies without a template, which are read in this process


@contextmanager
def read_body(
    request: Request, settings: Settings, *, small: bool = False, any_type: bool = False
) -> Iterator[Body]:
    """Read the body: small bodies into memory, larger bodies into a private temporary file.

    A content type other than JSON or plain text means no body (docs/internals/rest-api.md §1), unless
    `any_type` is set. `small` is for requests that carry no template.

    Raises:
        LimitExceeded: the body is larger than `max_json_body_size`, or than SMALL; the rest was not read.
        RequestTimeout, BadRequest: the body is too slow, incomplete or malformed.
        TooManyConcurrentRequests: the caller sends too many bodies slowly.
    """
    limit, inline = settings.max_json_body_size, config.INLINE_BODY_SIZE
    if small:
        limit = min(limit, MAX_SMALL_BODY)
    if not any_type and not _is_text(request.mimetype):
        try:
            yield Body()
        except InvalidRequest as error:
            error.args = (_with_ignored_type(str(error), request),)
            raise
        return
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(request.content_length, limit)
    with ExitStack() as files:
        with reading_body(request.environ):
            body = _received(request, files, inline, limit)
        turns.count_bytes(body.size)
        yield body


def _received(request: Request, files: ExitStack, inline: int, limit: int) -> Body:
    """Read the body; `files` deletes its file, if it has one."""
    data = _read(request.stream, inline + 1, limit)
    if len(data) <= inline:
        _require_complete(len(data), request)
        return Body(data=data)
    file, path = files.enter_context(_private_file())
    size = file.write(data)
    del data
    while chunk := _read_slice(request.stream, CHUNK):
        size += len(chunk)
        if size > limit:
            raise _too_large(size, limit)
        file.write(chunk)
    file.close()
    _require_complete(size, request)
    return Body(path=path)


@contextmanager
def spooled_body(document: JsonMapping, settings: Settings) -> Iterator[Body]:
    """Return a body built by this process in the form of `read_body`.

    Raises:
        LimitExceeded: the body is larger than `max_json_body_size`.
    """
    data = orjson.dumps(document)
    if len(data) > settings.max_json_body_size:
        raise _too_large(len(data), settings.max_json_body_size)
    if len(data) <= config.INLINE_BODY_SIZE:
        yield Body(data=data)
        return
    with _private_file() as (file, path):
        file.write(data)
        file.close()
        yield Body(path=path)


@contextmanager
def _private_file() -> Iterator[tuple[IO[bytes], Path]]:
    """Create a temporary file and delete it at the end."""
    handle, name = tempfile.mkstemp(prefix="orchestrator-body-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def _with_ignored_type(message: str, request: Request) -> str:
    """Add the reason if an error may be due to an ignored body, such as `curl --data` without a type."""
    if not request.content_length and "Transfer-Encoding" not in request.headers:
        return message
    return (
        f"{message}. The request body was not read as JSON because its Content-Type is {request.mimetype}; "
        "send Content-Type: application/json."
    )


def _is_text(mimetype: str) -> bool:
    return mimetype in {"", "application/json"} or mimetype.startswith("text/plain")


def _read(stream: IO[bytes], most: int, limit: int) -> bytes:
    """Read up to `most` bytes."""
    data = bytearray()
    while len(data) < most and (chunk := _read_slice(stream, min(CHUNK, most - len(data)))):
        data += chunk
        if len(data) > limit:
            raise _too_large(len(data), limit)
    return bytes(data)


def _read_slice(stream: IO[bytes], most: int) -> bytes:
    """Read up to `most` bytes."""
    with client_read_errors():
        return stream.read(most)


@contextmanager
def client_read_errors() -> Iterator[None]:
    """Convert read errors of any server to client errors.

    Raises:
        RequestTimeout, BadRequest: the body is too slow, incomplete or malformed.
    """
    try:
        yield
    except TimeoutError:
        raise RequestTimeout("The request body came too slowly.") from None
    except HTTPException:
        raise
    except Exception as error:
        raise BadRequest("The request body could not be read to its end.") from error


def _require_complete(size: int, request: Request) -> None:
    if request.content_length is not None and size < request.content_length:
        raise BadRequest("The request body could not be read to its end.")


def _too_large(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded(f"JSON body size ({size} bytes) exceeds maximum allowed size ({limit} bytes).")
