"""Slots shared by owners."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from orchestrator.fair_share import FairShare, NoFreeSlot, Occupancy, fair_slots

LONG = 30.0  # seconds; never waited for


def acquired(pool: ThreadPoolExecutor, slots: FairShare, owner: str, waiting: int) -> Future[None]:
    """Acquire a slot in a thread; return once `waiting` calls wait."""
    future = pool.submit(slots.acquire, owner, LONG)
    while len(slots.waiters) < waiting and not future.done():
        pass
    return future


def test_an_owner_occupies_its_share_only():
    slots = fair_slots(4, per_owner=2, waiting_per_owner=8)
    slots.acquire("a", 0)
    slots.acquire("a", 0)
    with pytest.raises(NoFreeSlot):
        slots.acquire("a", 0)
    slots.acquire("b", 0)


def test_a_released_slot_goes_to_the_owner_with_the_fewest():
    slots = fair_slots(2, per_owner=2, waiting_per_owner=8)
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
    slots = fair_slots(1, per_owner=1, waiting_per_owner=1)
    slots.acquire("a", 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = acquired(pool, slots, "a", 1)
        with pytest.raises(NoFreeSlot):
            slots.acquire("a", LONG)
        slots.release("a")
        waiting.result(LONG)


def test_a_call_that_gave_up_takes_no_slot():
    slots = fair_slots(1, per_owner=1, waiting_per_owner=1)
    slots.acquire("a", 0)
    with pytest.raises(NoFreeSlot):
        slots.acquire("b", 0)
    slots.release("a")
    slots.acquire("c", 0)


def test_the_waiter_of_the_least_weight_is_next():
    slots = FairShare(lambda: 1, weight_of=lambda waiter, held: (waiter.facts, held))
    slots.acquire("a", 0)
    with ThreadPoolExecutor(2) as pool:
        late = pool.submit(slots.acquire, "a", LONG, 2)
        while len(slots.waiters) < 1:
            pass
        urgent = pool.submit(slots.acquire, "a", LONG, 1)
        while len(slots.waiters) < 2:
            pass
        slots.release("a")
        urgent.result(LONG)
        assert not late.done()
        slots.release("a")
        late.result(LONG)


def test_an_excess_waiter_is_refused_for_another():
    slots = FairShare(lambda: 1, excess=lambda waiters: waiters[0] if len(waiters) > 1 else None)
    slots.acquire("a", 0)
    with ThreadPoolExecutor(2) as pool:
        refused = acquired(pool, slots, "a", 1)
        other = pool.submit(slots.acquire, "b", LONG)
        with pytest.raises(NoFreeSlot):
            refused.result(LONG)
        slots.release("a")
        other.result(LONG)


def test_slots_that_become_more_are_given_to_waiters():
    number = [1]
    slots = FairShare(lambda: number[0])
    slots.acquire("a", 0)
    with ThreadPoolExecutor(1) as pool:
        waiting = acquired(pool, slots, "b", 1)
        number[0] = 2
        with slots.lock:
            slots.grant()
        waiting.result(LONG)


def test_several_owners_occupy_together_or_not_at_all():
    occupancy = Occupancy()
    assert occupancy.enter(["a", "p"], each=2, total=3) is None
    assert occupancy.enter(["b", "p"], each=2, total=3) is None
    assert occupancy.enter(["c", "p"], each=2, total=3) == "p"
    assert occupancy.held == {"a": 1, "b": 1, "p": 2}
    assert occupancy.enter(["c"], each=2, total=3) is None
    assert occupancy.enter(["d"], each=2, total=3) is occupancy
    occupancy.leave(["a", "p"])
    assert occupancy.enter(["d"], each=2, total=3) is None
    assert occupancy.held == {"b": 1, "p": 1, "c": 1, "d": 1}
