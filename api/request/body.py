"""Request bodies: counted while they are read, kept small in memory, and never read past the limit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson
from flask import Request
from werkzeug.exceptions import BadRequest, HTTPException, RequestTimeout

from orchestrator.config import Settings
from orchestrator.errors import LimitExceeded
from orchestrator.operations.context import Body

CHUNK = 64 * 1024
SMALL = 1 << 20  # bytes; more than anything needs that holds no template: it is read in this process


@contextmanager
def read_body(
    request: Request, settings: Settings, *, small: bool = False, any_type: bool = False
) -> Iterator[Body]:
    """Read the body and hand it on: its bytes when small, otherwise a private file that is gone at the end.

    A content type that is neither JSON nor plain text means no body (docs/internals/rest-api.md §1), unless
    `any_type` is good. A `small` one is of a request that holds no template.

    Raises:
        LimitExceeded: it is larger than `max_json_body_size`, or not small; no more of it was read.
        RequestTimeout, BadRequest: it came too slowly, ended too early or is no body of HTTP.
    """
    limit, inline = settings.max_json_body_size, settings.inline_body_size
    if small:
        limit = min(limit, SMALL)
    if not any_type and not _is_text(request.mimetype):
        yield Body()
        return
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(request.content_length, limit)
    data = _read(request.stream, inline + 1, limit)
    if len(data) <= inline:
        _whole(len(data), request)
        yield Body(data=data)
        return
    with _private_file() as (file, path):
        size = file.write(data)
        del data
        while chunk := _next(request.stream, CHUNK):
            size += len(chunk)
            if size > limit:
                raise _too_large(size, limit)
            file.write(chunk)
        file.close()
        _whole(size, request)
        yield Body(path=path)


@contextmanager
def spooled_body(document: Mapping[str, Any], settings: Settings) -> Iterator[Body]:
    """Hand on a body that was put together here, as `received` does one that came.

    Raises:
        LimitExceeded: it is larger than `max_json_body_size`.
    """
    data = orjson.dumps(document)
    if len(data) > settings.max_json_body_size:
        raise _too_large(len(data), settings.max_json_body_size)
    if len(data) <= settings.inline_body_size:
        yield Body(data=data)
        return
    with _private_file() as (file, path):
        file.write(data)
        file.close()
        yield Body(path=path)


@contextmanager
def _private_file() -> Iterator[tuple[IO[bytes], Path]]:
    """Lend a file that is gone at the end."""
    handle, name = tempfile.mkstemp(prefix="orchestrator-body-")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def _is_text(mimetype: str) -> bool:
    return mimetype in {"", "application/json"} or mimetype.startswith("text/plain")


def _read(stream: IO[bytes], most: int, limit: int) -> bytes:
    """Read up to `most` bytes."""
    data = bytearray()
    while len(data) < most and (chunk := _next(stream, min(CHUNK, most - len(data)))):
        data += chunk
        if len(data) > limit:
            raise _too_large(len(data), limit)
    return bytes(data)


def _next(stream: IO[bytes], most: int) -> bytes:
    """Read up to `most` bytes."""
    with reading():
        return stream.read(most)


@contextmanager
def reading() -> Iterator[None]:
    """Take what cannot be read for the sender's fault, whatever the server raises.

    Raises:
        RequestTimeout, BadRequest: it came too slowly, ended too early or is no body of HTTP.
    """
    try:
        yield
    except TimeoutError:
        raise RequestTimeout("The request body came too slowly.") from None
    except HTTPException:
        raise
    except Exception as error:
        raise BadRequest("The request body could not be read to its end.") from error


def _whole(size: int, request: Request) -> None:
    if request.content_length is not None and size < request.content_length:
        raise BadRequest("The request body could not be read to its end.")


def _too_large(size: int, limit: int) -> LimitExceeded:
    return LimitExceeded(f"JSON body size ({size} bytes) exceeds maximum allowed size ({limit} bytes).")
