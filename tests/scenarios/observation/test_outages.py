"""Absences after an outage of a provider: they count in two observations (operations/adr/0017)."""
# ruff: noqa: F811 - the fixture is a parameter of the tests

from __future__ import annotations

import pytest

from orchestrator.operations.observation import list_round, single_round
from orchestrator.store import circuit_breakers
from orchestrator.store.observation import watched
from tests.scenarios.observation.test_rounds import MIN, Watch, observed, watch  # noqa: F401 - a fixture

SOON = "SELECT due_at < now() + interval '15 seconds' AS soon FROM observation_group WHERE kind = 'single'"


def outage(watch: Watch) -> None:
    """Carry out a round without an answer; then the service is back."""
    watch.shelf.breaks_after = 0
    watch.round()
    assert watch.group().failing_since is not None
    watch.shelf.breaks_after = None


def assert_a_loss_in_an_outage_is_reported_in_the_second_round(watch: Watch) -> None:
    outage(watch)
    del watch.shelf.objects["boxes-1"]
    watch.round()
    assert watch.verdicts() == {}
    watch.round()
    assert list(watch.verdicts().values()) == ["MISSING"]


def test_an_absence_in_the_first_answers_after_an_outage_proves_nothing(watch: Watch):
    observed(watch, 3)
    outage(watch)
    denied = watch.shelf.objects.pop("boxes-1")
    watch.round()
    assert watch.verdicts() == {}
    assert watch.group().interval_seconds == MIN
    watch.shelf.objects["boxes-1"] = denied
    watch.round()
    assert watch.verdicts() == {}


def test_an_object_that_is_lost_in_an_outage_is_missing_in_the_second_round(watch: Watch):
    observed(watch, 3)
    assert_a_loss_in_an_outage_is_reported_in_the_second_round(watch)


def test_an_object_that_was_looked_up_before_the_outage_is_missing_in_the_second_round(watch: Watch):
    observed(watch, 3)
    watch.shelf.hidden.add("boxes-1")
    watch.round()
    assert_a_loss_in_an_outage_is_reported_in_the_second_round(watch)


def test_a_list_that_is_cut_off_is_no_mass_loss(watch: Watch, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(list_round, "MAX_LOOK_UPS", 5)
    monkeypatch.setattr(watched, "SCAN", f"{watched.SCAN} ORDER BY r.id")  # otherwise without an order
    observed(watch, 20)
    first, *others = watch.world.rows("SELECT name, physical_id FROM resource ORDER BY id LIMIT 12")
    watch.shelf.hidden.update(row.physical_id for row in others)
    del watch.shelf.objects[first.physical_id]  # one of those that the round looks up
    watch.round()
    assert watch.group().loss_since is None
    assert watch.verdicts() == {first.name: "MISSING"}


def test_objects_that_are_still_to_be_looked_up_count_for_a_mass_loss(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(list_round, "MAX_LOOK_UPS", 2)
    observed(watch, 20)
    for name in watch.shelf.boxes()[:12]:
        del watch.shelf.objects[name]
    watch.round()
    assert watch.group().lost == 12


def test_an_absence_after_an_outage_of_a_service_without_lists_is_observed_again_soon(watch: Watch):
    watch.stack(2, "Shelf::Crate")
    watch.discover()
    watch.shelf.silent = True
    watch.round("single")
    watch.shelf.silent = False
    watch.db.execute("DELETE FROM circuit_breaker")
    del watch.shelf.objects["crates-1"]
    watch.round("single")
    assert watch.verdicts() == {}
    [row] = watch.world.rows(SOON)
    assert row.soon
    watch.round("single")
    assert list(watch.verdicts().values()) == ["MISSING"]


def test_an_absence_after_an_outage_that_only_visits_have_seen_proves_nothing(watch: Watch):
    observed(watch, 3)
    circuit_breakers.record_failure(watch.db, "p1", watch.group().service, "no answer", 1.0)
    denied = watch.shelf.objects.pop("boxes-1")
    watch.round()
    assert watch.verdicts() == {}
    watch.shelf.objects["boxes-1"] = denied
    watch.round()
    assert watch.verdicts() == {}


def test_an_error_that_the_first_task_of_a_round_has_observed_is_observed_again_soon(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(single_round, "MAX_ITEMS", 2)
    watch.stack(3, "Shelf::Crate")
    watch.discover()
    [first, *_] = watch.world.rows("SELECT physical_id FROM resource ORDER BY id")
    watch.shelf.objects[first.physical_id]["error"] = "broken"
    watch.round("single")
    [row] = watch.world.rows(SOON)
    assert row.soon  # the second task
    watch.round("single")
    assert watch.group("single").after_id == 0
    assert watch.verdicts() == {}
    [row] = watch.world.rows(SOON)
    assert row.soon
