"""When objects that are missing in lists are looked up again."""

from __future__ import annotations

from orchestrator.operations.runtime.look_ups import LookUps


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_existing_object_is_looked_up_twice_and_then_rarely():
    clock = Clock()
    look_ups = LookUps(clock)
    pauses = []
    for _ in range(9):
        start = clock.now
        while not look_ups.is_due(1, 7, missing=False):
            clock.now += 1.0
        pauses.append(clock.now - start)
        look_ups.note(1, 7, missing=False)
    assert pauses == [0, 0, 10, 20, 40, 80, 160, 320, 600]


def test_a_missing_object_is_looked_up_again_after_a_while():
    clock = Clock()
    look_ups = LookUps(clock)
    look_ups.note(1, 7, missing=True)
    assert not look_ups.is_due(1, 7, missing=True)
    clock.now += 600
    assert look_ups.is_due(1, 7, missing=True)


def test_a_new_version_or_another_verdict_is_looked_up_at_once():
    look_ups = LookUps(Clock())
    look_ups.note(1, 7, missing=True)
    assert look_ups.is_due(1, 8, missing=True)
    assert look_ups.is_due(1, 7, missing=False)
