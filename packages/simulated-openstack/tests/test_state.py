"""The state of the simulated cloud and its copy in a file."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from simulated_openstack.schedule import Schedule
from simulated_openstack.state import State
from simulated_openstack.storage import FileStorage


def test_objects_are_found_by_indexed_fields_also_after_a_change() -> None:
    table = State().table("port", "network_id")
    row = table.save({"id": "1", "network_id": "a"})
    row["network_id"] = "b"
    table.save(row)
    assert table.where("network_id", "a") == []
    assert table.where("network_id", "b") == [row]
    table.remove("1")
    assert table.count("network_id", "b") == 0


def opened(path: Path) -> State:
    return State(FileStorage(path))


def stored(path: Path) -> list[str]:
    with closing(opened(path)) as state:
        return [row["id"] for row in state.table("port")]


def test_committed_objects_survive_a_restart_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "objects"
    with closing(opened(path)) as state:
        table = state.table("port")
        for name in ("2", "1", "3"):
            table.save({"id": name})
        state.commit()
        table.remove("1")
        table.save({"id": "2"})
        state.commit()
    assert stored(path) == ["2", "3"]


def test_pending_changes_survive_a_restart(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "objects")) as state:
        Schedule(state).after(0.0, "build", "x")
    seen: list[str] = []
    with closing(opened(tmp_path / "objects")) as state:
        schedule = Schedule(state)
        schedule.register("build", seen.append)
        schedule.run_due()
        schedule.run_due()
    assert seen == ["x"]


def test_committed_objects_survive_the_end_of_the_process_without_close(tmp_path: Path) -> None:
    path, copy = tmp_path / "objects", tmp_path / "copy"
    with closing(opened(path)) as state:
        state.table("port").save({"id": "1"})
        state.commit()
        for suffix in ("", "-wal"):  # what a killed process leaves
            copy.with_name(copy.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    assert stored(copy) == ["1"]


def test_a_file_belongs_to_its_owner_and_to_a_single_cloud(tmp_path: Path) -> None:
    path = tmp_path / "objects"
    with closing(opened(path)) as state:
        state.table("port").save({"id": "1"})
        state.commit()
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            opened(path)
