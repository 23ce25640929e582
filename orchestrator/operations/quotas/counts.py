"""Counts of a project's stacks or resources.

A count reads a row per stack. It is used again for a time proportional to its duration, so that counting
takes at most 1/COST_SHARE of the time of a process, however large the project is: a small project is counted
almost always, a project with a million stacks every few seconds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

COST_SHARE: Final = 20
MAX_COUNTED: Final = 10_000  # projects


@dataclass(slots=True)
class Count:
    """A number of a project at a time, and those accepted since then."""

    number: int = 0
    until: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ProjectCounts:
    """The numbers of the projects, as read by this process with `read`."""

    def __init__(self, read: Callable[[str], int]) -> None:
        """Start without counts."""
        self._read = read
        self._counts: OrderedDict[str, Count] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def locked(self, project_id: str) -> Iterator[Count]:
        """Hold the count of a project, read again if it is too old."""
        counted = self._of(project_id)
        with counted.lock:
            if time.monotonic() >= counted.until:
                started = time.monotonic()
                counted.number = self._read(project_id)
                now = time.monotonic()
                counted.until = now + COST_SHARE * (now - started)
            yield counted

    def _of(self, project_id: str) -> Count:
        with self._lock:
            counted = self._counts.setdefault(project_id, Count())
            self._counts.move_to_end(project_id)
            if len(self._counts) > MAX_COUNTED:
                self._counts.popitem(last=False)
        return counted
