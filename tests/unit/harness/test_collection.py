"""Parallel runs: each process loads the test modules in its own order, and all have the same tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.collection import RotatedCollection, rotated, rotation


def test_each_process_begins_at_its_part_and_loads_everything() -> None:
    entries = list("abcdefgh")
    orders = [rotated(entries, number, 4) for number in range(4)]
    assert [order[0] for order in orders] == ["a", "c", "e", "g"]
    assert all(sorted(order) == entries for order in orders)


def test_fewer_entries_than_processes_are_loaded_by_all() -> None:
    assert [rotated(["a", "b"], number, 4) for number in range(4)] == [["a", "b"]] * 2 + [["b", "a"]] * 2
    assert rotated([], 3, 4) == []


def test_the_tests_of_all_processes_have_the_order_of_an_unrotated_run() -> None:
    modules = ["tests/unit/test_a.py", "tests/unit/test_b.py", "tests/unit_more/test_a.py"]
    unrotated: list[Any] = [SimpleNamespace(path=Path(name), number=n) for name in modules for n in (2, 1)]
    for begin in (2, 4):
        items = rotated(unrotated, begin, len(unrotated))
        RotatedCollection(1, 4).pytest_collection_modifyitems(items)
        assert items == unrotated


def test_only_processes_of_parallel_runs_are_rotated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert rotation() is None
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "4")
    assert rotation() is not None
