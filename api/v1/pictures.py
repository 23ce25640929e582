"""Pictures of a stack of any size; an extension of Heat's API (docs/console.md).

A field has a byte per resource. Its names are read by range, and changes by cursor.
"""

from __future__ import annotations

import gzip
from typing import Final

from flask import Blueprint, Response, request

from api.dependencies import dependencies
from api.request import query_params
from api.request.stack_lookup import get_stack
from api.response.serialization import json_response
from api.streaming.fields import fields
from api.streaming.pictures import header_of, history_from, picture_of
from orchestrator.engine.pictures.field import encode, encode_changes
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject
from orchestrator.store.pictures import field as stored

pictures = Blueprint("pictures", __name__)

MAX_NAMES: Final = 1_000  # of a response
BINARY: Final = "application/octet-stream"
COMPRESSED_BYTES: Final = 1_024  # a longer response is compressed if the client accepts it


@pictures.get("/<project_id>/stacks/<stack_name>/<stack_id>/field")
def field(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - every path starts with it
    """Return a byte per resource, nested stacks included, in the order of level, stack and name."""
    query_params.require_known("at", "draft")
    header, states, tag = picture_of(get_stack(stack_name, stack_id)).shown()
    response = Response(mimetype=BINARY)
    response.set_etag(tag)
    response.headers["Cache-Control"] = "private, no-cache"
    response.headers["Vary"] = "Accept-Encoding"
    if request.if_none_match.contains(tag):
        response.status_code = 304
        return response
    _set_content(response, *_content(encode(header, states), compresses=_accepts_gzip()))
    return response


@pictures.get("/<project_id>/stacks/<stack_name>/<stack_id>/field/changes")
def field_changes(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the bytes of a field that have changed since a cursor, or the whole field."""
    query_params.require_known("order", "cursor")
    stack = get_stack(stack_name, stack_id)
    followed = fields().follow(stack)
    order, cursor = query_params.text("order") or "", query_params.text("cursor") or ""

    def encoded() -> bytes:
        current, _ = followed.read
        positions, header = followed.since(order, cursor), header_of(stack, followed, current)
        if positions is None:
            return encode(header, bytes(current.states))
        return encode_changes(header, positions, current.states)

    response = Response(mimetype=BINARY)
    compresses = _accepts_gzip()
    with followed.lock:
        body, coding = followed.response(
            (order, cursor, stack.state, compresses),
            lambda: _content(encoded(), compresses=compresses),
        )
    _set_content(response, body, coding)
    return response


@pictures.get("/<project_id>/stacks/<stack_name>/<stack_id>/field/summary")
def field_summary(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the number of resources by state, nested stacks included."""
    query_params.require_known("at", "draft")
    stack = get_stack(stack_name, stack_id)
    return json_response({"field": {"history_from": history_from(stack), **picture_of(stack).shown().header}})


@pictures.get("/<project_id>/stacks/<stack_name>/<stack_id>/field/names")
def field_names(project_id: str, stack_name: str, stack_id: str) -> Response:  # noqa: ARG001 - as above
    """Return the names of the resources in a range of a field."""
    query_params.require_known("start", "count", "order")
    start, count = query_params.integer("start") or 0, query_params.integer("count")
    if count is not None and count > MAX_NAMES:
        raise InvalidRequest(f"'count' is at most {MAX_NAMES}.")
    followed = fields().follow(get_stack(stack_name, stack_id))
    with followed.lock:
        current, _ = followed.read
        ids = current.ids[start : start + (100 if count is None else count)].tolist()
        order = current.order
    found = stored.names(dependencies().database, ids)
    return json_response(
        {"order": order, "start": start, "resources": [_named(found.get(id_)) for id_ in ids]}
    )


def _named(row: stored.NamedResource | None) -> JsonObject | None:
    """Return the names of a resource, None if it was deleted meanwhile."""
    if row is None:
        return None
    return {
        "resource_name": row.name,
        "resource_type": row.type,
        "resource_status": f"{row.action}_{row.status}",
        "stack_name": row.stack_name,
        "stack_id": row.stack_uuid,
    }


def _accepts_gzip() -> bool:
    return request.accept_encodings.quality("gzip") > 0


def _content(body: bytes, *, compresses: bool) -> tuple[bytes, str]:
    """Return a content and its encoding, empty if it is not compressed."""
    if compresses and len(body) > COMPRESSED_BYTES:
        return gzip.compress(body, 1, mtime=0), "gzip"
    return body, ""


def _set_content(response: Response, body: bytes, coding: str) -> None:
    if coding:
        response.headers["Content-Encoding"] = coding
    response.set_data(body)
