"""Serialization of times, links and JSON. Short responses are sent whole, long responses are streamed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import lru_cache
from itertools import chain
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from flask import Response, request

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.events.event_body import event_body, event_stack_fields
from orchestrator.store.events.events import EventRow
from orchestrator.store.stacks.stacks import StackRow

Items = Generator[JsonObject, None, None]

# Longer responses are streamed, in slices of this size.
MAX_UNSTREAMED_ROWS: Final = 1_000
MAX_UNSTREAMED_BYTES: Final = 512 * 1024


def time(value: dt.datetime | None) -> str | None:
    """Return `YYYY-MM-DDTHH:MM:SSZ`."""
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if value is not None else None


def instant(value: dt.datetime) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    return value.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_response(value: object, status: int = 200) -> Response:
    """Return `value` as a JSON response."""
    return Response(orjson.dumps(value, default=str), status, mimetype="application/json")


def json_list(
    name: str, items: Items, tail: Callable[[int, JsonObject], JsonMapping] | None = None
) -> Response:
    """Return `{name: [items…]}`; `tail` adds keys computed from the number of items and the last item.

    The first slice is read before the response starts, so that an early error has an error status.
    """

    def chunks() -> Iterator[bytes]:
        count, last = 0, dict[str, Any]()

        def counted() -> Iterator[JsonObject]:
            nonlocal count, last
            for item in items:
                count, last = count + 1, item
                yield item

        with closing(items):
            yield b"{" + orjson.dumps(name) + b":["
            yield from json_slices(counted())
            trailer = tail(count, last) if tail else {}
            yield (
                b"]"
                + b"".join(b"," + orjson.dumps(k) + b":" + orjson.dumps(v) for k, v in trailer.items())
                + b"}"
            )

    return streamed_response(chunks())


def json_slices(items: Iterable[JsonObject | list[Any]]) -> Iterator[bytes]:
    """Yield the items of a JSON list, with commas between them, in slices of limited size."""
    texts, size, first = [], 0, True
    for item in items:
        texts.append(orjson.dumps(item, default=str))
        size += len(texts[-1])
        if size > MAX_UNSTREAMED_BYTES or len(texts) >= MAX_UNSTREAMED_ROWS:
            yield (b"" if first else b",") + b",".join(texts)
            texts, size, first = [], 0, False
    if texts:
        yield (b"" if first else b",") + b",".join(texts)


def streamed_response(chunks: Iterator[bytes]) -> Response:
    """Return a response made of chunks; a long response is streamed, so that memory does not grow with it."""
    read, size = list[bytes](), 0
    for chunk in chunks:
        read.append(chunk)
        size += len(chunk)
        if size > MAX_UNSTREAMED_BYTES:
            return Response(chain(read, chunks), mimetype="application/json")
    return Response(b"".join(read), mimetype="application/json")


class Links:
    """Absolute links with the scheme, host and version prefix of the request."""

    def __init__(self) -> None:
        """Take the base URL from the request."""
        self.base = request.root_url.rstrip("/")
        self._last: tuple[StackRow, str] | None = None

    def stack(self, project_id: str, name: str, stack_id: object) -> str:
        """Return a stack's canonical URL."""
        return f"{self.base}/{_part(project_id)}/stacks/{_part(name)}/{stack_id}"

    def of(self, stack: StackRow) -> str:
        """Return `stack`'s canonical URL."""
        if self._last is None or self._last[0] is not stack:  # listings ask for the same URL repeatedly
            self._last = stack, self.stack(stack.project_id, stack.name, stack.uuid)
        return self._last[1]


class NextPage:
    """The URL of the next page. It outlives the request, since long responses are streamed."""

    def __init__(self) -> None:
        """Keep the URL and query of the request."""
        self.place, self.query = request.base_url, request.args.to_dict(flat=False)

    def after(self, marker: str) -> str:
        """Return the URL of the page after `marker`."""
        return f"{self.place}?{urlencode({**self.query, 'marker': [marker]}, doseq=True)}"


def below(place: str, *parts: str) -> str:
    """Return the URL below `place` with the path segments `parts`."""
    return "/".join((place, *map(_part, parts)))


def link(rel: str, href: str) -> dict[str, str]:
    """Return a link."""
    return {"href": href, "rel": rel}


@lru_cache(maxsize=4096)  # consecutive rows of a page have the same stack
def _part(text: str) -> str:
    return quote(text, safe="")


def event_in_list(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> JsonObject:
    """Return an event as an entry of a list (docs/internals/rest-api.md §8), with its sequence."""
    url, result = links.of(stack), event_body(row, stack)
    resource = below(url, "resources", row.resource_name)
    result["links"] = linked = [
        link("self", f"{resource}/events/{result['id']}"),
        link("resource", resource),
        link("stack", url),
    ]
    if root is not None:  # clients take this link as support for nested depth
        linked.append(link("root_stack", root))
    return result


def event_with_stack(row: EventRow, stack: StackRow, links: Links, root: str | None = None) -> JsonObject:
    """Return an event with the fields of its stack, for streams of several stacks."""
    return event_in_list(row, stack, links, root) | event_stack_fields(row, stack)
