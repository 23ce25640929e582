"""A stack's events as they come: as one stream where the server has them so, and by asking again where not.

Between events a `Quiet` now and then gives its reader the time to look at the stack itself, or at the clock.
Whatever was cut is taken up where it was: a server that restarts costs a moment and no event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import httpx

from orchestrator.cli.client.api_client import Client, NoStream, StackId
from orchestrator.cli.exit_codes import Failure

FASTEST_SECONDS: Final = 0.3
SLOWEST_SECONDS: Final = 2.0
LOOK_EVERY: Final = 4  # polls in vain between two looks at the stack itself
PATIENCE_SECONDS: Final = 60.0  # a server that restarts is waited for

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing new just now; `settled` when everything that had happened by then was told."""

    settled: bool = False


def feed(
    client: Client,
    stack: StackId,
    after: Event | None,
    *,
    left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int = 0,
) -> Iterator[Event | Idle]:
    """Yield the events after one, for ever, of so many `nested` levels too. `left` says how many seconds
    there are, None for any number.

    Raises:
        ApiFailure: the server refuses; 404 when the stack is gone.
        Failure: nobody has answered for a minute.
    """
    last = after
    if after is None or "sequence" in after:
        try:
            place = str(after["sequence"]) if after is not None else "0.0"
            for step in streamed(client, stack, place, left, idle, nested):
                if not isinstance(step, Idle):
                    last = step
                yield step
        except NoStream:
            pass  # another server, or one with no room
    yield from _polled(client, stack, last, left, idle, nested)


def of_project(
    client: Client, after: str, nested: int, *, idle: Callable[[float], None] = time.sleep
) -> Iterator[Event]:
    """Yield the events of all stacks of the project after a sequence, for ever.

    Raises:
        ApiFailure: the server refuses.
        Failure: nobody has answered for a minute.
    """
    if after == "now":  # a place to come back to when the stream is cut before it says anything
        after = str(client.project_events("now", nested)["sequence"])
    client.patience_seconds = PATIENCE_SECONDS
    try:
        for step in streamed(client, None, after, lambda: None, idle, nested):
            if not isinstance(step, Idle):
                after = str(step["sequence"])
                yield step
    except NoStream:
        pass  # no room
    while True:
        page = client.project_events(after, nested)
        after = str(page["sequence"])
        yield from page["events"]
        if not page["more"]:
            idle(SLOWEST_SECONDS)


def streamed(
    client: Client,
    stack: StackId | None,
    place: str,
    left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int = 0,
) -> Iterator[Event | Idle]:
    """Yield the events after a place of a stack, or of all of the project's, over every cut.

    Raises:
        NoStream: the server has none, or no room.
        Failure: nobody has answered for as long as the client has patience.
    """
    heard = time.monotonic()
    while True:
        try:
            with closing(client.stream(stack, place, left(), nested)) as messages:
                for kind, sequence, body in messages:
                    place, heard = sequence or place, time.monotonic()
                    yield body if kind == "message" else Idle(settled=True)
        except httpx.InvalidURL as error:
            raise Failure(f"{client.url} is not a URL: {error}") from error
        except httpx.ReadTimeout:
            heard = time.monotonic()  # it is there, and said nothing for as long as there was time
        except httpx.HTTPError as error:
            if time.monotonic() - heard > client.patience_seconds:
                raise Failure(f"{client.url} did not answer: {error}") from error
        yield Idle()
        idle(FASTEST_SECONDS)


def _polled(
    client: Client,
    stack: StackId,
    after: Event | None,
    left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int,
) -> Iterator[Event | Idle]:
    marker = str(after["id"]) if after is not None else None
    empty, pause = 0, FASTEST_SECONDS
    while True:
        fresh = False
        for event in client.events(stack, after=marker, nested=nested):
            fresh, marker = True, event["id"]
            yield event
        empty = 0 if fresh else empty + 1
        yield Idle(settled=bool(empty) and empty % LOOK_EVERY == 0)
        pause = FASTEST_SECONDS if fresh else min(pause * 1.3, SLOWEST_SECONDS)
        seconds = left()
        idle(pause if seconds is None else max(0.0, min(pause, seconds)))
