"""How many resources of a group or a stack are repaired at once."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.observation.repair_limits import Candidate, Limits, Unit, admit


def unit(kind: Any = "group", size: int = 10, **options: Any) -> Unit:
    return Unit(1, kind, size, options.pop("in_service", size), options.pop("least", 0))


def changed(*ids: int, interrupts: bool = True) -> list[Candidate]:
    return [Candidate(id_, str(id_), broken=False, interrupts=interrupts) for id_ in ids]


def broken(*ids: int) -> list[Candidate]:
    return [Candidate(id_, str(id_), broken=True, interrupts=False) for id_ in ids]


def started(of: Unit, candidates: list[Candidate], share: float = 0.5, at_least: int = 10) -> list[int]:
    return sorted(admit([(of, one) for one in candidates], Limits(share, at_least)).started)


def test_members_out_of_service_come_first() -> None:
    assert started(unit(size=20), [*changed(1, 2), *broken(8, 9)], share=0.1, at_least=2) == [8, 9]


def test_members_in_service_are_updated_only_above_the_minimum() -> None:
    assert started(unit(least=8), changed(1, 2, 3, 4)) == [1, 2]
    assert started(unit(least=8, in_service=8), [*changed(1), *broken(2)]) == [2]
    assert started(unit(least=10), changed(1)) == []


def test_a_replacement_created_first_keeps_the_minimum() -> None:
    assert started(unit(least=10), changed(1, 2, interrupts=False)) == [1, 2]


def test_an_unknown_minimum_permits_a_member_at_a_time() -> None:
    of = Unit(1, "group", 10, 10, None)
    assert started(of, changed(1, 2, 3)) == [1]


def test_a_small_group_is_not_updated_as_a_whole() -> None:
    assert started(unit(size=3), changed(1, 2, 3), share=0.2) == [1]
    assert started(unit(size=3), broken(1, 2, 3), share=0.2) == [1, 2, 3]


def test_a_stack_has_a_share_and_a_number_that_always_starts() -> None:
    assert len(started(unit("stack", 12), changed(*range(12)), share=0.2)) == 10
    assert len(started(unit("stack", 100), changed(*range(50)), share=0.2)) == 20


def test_faults_of_a_member_start_together_and_units_do_not_share_limits() -> None:
    both = [
        Candidate(1, "a", broken=False, interrupts=True),
        Candidate(2, "a", broken=True, interrupts=False),
    ]
    assert started(unit(least=10), both) == [1, 2]
    other = Unit(2, "group", 10, 10, 9)
    found = admit([(unit(least=9), changed(1)[0]), (other, changed(2)[0])], Limits())
    assert found.started == {1, 2}


def test_the_reason_to_wait_is_stated() -> None:
    found = admit([(unit(least=10), changed(1)[0])], Limits())
    assert found.postponed == {1: "min_in_service of the group is 10, and 10 members are in service"}
    share = admit([(unit("stack", 1), one) for one in changed(1, 2)], Limits(0.2, 1))
    assert share.postponed == {2: "as many resources of the stack are repaired at once as the limits permit"}
