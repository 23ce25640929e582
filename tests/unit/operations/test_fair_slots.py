"""Slots shared by owners."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from orchestrator.operations.runtime.fair_slots import FairSlots, NoFreeSlot

LONG = 30.0  # seconds; never waited for


def acquired(pool: ThreadPoolExecutor, slots: FairSlots, owner: str, waiting: int) -> Future[None]:
    """Acquire a slot in a thread; return once `waiting` calls wait."""
    future = pool.submit(slots.acquire, owner, LONG)
    while len(slots._waiters) < waiting and not future.done():
        pass
    return future


def test_an_owner_occupies_its_share_only():
    slots = FairSlots(4, per_owner=2, waiting_per_owner=8)
    slots.acquire("a", 0)
    slots.acquire("a", 0)
    with pytest.raises(NoFreeSlot):
        slots.acquire("a", 0)
    slots.acquire("b", 0)


def test_a_released_slot_goes_to_the_owner_with_the_fewest():
    slots = FairSlots(2, per_owner=2, waiting_per_owner=8)
    slots.acquire("a", 0)
    slots.acquire("a", 0)
    with ThreadPoolExecutor(3) as pool:
        first, second = acquired(pool, slots, "a", 1), acquired(pool, slots, "a", 2)
        other = acquired(pool, slots, "b", 3)
        slots.release("a")
        other.result(LONG)
        assert not first.done()
        slots.release("a")
        first.result(LONG)
        assert not second.done()
        slots.release("b")
        second.result(LONG)


def test_more_waiting_calls_than_allowed_are_refused_at_once():
    slots = FairSlots(1, per_owner=1, waiting_per_owner=1)
    slots.acquire("a", 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = acquired(pool, slots, "a", 1)
        with pytest.raises(NoFreeSlot):
            slots.acquire("a", LONG)
        slots.release("a")
        waiting.result(LONG)


def test_a_call_that_gave_up_takes_no_slot():
    slots = FairSlots(1, per_owner=1, waiting_per_owner=1)
    slots.acquire("a", 0)
    with pytest.raises(NoFreeSlot):
        slots.acquire("b", 0)
    slots.release("a")
    slots.acquire("c", 0)
