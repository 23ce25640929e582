"""A watched field: its present states, its recent changes, and the reads that it awaits."""

from __future__ import annotations

import datetime as dt
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from api.streaming.hub import Subscriber
from orchestrator.engine.pictures.field import MAX_CHANGES, Field
from orchestrator.operations.pictures.field import Arrangement, FieldBuilder
from orchestrator.operations.pictures.history import PastField
from orchestrator.operations.runtime.caches import Slots
from orchestrator.store.stacks.stacks import StackRow

MAX_RESPONSES: Final = 16  # kept until the next change
MAX_RESPONSE_BYTES: Final = 256 * 1_024
MAX_PAST: Final = 8  # past times kept
MIN_WAIT_SECONDS: Final = 1.0  # until a viewer asks for a newer picture

Content = tuple[bytes, str]  # of a response, with its encoding


@dataclass(slots=True)
class Names:
    """Resources with events, by stack and name."""

    changed: set[tuple[int, str]] = field(default_factory=set)
    deleted: set[tuple[int, str]] = field(default_factory=set)

    def add(self, other: Names) -> None:
        """Add resources."""
        self.changed |= other.changed
        self.deleted |= other.deleted


@dataclass(slots=True, eq=False)
class Reload:
    """A complete read in its own thread."""

    thread: threading.Thread
    meanwhile: Names = field(default_factory=Names)


@dataclass(slots=True, eq=False)
class FollowedField:
    """A field and its recent changes. `lock` protects everything but the reads of the database."""

    stack: StackRow
    builder: FieldBuilder
    viewer: Subscriber | None  # None: events are not available, the field is read again instead
    touched_at: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    loading: threading.Lock = field(default_factory=threading.Lock)
    current: Field | None = None
    arrangement: Arrangement | None = None  # of `current`
    changes: deque[int] = field(default_factory=deque)  # positions, the newest last
    number: int = 0  # of all changes of this field
    seconds: float = 0.0  # duration of the last read
    reload_at: float = 0.0
    draft_until: float = 0.0  # then a first picture is too old
    reload: Reload | None = None  # in progress
    announced: int = 0  # events that made a complete read necessary
    shown: int = 0  # of these, those that the last read contains
    failed: bool = False  # a reload has failed: the field is dropped, the next request reads it
    drift_at: float = 0.0
    drifted: frozenset[int] = frozenset()  # ids whose byte has the flag
    leaving: dict[tuple[int, str], int] = field(default_factory=dict)  # positions of resources being deleted
    past: Slots[tuple[str, dt.datetime], PastField] = field(default_factory=lambda: Slots(MAX_PAST))
    responses: Slots[Hashable, Content] = field(default_factory=lambda: Slots(MAX_RESPONSES, _is_short))
    token: str = field(default_factory=lambda: secrets.token_hex(4))

    @property
    def read(self) -> tuple[Field, Arrangement]:
        """Return the field, which was read, with its arrangement. The caller holds the lock."""
        assert self.current is not None and self.arrangement is not None  # noqa: PT018
        return self.current, self.arrangement

    @property
    def is_draft(self) -> bool:
        """Whether only a first picture was read."""
        return self.current is not None and self.current.is_draft

    @property
    def cursor(self) -> str:
        """Return the position of a viewer that has seen all changes."""
        return f"{self.token}.{self.number}"

    def since(self, order: str, cursor: str) -> list[int] | None:
        """Return the positions that have changed since a cursor; None: the whole field is needed."""
        token, _, number = cursor.partition(".")
        if self.current is None or order != self.current.order or token != self.token or not number.isdigit():
            return None
        behind = self.number - int(number)
        if not 0 <= behind <= len(self.changes):
            return None
        return sorted(set(islice(reversed(self.changes), behind)))

    def response(self, request: Hashable, make: Callable[[], Content]) -> Content:
        """Return the response to a request for changes. Viewers who have seen the same changes share it until
        the next change. The caller holds the lock.
        """
        assert self.current is not None
        return self.responses.get(request, (self.current.order, self.number), make)

    @property
    def is_outdated(self) -> bool:
        """Whether events announced resources or requirements that only a complete read shows."""
        return self.announced != self.shown or (
            self.viewer is not None and self.viewer.behind and self.current is not None
        )

    @property
    def newer_in_seconds(self) -> float | None:
        """Return when the read that is awaited ends, about; None if none is awaited."""
        if not self.is_outdated:
            return None
        wait = 0.0 if self.reload is not None else max(0.0, self.reload_at - time.monotonic())
        return round(max(MIN_WAIT_SECONDS, wait + self.seconds), 1)

    def record(self, positions: list[int]) -> None:
        """Note changed positions."""
        self.number += len(positions)
        self.changes.extend(positions)
        while len(self.changes) > MAX_CHANGES:
            self.changes.popleft()


def _is_short(content: Content) -> bool:
    return len(content[0]) <= MAX_RESPONSE_BYTES
