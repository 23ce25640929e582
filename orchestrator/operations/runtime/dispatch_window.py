"""The dispatch window: the maximum number of outstanding messages per root stack, so that a stack of a
million resources shares the queue with a stack of five (docs/internals/protocol.md rule 15).

The count is this process's estimate. It is corrected at each refill, and the sweep corrects all processes. An
error of a few messages is harmless, so no lock or shared state is needed.

A process knows neither the other processes nor their number. It checks the window after a number of its own
visits: half as many when the window was nearly empty at the last refill, a few more when it was nearly full.
Added workers therefore receive messages without waiting for the sweep.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

SIZE = 256  # messages outstanding per root stack
RECHECK_SECONDS = 0.25  # period after which an empty queue is checked again
FIRST_REFILL_DIVISOR = 32  # divisor of the window's size: visits before the first refill


@dataclass(slots=True)
class _Root:
    each: int  # own visits between two refills
    since: int = 0  # visits since the last refill
    outstanding: int = 0
    may_have_more: bool = True  # nodes without a message may be queued
    checked_at: float = 0.0


class Windows:
    """The windows of the root stacks that this process works on."""

    def __init__(self, size: int, remember: int = 1000) -> None:
        """`size` is the window of each root; estimates of at most `remember` roots are kept."""
        self.size, self.remember = size, remember
        self._roots: dict[int, _Root] = {}

    def budget(self, root_id: int) -> int:
        """Return the number of released nodes to enqueue now, at least 1 in place of the message just
        processed.
        """
        return max(1, self.size - self._root(root_id).outstanding)

    def enqueued(self, root_id: int, messages: int, remaining: int) -> None:
        """Count messages about to be sent and ready nodes without a message."""
        root = self._root(root_id)
        root.outstanding += messages
        root.may_have_more = root.may_have_more or remaining > 0

    def completed(self, root_id: int, visits: int) -> None:
        """Count completed visits."""
        root = self._root(root_id)
        root.outstanding = max(0, root.outstanding - visits)
        root.since += visits

    def needs_refill(self, root_id: int) -> bool:
        """Return whether to refill the window from queued nodes now."""
        root = self._root(root_id)
        if root.since < root.each:
            return False
        return root.may_have_more or time.monotonic() - root.checked_at > RECHECK_SECONDS

    def refilled(self, root_id: int, outstanding: int, enqueued: int) -> None:
        """Update the estimate with the database's count."""
        root = self._root(root_id)
        if outstanding * 4 < self.size:
            root.each = max(1, root.each // 2)
        elif outstanding * 8 > self.size * 5:
            root.each = min(root.each + max(1, root.each // 8), max(1, self.size // 2))
        root.outstanding = outstanding + enqueued
        root.may_have_more = enqueued >= self.size - outstanding
        root.since, root.checked_at = 0, time.monotonic()

    def _root(self, root_id: int) -> _Root:
        root = self._roots.get(root_id)
        if root is None:
            if len(self._roots) >= self.remember:
                self._roots.pop(next(iter(self._roots)))
            root = self._roots[root_id] = _Root(max(1, self.size // FIRST_REFILL_DIVISOR))
        return root
