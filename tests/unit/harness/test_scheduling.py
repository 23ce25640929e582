"""Parallel runs: which tests share a process, and the order of modules."""

from __future__ import annotations

from tests.scheduling import ordered, scope


def test_modules_that_share_a_server_run_in_the_same_process() -> None:
    names = ["tests/noisy/test_checks.py::test_a[x::y]", "tests/noisy/test_scaling.py::Test::test_b"]
    assert {scope(name) for name in names} == {"tests/noisy"}


def test_every_other_module_runs_by_itself() -> None:
    assert scope("tests/unit/graph/test_a.py::test_b[a::b]") == "tests/unit/graph/test_a.py"


def test_waiting_modules_are_spread_over_the_others() -> None:
    computing = {f"tests/unit/test_{number}.py": number for number in range(1, 11)}
    waiting = {"tests/e2e/test_few.py": 1, "tests/noisy": 90}
    order = ordered(computing | waiting)
    assert order[:2] == ["tests/noisy", "tests/unit/test_10.py"]
    assert order.index("tests/e2e/test_few.py") == 6
    assert [name for name in order if name in computing] == list(reversed(computing))
