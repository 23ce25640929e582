"""A row that cannot be decoded stops its own resource or stack, or one request; no loop, no other project.

The columns come from the catalogue of the database: every nullable column is NULL, every column with JSON has
other shapes, and every sealed value is no ciphertext.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pytest

from tests.scenarios.poison.poisoned_world import NEIGHBOUR, VICTIM, Case, Outcome, PoisonedWorld
from tests.scenarios.warm_database import Kept

NULLS = 12  # columns of a table that are NULL at the same time
SHORT = ("items", "values", "bytes")  # the shapes that the short test has
# Tables without a row of the victim: what fills them is not part of the scenario, or they are written by
# counters and servers only.
EMPTY = {
    "accepted_resources", "stale_child", "ended_session", "hung_process", "large_value",
    "observation", "observation_fault", "observation_pass", "quarantine", "watcher",
    "worker",
}  # fmt: skip


@pytest.fixture(scope="module")
def poisoned(kept: Kept) -> Iterator[PoisonedWorld]:
    kept.empty()
    made = PoisonedWorld(kept)
    yield made
    made.close()


def faults(outcome: Outcome) -> list[str]:
    """Return the effects of a damaged row that it must not have."""
    found = [f"sweep: {error}" for error in outcome.sweep_errors]
    found += [f"task: {error}" for error in outcome.task_errors]
    found += [f"refused: {error}" for error in outcome.refused if error.startswith(NEIGHBOUR)]
    found += [
        f"GET {path}: {status}"
        for path, status in outcome.answers.items()
        if path.startswith(NEIGHBOUR) and status >= 400
    ]
    if outcome.states[NEIGHBOUR] != "UPDATE_COMPLETE":
        found.append(f"the neighbour is {outcome.states[NEIGHBOUR]}")
    if "IN_PROGRESS" in outcome.states[VICTIM]:
        found.append(f"the victim is {outcome.states[VICTIM]}")
    if any(status >= 500 for status in outcome.answers.values()) and not outcome.logs:
        found.append("an internal error is not logged")
    return found


def course(world: PoisonedWorld, cases: Sequence[Case], *, working: bool) -> list[str]:
    """Damage rows of the victim, at rest or in the middle of an update; return what must not happen."""
    world.restore()
    if working:
        world.begin()
    poisoned = [case for case in cases if world.poison(case)]
    if not poisoned:
        return []
    return [f"{', '.join(map(str, poisoned))}: {fault}" for fault in faults(world.course())]


def by_table(cases: Sequence[Case]) -> dict[str, list[list[Case]]]:
    """Return the cases of the short test by table: a few NULLs at the same time, one shape at a time."""
    found = {}
    for table, group in groupby(cases, lambda case: case.table):
        mine = list(group)
        nulls = [case for case in mine if case.shape == "null"]
        found[table] = [[case] for case in mine if case.shape in SHORT]
        found[table] += [nulls[start : start + NULLS] for start in range(0, len(nulls), NULLS)]
    return found


def test_without_damage_everything_completes(poisoned: PoisonedWorld) -> None:
    poisoned.restore()
    outcome = poisoned.course()
    assert faults(outcome) == []
    assert outcome.states == {VICTIM: "UPDATE_COMPLETE", NEIGHBOUR: "UPDATE_COMPLETE"}
    assert {status for status in outcome.answers.values() if status >= 400} == set()


def test_the_scenario_has_rows_in_every_other_table(poisoned: PoisonedWorld) -> None:
    poisoned.restore()
    filled = {
        table
        for table in poisoned.tables()
        if poisoned.admin.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None
    }
    assert set(poisoned.tables()) - filled == EMPTY


@pytest.mark.parametrize("working", [False, True], ids=["at rest", "at work"])
def test_damaged_rows_of_a_project_stop_no_loop_and_no_other_project(
    poisoned: PoisonedWorld, working: bool
) -> None:
    """Each round damages a column of each table."""
    tables = by_table(poisoned.cases())
    found = []
    for number in range(max(map(len, tables.values()))):
        cases = [case for rounds in tables.values() for case in rounds[number : number + 1] for case in case]
        found += course(poisoned, cases, working=working)
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("working", [False, True], ids=["at rest", "at work"])
def test_each_damaged_column_stops_no_loop_and_no_other_project(
    poisoned: PoisonedWorld, working: bool
) -> None:
    found = [fault for case in poisoned.cases() for fault in course(poisoned, [case], working=working)]
    assert found == []
