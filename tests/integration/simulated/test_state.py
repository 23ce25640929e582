"""The state of the simulated cloud and its copy in the database."""

from __future__ import annotations

from contextlib import closing

import psycopg

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


def stored(url: str) -> list[str]:
    with closing(State(url)) as state:
        return [row["id"] for row in state.table("port")]


def test_committed_objects_survive_a_restart_in_their_order(postgres_url: str) -> None:
    with closing(State(postgres_url)) as state:
        table = state.table("port")
        for name in ("2", "1", "3"):
            table.save({"id": name})
        state.commit()
        table.remove("1")
        table.save({"id": "2"})
        state.commit()
        assert stored(postgres_url) == ["2", "3"]


def test_pending_changes_survive_a_restart(postgres_url: str) -> None:
    with closing(State(postgres_url)) as state:
        Schedule(state).after(0.0, "build", "x")
    seen: list[str] = []
    with closing(State(postgres_url)) as state:
        schedule = Schedule(state)
        schedule.register("build", seen.append)
        schedule.run_due()
        schedule.run_due()
    assert seen == ["x"]


def test_changes_are_written_after_a_restart_of_the_database(postgres_url: str) -> None:
    with closing(State(postgres_url)) as state:
        state.table("port").save({"id": "1"})
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute(
                "SELECT pg_terminate_backend(pid, 10_000) FROM pg_stat_activity"
                " WHERE application_name = 'orchestrator-simulated-cloud' AND datname = current_database()"
            )
        state.commit()
        assert stored(postgres_url) == ["1"]
