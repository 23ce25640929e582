"""How times, links and JSON are written, short answers whole and long ones as they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from itertools import islice
from typing import Any, Final
from urllib.parse import quote, urlencode

import orjson
from flask import Response, request

from orchestrator.store.stacks.stacks import StackRow

Items = Generator[dict[str, Any], None, None]

WHOLE: Final = 1_000  # rows; an answer with more of them is streamed


def time(value: dt.datetime | None) -> str | None:
    """Return `YYYY-MM-DDTHH:MM:SSZ`."""
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if value is not None else None


def json_response(value: object, status: int = 200) -> Response:
    """Return `value` as an answer."""
    return Response(orjson.dumps(value, default=str), status, mimetype="application/json")


def json_list(
    name: str, items: Items, tail: Callable[[int, dict[str, Any]], Mapping[str, Any]] | None = None
) -> Response:
    """Return `{name: [items…]}`; `tail` gives further keys from how many there were and the last of them.

    The first WHOLE items are read before anything is answered, so that whatever fails at once fails with a
    status. The rest is written as it is read: memory does not grow with the answer.
    """
    first = list(islice(items, WHOLE))
    if len(first) < WHOLE:
        more = tail(len(first), first[-1] if first else {}) if tail else {}
        return json_response({name: first, **more})

    def chunks() -> Iterator[bytes]:
        with closing(items):
            slice_, count = first, 0
            yield b"{" + orjson.dumps(name) + b":["
            while slice_:
                text = b",".join(orjson.dumps(item, default=str) for item in slice_)
                yield text if count == 0 else b"," + text
                count, last = count + len(slice_), slice_[-1]
                slice_ = list(islice(items, WHOLE))
            more = tail(count, last) if tail else {}
            yield (
                b"]"
                + b"".join(b"," + orjson.dumps(k) + b":" + orjson.dumps(v) for k, v in more.items())
                + b"}"
            )

    return Response(chunks(), mimetype="application/json")


class Links:
    """Absolute links of one request: under the scheme, host and version prefix the caller used."""

    def __init__(self) -> None:
        """Take the base from the request."""
        self.base = request.root_url.rstrip("/")
        self._last: tuple[StackRow, str] | None = None

    def stack(self, project_id: str, name: str, stack_id: object) -> str:
        """Return a stack's canonical place."""
        return f"{self.base}/{_part(project_id)}/stacks/{_part(name)}/{stack_id}"

    def of(self, stack: StackRow) -> str:
        """Return `stack`'s canonical place."""
        if self._last is None or self._last[0] is not stack:  # a listing asks for the same one on every line
            self._last = stack, self.stack(stack.project_id, stack.name, stack.uuid)
        return self._last[1]


class NextPage:
    """The request's own address with another marker; a long answer ends after the request is gone."""

    def __init__(self) -> None:
        """Keep what was asked."""
        self.place, self.given = request.base_url, request.args.to_dict(flat=False)

    def after(self, marker: str) -> str:
        """Return the address of what comes after `marker`."""
        return f"{self.place}?{urlencode({**self.given, 'marker': [marker]}, doseq=True)}"


def below(place: str, *parts: str) -> str:
    """Return the place under `place` that `parts` name."""
    return "/".join((place, *map(_part, parts)))


def link(rel: str, href: str) -> dict[str, str]:
    """Return one link."""
    return {"href": href, "rel": rel}


@lru_cache(maxsize=4096)  # the names on a page, of one stack after the other
def _part(text: str) -> str:
    return quote(text, safe="")
