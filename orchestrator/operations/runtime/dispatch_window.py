"""How many messages a root stack may have outstanding: a stack of a million shares the queue with one of five
(docs/internals/protocol.md rule 15).

The count is this process's estimate, put right whenever the window is topped up; the sweep corrects
everybody. Being off by a few messages harms nobody, so nothing here is locked or shared.

What others do meanwhile is not known here, nor how many they are. So a process looks after so many visits of
its own: half as many when it found that the window had run nearly empty, a few more when it found it nearly
full. Workers that are added find messages without waiting for the sweep.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

RECHECK_SECONDS = 0.25  # how long "nothing left to ring" is believed
FIRST_LOOK = 32  # of the window's size one part, in visits


@dataclass(slots=True)
class _Root:
    each: int  # of our visits, between two looks
    since: int = 0  # the last look
    outstanding: int = 0
    left: bool = True  # nodes may be queued that no message was sent for
    checked_at: float = 0.0


class Windows:
    """The windows of the root stacks this process works on."""

    def __init__(self, size: int, remember: int = 1000) -> None:
        """`size` messages a root; the estimates of `remember` roots are kept."""
        self.size, self.remember = size, remember
        self._roots: dict[int, _Root] = {}

    def budget(self, root_id: int) -> int:
        """Return how many released nodes may be rung at once; one at least, for the message just used up."""
        return max(1, self.size - self._root(root_id).outstanding)

    def enqueued(self, root_id: int, rings: int, unrung: int) -> None:
        """Count messages about to be sent and nodes left without one."""
        root = self._root(root_id)
        root.outstanding += rings
        root.left = root.left or unrung > 0

    def completed(self, root_id: int, visits: int) -> None:
        """Count visits that ended."""
        root = self._root(root_id)
        root.outstanding = max(0, root.outstanding - visits)
        root.since += visits

    def needs_refill(self, root_id: int) -> bool:
        """Return whether to look for queued nodes without a message now."""
        root = self._root(root_id)
        if root.since < root.each:
            return False
        return root.left or time.monotonic() - root.checked_at > RECHECK_SECONDS

    def refilled(self, root_id: int, outstanding: int, rung: int) -> None:
        """Take over what the database counted."""
        root = self._root(root_id)
        if outstanding * 4 < self.size:
            root.each = max(1, root.each // 2)
        elif outstanding * 8 > self.size * 5:
            root.each = min(root.each + max(1, root.each // 8), max(1, self.size // 2))
        root.outstanding = outstanding + rung
        root.left = rung >= self.size - outstanding
        root.since, root.checked_at = 0, time.monotonic()

    def _root(self, root_id: int) -> _Root:
        root = self._roots.get(root_id)
        if root is None:
            if len(self._roots) >= self.remember:
                self._roots.pop(next(iter(self._roots)))
            root = self._roots[root_id] = _Root(max(1, self.size // FIRST_LOOK))
        return root
