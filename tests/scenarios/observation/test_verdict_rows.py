"""The rows of groups and verdicts: leases, fencing, the life of a fault (operations/adr/0017)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from orchestrator.engine.observation.drift import IN_SYNC, Difference, Drift
from orchestrator.engine.observation.judgement import MISSING
from orchestrator.store.observation import groups, verdicts, watched
from orchestrator.store.observation.groups import Group, ObservedType, RoundEnd
from orchestrator.store.observation.verdicts import NewDrift
from tests.scenarios.world import World

MISSED = Drift("MISSING", MISSING)
SEEN_ONCE = Drift("FAILED", "no host", confirmed=False)
FAILED = Drift("FAILED", "no host")
CHANGED = Drift("MODIFIED", "", (Difference("metadata.a", 1, 2),))
END = RoundEnd(pause=0.0, interval=5.0, seconds=0.1, objects=1, calls=1)


class Rounds:
    """Rounds of the group of a stack with one object, carried out by the test."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.db = world.database.check_connection(durable=True)
        self.uuid = world.create("s", {"a": {"type": "Cloud::Thing"}})
        world.deliver_all()
        groups.replace_services(self.db, "p1", "", [ObservedType("cloud", "single", "Cloud::Thing")])
        self.leases = iter(range(1, 1_000))
        self.group = self.claimed()

    def claimed(self) -> Group:
        [message] = groups.due(self.db, 10)
        group = groups.claim(self.db, message.group_id, next(self.leases))
        assert group is not None
        return group

    def read(self) -> watched.Watched:
        [resource] = watched.scan(self.db, "p1", ["Cloud::Thing"])
        return resource

    def find(self, drift: Drift, resource: watched.Watched | None = None) -> set[int]:
        """Write what a round found, and begin the next round."""
        resource = resource or self.read()
        written = verdicts.record(self.db, self.group, [NewDrift(resource.id, resource.version, drift)])
        groups.finish(self.db, self.group, END)
        self.group = self.claimed()
        return written

    def verdict(self):
        rows = self.world.rows("SELECT * FROM resource_verdict")
        return rows[0] if rows else None

    def history(self) -> list[str]:
        rows = self.world.rows("SELECT * FROM verdict_history ORDER BY id")
        assert all(row.first_seen_at <= row.last_seen_at <= row.ended_at for row in rows)
        return [row.verdict for row in rows]


@pytest.fixture
def rounds(world: World) -> Iterator[Rounds]:
    return Rounds(world)


# Groups


def test_a_project_with_stacks_gets_a_discovery_once(world: World):
    db = world.database.check_connection(durable=True)
    assert groups.start_discoveries(db, "", 0.0) == 0
    world.create("s", {"a": {"type": "Cloud::Thing"}})
    assert [groups.start_discoveries(db, "", 0.0) for _ in range(2)] == [1, 0]


def test_a_group_is_claimed_once_per_message(rounds: Rounds):
    groups.finish(rounds.db, rounds.group, END)
    [message] = groups.due(rounds.db, 10)
    assert groups.due(rounds.db, 10) == []
    assert groups.claim(rounds.db, message.group_id, 90) is not None
    assert groups.claim(rounds.db, message.group_id, 91) is None


def test_a_round_of_a_dead_worker_is_repeated(rounds: Rounds):
    assert groups.due(rounds.db, 10) == []
    rounds.db.execute("UPDATE observation_group SET leased_until = now() - interval '1 s'")
    again = rounds.claimed()
    assert not groups.renew(rounds.db, rounds.group)
    groups.finish(rounds.db, rounds.group, END)  # the lease is lost: no effect
    assert groups.renew(rounds.db, again)


def test_services_without_resources_lose_their_groups(rounds: Rounds):
    groups.finish(rounds.db, rounds.group, END)
    groups.replace_services(rounds.db, "p1", "", [ObservedType("other", "lists", "Other::Thing")])
    assert [row.service for row in rounds.world.rows("SELECT service FROM observation_group")] == ["other"]


def test_a_failing_group_keeps_its_first_reason_until_a_round_is_complete(rounds: Rounds):
    for reason in ("503", "504"):
        groups.fail(rounds.db, rounds.group, reason, 5.0, 0.0)
        rounds.group = rounds.claimed()
    assert rounds.group.failing
    query = "SELECT failing_reason FROM observation_group"
    assert [row.failing_reason for row in rounds.world.rows(query)] == ["503"]
    groups.finish(rounds.db, rounds.group, END)
    assert not rounds.claimed().failing


def test_a_loss_stays_until_the_objects_are_back(rounds: Rounds):
    courses = [
        (END._replace(lost=9), True),
        (END, True),
        (END._replace(restored=True), False),
        (END._replace(restored=True), False),
    ]
    for end, lossy in courses:
        groups.finish(rounds.db, rounds.group, end)
        rounds.group = rounds.claimed()
        assert rounds.group.lossy is lossy


def test_a_refused_credential_is_reported_once(rounds: Rounds):
    [stack] = rounds.world.rows("SELECT id FROM stack")
    for _ in range(2):
        groups.record_fault(rounds.db, stack.id, "trust not found")
    assert groups.faults(rounds.db, "p1") == {stack.id: "trust not found"}
    assert sum("trust not found" in text for text in rounds.world.event_reasons(rounds.uuid, "s")) == 1
    groups.clear_fault(rounds.db, stack.id)
    assert groups.faults(rounds.db, "p1") == {}


