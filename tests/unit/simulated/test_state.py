"""The state of the simulated cloud and its file."""

from __future__ import annotations

from pathlib import Path

from orchestrator.simulated.schedule import Schedule
from orchestrator.simulated.state import State


def test_objects_are_found_by_indexed_fields_also_after_a_change() -> None:
    table = State().table("port", "network_id")
    row = table.save({"id": "1", "network_id": "a"})
    row["network_id"] = "b"
    table.save(row)
    assert table.where("network_id", "a") == []
    assert table.where("network_id", "b") == [row]
    table.remove("1")
    assert table.count("network_id", "b") == 0


def test_committed_objects_survive_a_restart_in_their_order(tmp_path: Path) -> None:
    state = State(tmp_path / "cloud.sqlite")
    table = state.table("port")
    for name in ("2", "1", "3"):
        table.save({"id": name})
    state.commit()
    table.remove("1")
    state.commit()
    assert [row["id"] for row in State(tmp_path / "cloud.sqlite").table("port")] == ["2", "3"]


def test_pending_changes_survive_a_restart(tmp_path: Path) -> None:
    state = State(tmp_path / "cloud.sqlite")
    Schedule(state).after(0.0, "build", "x")
    state.commit()
    seen: list[str] = []
    schedule = Schedule(State(tmp_path / "cloud.sqlite"))
    schedule.register("build", seen.append)
    schedule.run_due()
    schedule.run_due()
    assert seen == ["x"]
