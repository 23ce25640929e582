"""Changes of state that take time: a server is built, a volume is deleted.

A pending change is an object with a due time, so it survives a restart. Due changes are applied before the
next request, which is the first that could see them.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from simulated_openstack.json_types import JsonObject
from simulated_openstack.state import State

Change = Callable[..., None]


class Schedule:
    """The pending changes. `changes` are registered by name when the services are made."""

    def __init__(self, state: State) -> None:
        """Read the pending changes."""
        self._table = state.table("pending_change")
        self._changes: dict[str, Change] = {}
        self._heap: list[tuple[float, int, str]] = []
        self._count = 0
        for row in self._table:
            self._push(row)

    def register(self, name: str, change: Change) -> None:
        """Name a change; its arguments are JSON."""
        self._changes[name] = change

    def after(self, seconds: float, name: str, *arguments: Any) -> None:
        """Apply a change after some seconds."""
        row = {"id": uuid4().hex, "due": time.time() + seconds, "name": name, "arguments": list(arguments)}
        self._push(self._table.save(row))

    def run_due(self) -> None:
        """Apply all due changes."""
        while self._heap and self._heap[0][0] <= time.time():
            _, _, id_ = heapq.heappop(self._heap)
            row = self._table.get(id_)
            if row is not None:
                self._table.remove(id_)
                self._changes[row["name"]](*row["arguments"])

    def _push(self, row: JsonObject) -> None:
        self._count += 1
        heapq.heappush(self._heap, (row["due"], self._count, row["id"]))
