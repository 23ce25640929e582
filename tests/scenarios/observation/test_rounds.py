"""Rounds of the observation over a provider that the test damages (operations/adr/0017)."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from orchestrator.engine.messages import RoundMessage
from orchestrator.store.maintenance import quarantine
from orchestrator.store.observation import groups, rules
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.world import World

MIN = 5.0
MAX = 30.0


class Watch:
    """A world with a stack, and its observer."""

    def __init__(self, world: World, shelf: Shelf) -> None:
        self.world, self.shelf = world, shelf
        self.db = world.database.check_connection(durable=True)

    def stack(self, boxes: int, kind: str = "Shelf::Box", name: str = "s") -> str:
        resource = {"type": kind, "properties": {"label": "blue"}}
        uuid = self.world.create(name, {f"r{number}": resource for number in range(boxes)})
        self.deliver()
        self.shelf.calls.clear()
        return uuid

    def deliver(self) -> None:
        while self.world.messages:
            self.world.deliver()

    def discover(self) -> None:
        """Find the groups of all projects."""
        groups.start_discoveries(self.db, self.world.settings.region_name, 0.0)
        self.db.execute(
            "UPDATE observation_group SET due_at = now(), enqueued_at = NULL WHERE kind = 'discovery'"
        )
        self._run("discovery")

    def round(self, kind: str = "lists") -> None:
        """Carry out a round now."""
        self.db.execute("UPDATE observation_group SET due_at = now() WHERE kind = %s", (kind,))
        self._run(kind)

    def _run(self, kind: str) -> None:
        self.db.execute(
            "UPDATE observation_group SET due_at = now() + interval '1 hour' WHERE kind <> %s", (kind,)
        )
        messages = groups.due(self.db, 100)
        assert messages
        for message in messages:
            self.world.deliver_one(message)

    def accept(self, path: str) -> uuid.UUID:
        """Accept a difference of the only stack."""
        [stack] = self.world.rows("SELECT id FROM stack")
        rule = {"project_id": "p1", "kind": "accept", "stack_id": stack.id, "path": path}
        nothing = {
            "type": "",
            "resource": "",
            "mode": None,
            "starts_at": None,
            "ends_at": None,
            "repeats": "",
        }
        author = {"reason": "painted", "created_by": "ada", "most": 10}
        id_ = uuid.uuid4()
        with self.db.transaction():
            assert rules.add(self.db, {**rule, **nothing, **author, "uuid": id_})
        return id_

    def verdicts(self) -> dict[str, str]:
        """Return the verdicts that deviate, by resource."""
        query = """SELECT name, CASE WHEN unknown_since IS NOT NULL THEN 'UNKNOWN' ELSE verdict END AS shown
            FROM resource_verdict WHERE confirmed OR unknown_since IS NOT NULL"""
        return {row.name: row.shown for row in self.world.rows(query)}

    def group(self, kind: str = "lists") -> Any:
        [row] = self.world.rows("SELECT * FROM observation_group WHERE kind = :kind", kind=kind)
        return row


@pytest.fixture
def watch(postgres_url: str) -> Iterator[Watch]:
    shelf = Shelf()
    settings = {
        "observation_interval_seconds": MAX,
        "observation_min_interval_seconds": MIN,
        "observation_single_interval_seconds": 300,
    }
    world = World(postgres_url, types=shelf.types(), **settings)
    yield Watch(world, shelf)
    world.close()


def observed(watch: Watch, boxes: int = 3, **options: Any) -> str:
    """Create a stack, and observe it once."""
    uuid = watch.stack(boxes, **options)
    watch.discover()
    watch.round()
    watch.shelf.calls.clear()
    return uuid


def test_a_quiet_round_is_a_list_and_writes_only_its_group(watch: Watch):
    observed(watch, 20)
    before = watch.world.rows("SELECT id, xmin::text FROM resource ORDER BY id")
    for _ in range(3):
        watch.round()
    assert watch.shelf.calls == ["list"] * 3
    assert watch.world.rows("SELECT id, xmin::text FROM resource ORDER BY id") == before
    assert watch.verdicts() == {}
    group = watch.group()
    assert (group.objects, group.calls, group.rounds) == (20, 1, 4)


def test_stacks_of_a_project_share_a_list(watch: Watch):
    watch.stack(2, name="s1")
    watch.stack(2, name="s2")
    watch.discover()
    watch.round()
    assert watch.shelf.calls == ["list"]
    assert watch.group().objects == 4


def test_types_that_appear_after_a_discovery_during_the_create_are_found(watch: Watch):
    watch.world.create("s", {"box": {"type": "Shelf::Box", "properties": {"label": "blue"}}})
    watch.discover()
    assert watch.world.rows("SELECT FROM observation_group WHERE kind = 'lists'") == []
    watch.deliver()
    watch.discover()
    watch.round()
    assert watch.group().objects == 1


def test_a_deleted_object_is_confirmed_and_reported(watch: Watch):
    uuid = observed(watch)
    del watch.shelf.objects["boxes-2"]
    watch.round()
    assert watch.shelf.calls == ["list", "get boxes-2"]
    [name] = watch.verdicts()
    assert watch.verdicts() == {name: "MISSING"}
    assert any("Observed MISSING" in text for text in watch.world.event_reasons(uuid, name))
    watch.round()
    assert watch.shelf.calls[2:] == ["list"]


def test_an_object_that_a_list_left_out_is_not_missing(watch: Watch):
    observed(watch)
    watch.shelf.hidden.add("boxes-2")
    watch.round()
    assert watch.verdicts() == {}


def test_an_object_that_no_list_contains_is_looked_up_ever_more_rarely(watch: Watch):
    observed(watch)
    watch.shelf.hidden.add("boxes-2")
    for _ in range(5):
        watch.round()
    assert watch.shelf.calls.count("get boxes-2") == 2
    assert watch.verdicts() == {}


def test_a_changed_property_is_reported_and_its_end_too(watch: Watch):
    observed(watch)
    watch.shelf.objects["boxes-1"]["label"] = "red"
    watch.round()
    [row] = watch.world.rows("SELECT * FROM resource_verdict")
    assert row.verdict == "MODIFIED"
    assert row.differences == [{"property": "label", "expected": "blue", "found": "red"}]
    watch.shelf.objects["boxes-1"]["label"] = "blue"
    watch.round()
    assert watch.verdicts() == {}
    assert [row.verdict for row in watch.world.rows("SELECT verdict FROM verdict_history")] == ["MODIFIED"]


def test_a_generated_name_is_watched_and_a_property_of_others_is_not(watch: Watch):
    observed(watch)
    watch.shelf.objects["boxes-1"]["holder"] = "somebody"
    watch.round()
    assert watch.verdicts() == {}
    watch.shelf.objects["boxes-1"]["name"] = "renamed"
    watch.round()
    assert list(watch.verdicts().values()) == ["MODIFIED"]


def test_an_error_counts_when_it_is_seen_twice(watch: Watch):
    observed(watch)
    watch.shelf.objects["boxes-1"] |= {"error": "no host", "busy": True}
    watch.round()
    watch.round()
    assert watch.verdicts() == {}
    watch.shelf.objects["boxes-1"]["busy"] = False
    watch.round()
    assert watch.verdicts() == {}
    assert watch.group().interval_seconds == MIN
    watch.round()
    assert list(watch.verdicts().values()) == ["FAILED"]


def test_half_a_list_proves_nothing(watch: Watch):
    observed(watch, 6)
    watch.shelf.breaks_after = 3
    watch.round()
    assert watch.verdicts() == {}
    assert "503" in watch.group().failing_reason
    watch.shelf.breaks_after = None
    watch.round()
    assert watch.group().failing_since is None
    assert watch.verdicts() == {}


def test_objects_whose_cell_is_down_are_unknown_after_a_few_requests(watch: Watch):
    observed(watch, 8)
    watch.shelf.hidden.update(watch.shelf.boxes())
    watch.shelf.silent = True
    watch.round()
    assert set(watch.verdicts().values()) == {"UNKNOWN"}
    assert len(watch.verdicts()) == 8
    assert len(watch.shelf.calls) == 1 + 3
    watch.shelf.silent = False
    watch.shelf.hidden.clear()
    watch.round()
    assert watch.verdicts() == {}


def test_the_loss_of_many_objects_is_noted_until_they_are_back(watch: Watch):
    observed(watch, 10)
    objects = dict(watch.shelf.objects)
    watch.shelf.objects.clear()
    watch.round()
    group = watch.group()
    assert (group.lost, group.lost_of) == (10, 10)
    assert set(watch.verdicts().values()) == {"MISSING"}
    watch.round()
    assert watch.group().loss_since == group.loss_since
    watch.shelf.objects.update(objects)
    watch.round()
    assert watch.group().loss_since is None
    assert watch.verdicts() == {}


def test_the_loss_of_a_few_objects_is_no_mass_loss(watch: Watch):
    observed(watch, 10)
    for name in watch.shelf.boxes()[:4]:
        del watch.shelf.objects[name]
    watch.round()
    assert watch.group().loss_since is None


def test_intervals_grow_in_quiet_rounds(watch: Watch):
    observed(watch)
    intervals = [watch.group().interval_seconds]
    for _ in range(3):
        watch.round()
        intervals.append(watch.group().interval_seconds)
    assert intervals == [5.0, 10.0, 20.0, 30.0]


def test_a_change_of_a_stack_makes_its_groups_due(watch: Watch):
    observed(watch)
    resource = {"type": "Shelf::Box", "properties": {"label": "green"}}
    watch.world.update("s", {"r0": resource})
    watch.deliver()
    watch.discover()
    [row] = watch.world.rows("SELECT due_at <= now() AS due FROM observation_group WHERE kind = 'lists'")
    assert row.due
    watch.round()
    assert watch.verdicts() == {}


def test_a_resource_in_an_operation_is_left_to_it(watch: Watch):
    observed(watch)
    del watch.shelf.objects["boxes-1"]
    watch.db.execute("UPDATE resource SET op = 'UPDATE', op_started_at = now() WHERE physical_id = 'boxes-1'")
    watch.round()
    assert watch.verdicts() == {}


def test_a_type_without_lists_is_observed_by_single_requests(watch: Watch):
    watch.stack(3, "Shelf::Crate")
    watch.discover()
    watch.round("single")
    assert len(watch.shelf.calls) == 3
    assert watch.group("single").interval_seconds == 300
    watch.shelf.objects["crates-1"]["label"] = "red"
    del watch.shelf.objects["crates-2"]
    watch.round("single")
    assert sorted(watch.verdicts().values()) == ["MISSING", "MODIFIED"]


def test_a_silent_service_without_lists_is_unknown_as_a_whole(watch: Watch):
    watch.stack(5, "Shelf::Crate")
    watch.discover()
    watch.shelf.silent = True
    watch.round("single")
    assert "the cell is down" in watch.group("single").failing_reason
    watch.shelf.silent = False
    watch.db.execute("DELETE FROM circuit_breaker")
    watch.round("single")
    assert watch.verdicts() == {}


def test_the_sweep_sends_messages_for_due_groups(watch: Watch):
    watch.stack(1)
    watch.discover()
    watch.db.execute("UPDATE observation_group SET due_at = now()")
    found = [message for message in watch.world.sweep.run() if isinstance(message, RoundMessage)]
    assert sorted(message.label for message in found) == [" discovery", "boxes lists"]
    assert {message.project for message in found} == {"p1"}


def test_a_late_message_finds_nothing_to_do(watch: Watch):
    observed(watch)
    watch.db.execute("UPDATE observation_group SET due_at = now()")
    [message] = [found for found in groups.due(watch.db, 10) if "lists" in found.label]
    for _ in range(2):
        watch.world.deliver_one(message)
    assert watch.shelf.calls == ["list"]


def test_groups_go_with_the_last_stack(watch: Watch):
    observed(watch)
    watch.world.delete("s")
    watch.deliver()
    watch.round()
    watch.discover()
    assert watch.world.rows("SELECT kind FROM observation_group") == []


def test_accepted_differences_are_no_drift(watch: Watch):
    observed(watch)
    watch.shelf.objects["boxes-1"] |= {"label": "red", "name": "renamed"}
    watch.round()
    id_ = watch.accept("*.properties.label")
    watch.round()
    [row] = watch.world.rows("SELECT differences FROM resource_verdict")
    assert [item["property"] for item in row.differences] == ["name"]
    watch.shelf.objects["boxes-1"]["name"] = row.differences[0]["expected"]
    watch.round()
    assert watch.verdicts() == {}
    assert rules.end(watch.db, "p1", id_, "ada")
    watch.round()
    assert list(watch.verdicts().values()) == ["MODIFIED"]


def test_accepted_differences_of_a_stack_take_one_query_a_round(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
):
    watch.stack(5)
    watch.discover()
    for box in watch.shelf.objects.values():
        box["label"] = "red"
    watch.accept("*.properties.label")
    read, surroundings = list[int](), rules.surroundings

    def counted(db: Any, stacks: Collection[int]) -> dict[int, rules.Surroundings]:
        read.extend(stacks)
        return surroundings(db, stacks)

    monkeypatch.setattr(rules, "surroundings", counted)
    for _ in range(2):
        watch.round()
    assert watch.verdicts() == {}
    assert len(read) == 2


def test_policies_shorten_the_interval_of_their_resources(watch: Watch):
    watch.stack(1)
    watch.discover()
    query = "INSERT INTO observation_rule (uuid, project_id, kind, mode, interval_seconds, type, created_by)"
    values = "VALUES (gen_random_uuid(), 'p1', 'policy', 'report', %s, %s, 'u')"
    for type_, seconds, expected in (("", 20.0, 20.0), ("Other", 7.0, 20.0), ("Shelf::Box", 10.0, 10.0)):
        watch.db.execute(f"{query} {values}", (seconds, type_))
        for _ in range(6):
            watch.round()
        assert watch.group().interval_seconds == expected


def test_a_resource_in_quarantine_is_left_out(watch: Watch):
    observed(watch, 3)
    [row] = watch.world.rows("SELECT id FROM resource WHERE physical_id = 'boxes-2'")
    report = quarantine.Report("worker", "", [("observation", row.id)], certain=True, position="match")
    for _ in range(2):
        quarantine.record(watch.db, report)
    watch.world.engine.quarantine.refresh_seconds = 0.0
    for number in (1, 2, 3):
        watch.shelf.objects[f"boxes-{number}"]["label"] = "red"
    watch.round()
    assert sorted(watch.verdicts().values()) == ["MODIFIED", "MODIFIED", "UNKNOWN"]
    [row] = watch.world.rows("SELECT unknown_reason FROM resource_verdict WHERE unknown_since IS NOT NULL")
    assert "hung a worker 2 times, in match" in row.unknown_reason