# Verdicts


def test_a_resource_in_step_has_no_row(rounds: Rounds):
    assert rounds.find(IN_SYNC)
    assert rounds.verdict() is None
    assert rounds.history() == []


def test_a_fault_has_an_event_and_the_same_id_until_it_ends(rounds: Rounds):
    rounds.find(MISSED)
    first = rounds.verdict()
    rounds.find(MISSED)
    assert (rounds.verdict().id, rounds.verdict().since) == (first.id, first.since)
    rounds.find(IN_SYNC)
    assert rounds.verdict() is None
    assert rounds.history() == ["MISSING"]
    rounds.find(MISSED)
    assert rounds.verdict().id != first.id
    events = [text for text in rounds.world.event_reasons(rounds.uuid, "a") if "Observed" in text]
    assert events == [f"CHECK_FAILED Observed MISSING: {MISSING}"] * 2


@pytest.mark.parametrize(
    ("reason", "told"), [("ResourceInError: resources.a: no host", 0), ("BadRequest: resources.a: no", 1)]
)
def test_an_error_that_the_operation_has_reported_has_no_further_event(rounds: Rounds, reason, told):
    rounds.db.execute("UPDATE resource SET status = 'FAILED', status_reason = %s", (reason,))
    rounds.find(FAILED)
    assert rounds.verdict().verdict == "FAILED"
    events = rounds.world.event_reasons(rounds.uuid, "a")
    assert sum("Observed FAILED" in text for text in events) == told


def test_an_error_seen_once_is_no_verdict(rounds: Rounds):
    rounds.find(SEEN_ONCE)
    first = rounds.verdict()
    assert not first.confirmed
    rounds.find(FAILED)
    assert (rounds.verdict().id, rounds.verdict().confirmed) == (first.id, True)
    rounds.find(IN_SYNC)
    assert rounds.history() == ["FAILED"]


def test_another_fact_ends_a_fault(rounds: Rounds):
    rounds.find(CHANGED)
    changed = rounds.verdict()
    rounds.find(MISSED)
    assert rounds.history() == ["MODIFIED"]
    assert rounds.verdict().id != changed.id


def test_an_outage_does_not_end_a_fault(rounds: Rounds):
    rounds.find(MISSED)
    fault = rounds.verdict()
    rounds.find(Drift("MISSING", MISSING, unknown="503"))
    assert (rounds.verdict().id, rounds.verdict().unknown_reason) == (fault.id, "503")
    rounds.find(MISSED)
    assert (rounds.verdict().id, rounds.verdict().since) == (fault.id, fault.since)
    assert rounds.history() == ["UNKNOWN"]


def test_standings_are_read_as_they_were_written(rounds: Rounds):
    resource = rounds.read()
    for drift in (MISSED, FAILED, CHANGED, SEEN_ONCE, Drift("IN_SYNC", unknown="503")):
        rounds.find(drift)
        assert verdicts.drifts(rounds.db, rounds.group) == {resource.id: drift}


# Fencing


def test_a_resource_that_was_written_meanwhile_gets_no_verdict(rounds: Rounds):
    resource = rounds.read()
    rounds.world.act("s", "check")
    rounds.world.deliver_all()
    assert rounds.find(MISSED, resource) == set()
    assert rounds.verdict() is None


def test_a_resource_that_is_locked_by_an_operation_is_skipped(rounds: Rounds):
    resource = rounds.read()
    with rounds.world.database.connect() as other, other.transaction():
        other.execute("SELECT 1 FROM resource WHERE id = %s FOR UPDATE", (resource.id,))
        assert rounds.find(MISSED, resource) == set()


@pytest.mark.parametrize(
    "change", ["op = 'UPDATE', op_started_at = now()", "lease = 1, leased_until = now()"]
)
def test_a_resource_in_an_operation_is_not_read(rounds: Rounds, change: str):
    rounds.db.execute(f"UPDATE resource SET {change}")
    assert list(watched.scan(rounds.db, "p1", ["Cloud::Thing"])) == []


def test_a_verdict_is_void_after_an_operation(rounds: Rounds):
    rounds.find(MISSED)
    before = rounds.verdict()
    rounds.db.execute("UPDATE resource SET observed = 'ready', observed_at = clock_timestamp()")
    assert verdicts.drifts(rounds.db, rounds.group) == {}
    rounds.find(MISSED)
    assert rounds.verdict().id != before.id


def test_verdicts_on_replaced_and_deleted_objects_end(rounds: Rounds):
    for change in ("UPDATE resource SET physical_id = 'other'", "DELETE FROM resource"):
        rounds.find(MISSED)
        rounds.db.execute(change)
        assert verdicts.end_void(rounds.db, rounds.group) == 1
    assert rounds.verdict() is None
    assert rounds.history() == ["MISSING", "MISSING"]


def test_another_project_is_not_read(rounds: Rounds):
    assert list(watched.scan(rounds.db, "p2", ["Cloud::Thing"])) == []
    assert watched.types_in_use(rounds.db, "p2") == []
    assert watched.types_in_use(rounds.db, "p1") == ["Cloud::Thing"]


def test_visits_carry_the_version_of_the_row(rounds: Rounds):
    resource = rounds.read()
    [found] = watched.visits(rounds.db, [resource.id, 10**9])
    assert (found.version, found.visit.resource.physical_id) == (resource.version, resource.physical_id)
    assert isinstance(rounds.group.round_at, dt.datetime)
