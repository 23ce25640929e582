"""How often a worker checks whether its stacks have messages left, although other workers consume them."""

from __future__ import annotations

import pytest

from orchestrator.operations.runtime import dispatch_window
from orchestrator.operations.runtime.dispatch_window import Windows

SIZE = 256
ROOT = 1


class Database:
    """Nodes of a root: the number with a message in flight, and the number without a message."""

    def __init__(self, nodes: int) -> None:
        self.outstanding, self.unrung = min(SIZE, nodes), max(0, nodes - SIZE)

    def top_up(self, windows: Windows) -> None:
        result, enqueued = self.outstanding, min(SIZE - self.outstanding, self.unrung)
        self.outstanding += enqueued
        self.unrung -= enqueued
        windows.refilled(ROOT, result, enqueued)


def drained(database: Database, workers: int) -> tuple[int, int]:
    """Let workers visit the queued nodes in turn; return how often the queue ran empty although nodes were
    left, and how often a worker checked.
    """
    every, empty, looks = [Windows(SIZE) for _ in range(workers)], 0, 0
    while database.outstanding:
        for windows in every:
            database.outstanding = max(0, database.outstanding - 1)
            windows.completed(ROOT, 1)
            if windows.needs_refill(ROOT):
                database.top_up(windows)
                looks += 1
        if not database.outstanding and database.unrung:  # the sweep comes by
            empty += 1
            enqueued = min(SIZE, database.unrung)
            database.outstanding, database.unrung = enqueued, database.unrung - enqueued
    return empty, looks


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 16])
def test_however_many_workers_there_are_the_queue_does_not_run_empty(workers: int) -> None:
    empty, looks = drained(Database(20_000), workers)
    assert empty == 0
    assert looks < 20_000 / 30, "looking costs as much as a visit"


def test_workers_that_are_nearly_as_many_as_messages_seldom_wait_for_the_sweep() -> None:
    windows_of_messages = 20_000 / SIZE
    assert drained(Database(20_000), 100)[0] < windows_of_messages / 4


def test_a_window_that_was_found_full_is_looked_at_again_later() -> None:
    windows = Windows(SIZE)
    windows.refilled(ROOT, SIZE, 0)
    windows.completed(ROOT, 4)
    assert not windows.needs_refill(ROOT)
    windows.completed(ROOT, SIZE // 2)
    assert windows.needs_refill(ROOT), "nobody knows that nothing was left"


def test_when_nothing_was_left_it_is_not_looked_for_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_window, "RECHECK_SECONDS", 3_600.0)
    windows = Windows(SIZE)
    windows.refilled(ROOT, 10, 3)
    windows.completed(ROOT, SIZE)
    assert not windows.needs_refill(ROOT)
    monkeypatch.setattr(dispatch_window, "RECHECK_SECONDS", 0.0)
    assert windows.needs_refill(ROOT)
