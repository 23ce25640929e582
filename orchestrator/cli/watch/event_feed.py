"""The events of a stack as they happen: from an event stream if the server offers streams, otherwise by
polling.

Between events an `Idle` gives the reader the opportunity to check the stack or the clock. After a broken
connection the feed continues with the next event: a restart of the server loses no event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import httpx

from orchestrator.cli.client.api_client import Client
from orchestrator.cli.client.connection import NoStream, StackId
from orchestrator.cli.exit_codes import Failure
from orchestrator.json_types import JsonObject

MIN_PAUSE_SECONDS: Final = 0.3
MAX_PAUSE_SECONDS: Final = 2.0
POLLS_PER_CHECK: Final = 4  # polls without events between two checks of the stack
PATIENCE_SECONDS: Final = 60.0  # wait this long for a server that restarts

Event = JsonObject


@dataclass(frozen=True, slots=True)
class Idle:
    """No new events at the moment; `settled` if all earlier events have been delivered."""

    settled: bool = False


def feed(
    client: Client,
    stack: StackId,
    after: Event | None,
    *,
    seconds_left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int = 0,
) -> Iterator[Event | Idle]:
    """Yield the events after `after` without end, with `nested` levels of nested stacks.

    `seconds_left` returns the remaining seconds, None without a limit.

    Raises:
        ApiFailure: the server refuses; 404 when the stack is deleted.
        Failure: the server was unreachable for PATIENCE_SECONDS.
    """
    last = after
    if after is None or "sequence" in after:
        try:
            sequence = str(after["sequence"]) if after is not None else "0.0"
            for step in streamed(client, stack, sequence, seconds_left, idle, nested):
                if not isinstance(step, Idle):
                    last = step
                yield step
        except NoStream:
            pass
    yield from _polled(client, stack, last, seconds_left, idle, nested)


def of_project(
    client: Client, after: str, nested: int, *, idle: Callable[[float], None] = time.sleep
) -> Iterator[Event]:
    """Yield the events of all stacks of the project after a sequence, without end.

    Raises:
        ApiFailure: the server refuses.
        Failure: the server was unreachable for PATIENCE_SECONDS.
    """
    if after == "now":  # a definite sequence, in case the stream breaks before its first message
        after = str(client.events.of_project("now", nested)["sequence"])
    client.connection.patience_seconds = PATIENCE_SECONDS
    try:
        for step in streamed(client, None, after, lambda: None, idle, nested):
            if not isinstance(step, Idle):
                after = str(step["sequence"])
                yield step
    except NoStream:
        pass
    while True:
        page = client.events.of_project(after, nested)
        after = str(page["sequence"])
        yield from page["events"]
        if not page["more"]:
            idle(MAX_PAUSE_SECONDS)


def streamed(
    client: Client,
    stack: StackId | None,
    after: str,
    seconds_left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int = 0,
) -> Iterator[Event | Idle]:
    """Yield the events of a stack (None: of all stacks) after a sequence; reconnect after each break.

    Raises:
        NoStream: the server offers none, or has reached its limit.
        Failure: the server was unreachable for as long as the connection has patience.
    """
    last_contact = time.monotonic()
    while True:
        try:
            with closing(client.events.stream(stack, after, seconds_left(), nested)) as messages:
                for event_type, sequence, body in messages:
                    after, last_contact = sequence or after, time.monotonic()
                    yield body if event_type == "message" else Idle(settled=True)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise Failure(f"{client.connection.url} is not a URL: {error}") from error
        except httpx.ReadTimeout:
            last_contact = time.monotonic()  # connected, but silent until the time limit
        except httpx.HTTPError as error:
            if time.monotonic() - last_contact > client.connection.patience_seconds:
                raise Failure(f"{client.connection.url} did not answer: {error}") from error
        yield Idle()
        idle(MIN_PAUSE_SECONDS)


def _polled(
    client: Client,
    stack: StackId,
    after: Event | None,
    seconds_left: Callable[[], float | None],
    idle: Callable[[float], None],
    nested: int,
) -> Iterator[Event | Idle]:
    marker = str(after["id"]) if after is not None else None
    empty, pause = 0, MIN_PAUSE_SECONDS
    while True:
        fresh = False
        for event in client.events.list_all(stack, after=marker, nested=nested):
            fresh, marker = True, event["id"]
            yield event
        empty = 0 if fresh else empty + 1
        yield Idle(settled=bool(empty) and empty % POLLS_PER_CHECK == 0)
        pause = MIN_PAUSE_SECONDS if fresh else min(pause * 1.3, MAX_PAUSE_SECONDS)
        seconds = seconds_left()
        idle(pause if seconds is None else max(0.0, min(pause, seconds)))
