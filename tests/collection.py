"""The order in which the processes of a parallel run load the test modules.

Each process loads all modules. On a clean checkout, the first to load a module also compiles it with its
assertions, which takes longer than all the rest. The processes begin at different modules, so that each
compiles a part and finds the rest compiled.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def rotated(entries: Sequence[T], number: int, count: int) -> list[T]:
    """Return the entries, beginning with process `number` of `count`."""
    begin = len(entries) * number // count
    return [*entries[begin:], *entries[:begin]]


class RotatedDir(pytest.Dir):
    """A folder whose entries begin with the process's."""

    place: tuple[int, int]  # number of the process, number of processes

    def collect(self) -> list[Any]:
        """Return the entries."""
        return rotated(list(super().collect()), *self.place)


class RotatedCollection:
    """Load the modules in the order of a process; the tests of all processes have the same order."""

    def __init__(self, number: int, count: int) -> None:
        """Load in the order of process `number` of `count`."""
        self._place = number, count

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: Any) -> pytest.Dir | None:
        """Return a rotated folder, unless it is a package."""
        if (path / "__init__.py").exists():
            return None
        folder: RotatedDir = RotatedDir.from_parent(parent, path=path)
        folder.place = self._place
        return folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Sort by module, as in an unrotated run."""
        items.sort(key=lambda item: item.path.parts)


def rotation() -> RotatedCollection | None:
    """Return the rotation of this process, None if it is not one of a parallel run."""
    name = os.environ.get("PYTEST_XDIST_WORKER")
    if name is None:
        return None
    return RotatedCollection(int(name.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
