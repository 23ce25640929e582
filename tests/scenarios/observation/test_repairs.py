"""Repairs over a provider that the test damages (operations/adr/0019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.resources.base import Context, Created, Observation, Property, Value
from orchestrator.store.observation import repair_starts
from tests.scenarios.observation.shelf import Box, Shelf
from tests.scenarios.observation.test_rounds import Watch
from tests.scenarios.world import World

BOX: dict[str, Any] = {"type": "Shelf::Box", "properties": {"label": "blue"}}
CHEST: dict[str, Any] = {"type": "Shelf::Chest", "properties": {"label": "blue"}}


class Chest(Box):
    """A box whose content would be lost."""

    name = "Shelf::Chest"
    stateful = True
    properties: ClassVar = {**Box.properties, "size": Property("integer", "Size.", default=1)}

    def create(self, ctx: Context, props: Mapping[str, Value]) -> Created:
        created = super().create(ctx, props)
        self.shelf.objects[created.physical_id]["size"] = props["size"]
        return created

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        seen = super().observe(ctx, physical_id)
        if seen.properties is None:
            return seen
        found = (ctx.listed or {}).get(physical_id) or self.shelf.objects[physical_id]
        return replace(seen, properties={**seen.properties, "size": found["size"]})


class Healer(Watch):
    """A world whose rounds and repairs are carried out by the test."""

    def policy(self, mode: str, stack: str | None = "s", **target: str) -> None:
        stack_id = self.world.stack_row(stack).id if stack else None
        values = {"mode": mode, "stack_id": stack_id, "type": "", "resource": "", **target}
        self.db.execute(
            "INSERT INTO observation_rule (uuid, project_id, kind, mode, stack_id, type, resource,"
            " created_by) VALUES (gen_random_uuid(), 'p1', 'policy', %(mode)s, %(stack_id)s, %(type)s,"
            " %(resource)s, 'u')",
            values,
        )

    def make(self, **resources: Any) -> str:
        uuid = self.world.create("s", resources)
        self.deliver()
        self.discover()
        self.round()
        return uuid

    def heal(self) -> list[tuple[str, str | None, str]]:
        """Decide about the faults and carry out the repairs; return all repairs: resource, action, status."""
        self.db.execute("UPDATE repair SET due_at = now() WHERE due_at IS NOT NULL")
        self.world.messages += repair_due_faults(self.db, self.world.types)
        self.deliver()
        return self.repairs()

    def settle(self) -> list[tuple[str, str | None, str]]:
        """Observe the results of repairs; return all repairs."""
        repair_due_faults(self.db, self.world.types)  # notes their ends
        self.round()
        repair_due_faults(self.db, self.world.types)
        return self.repairs()

    def repairs(self) -> list[tuple[str, str | None, str]]:
        rows = self.world.rows("SELECT name, action, status FROM repair ORDER BY id")
        return [(row.name, row.action, row.status) for row in rows]

    def reason(self) -> str:
        return str(self.world.rows("SELECT reason FROM repair ORDER BY id DESC LIMIT 1")[0].reason)

    def id(self, name: str) -> str:
        [row] = self.world.rows("SELECT physical_id FROM resource WHERE name = :n AND NOT deposed", n=name)
        return str(row.physical_id)

    def remove(self, name: str) -> None:
        del self.shelf.objects[self.id(name)]


@pytest.fixture
def healer(postgres_url: str) -> Iterator[Healer]:
    shelf = Shelf()
    types = shelf.types() | {Chest.name: Chest(shelf)}
    world = World(postgres_url, types=types, observation_interval_seconds=30)
    yield Healer(world, shelf)
    world.close()


def test_all_events_of_an_automatic_repair_are_marked_also_in_nested_stacks(healer: Healer):
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 2, "resource_def": BOX}}
    healer.make(g=group, b=BOX)
    healer.policy("heal")
    [lost] = healer.world.rows("SELECT physical_id FROM resource WHERE name = '0'")
    del healer.shelf.objects[lost.physical_id]
    healer.round()
    [before] = healer.world.rows("SELECT max(id) AS id FROM event")
    assert healer.heal() == [("0", "recreate", "started")]
    events = healer.world.rows("SELECT resource_name, automatic FROM event WHERE id > :id", id=before.id)
    assert {"0", "g", "s"} <= {event.resource_name for event in events}
    assert all(event.automatic for event in events)


def test_a_missing_object_is_created_again_and_nothing_else_is_touched(healer: Healer):
    uuid = healer.make(a=BOX, b=BOX)
    healer.policy("heal")
    old, other = healer.id("a"), healer.id("b")
    healer.remove("a")
    healer.round()
    healer.shelf.calls.clear()
    assert healer.heal() == [("a", "recreate", "started")]
    assert healer.id("a") != old
    assert sorted(healer.shelf.objects) == sorted([healer.id("a"), other])
    assert f"get {other}" not in healer.shelf.calls
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.settle() == [("a", "recreate", "done")]
    assert healer.heal() == [("a", "recreate", "done")]
    reasons = healer.world.event_reasons(uuid, "a")
    assert any("Automatic repair (recreate), observed MISSING" in text for text in reasons)


def test_a_lost_value_is_corrected_and_named(healer: Healer):
    uuid = healer.make(a=BOX)
    healer.policy("heal")
    healer.shelf.objects[healer.id("a")]["label"] = None
    healer.round()
    assert healer.heal() == [("a", "update", "started")]
    assert healer.shelf.objects[healer.id("a")]["label"] == "blue"
    assert any("label is null instead of blue" in text for text in healer.world.event_reasons(uuid, "a"))


def test_a_repair_that_cannot_be_started_stops_no_other(healer: Healer, monkeypatch: pytest.MonkeyPatch):
    healer.make(a=BOX)
    healer.world.create("other", {"b": BOX})
    healer.deliver()
    healer.discover()
    healer.round()
    healer.policy("heal")
    healer.policy("heal", "other")
    for name in ("a", "b"):
        healer.remove(name)
    healer.round()
    first, begin = healer.world.stack_row("s").id, repair_starts.begin

    def failing(db: Any, root_id: int, *values: Any, **named: Any) -> Any:
        if root_id == first:
            raise ValueError("an unknown fault")
        return begin(db, root_id, *values, **named)

    with monkeypatch.context() as patched:
        patched.setattr(repair_starts, "begin", failing)
        assert healer.heal() == [("a", "recreate", "waiting"), ("b", "recreate", "started")]
    [row] = healer.world.rows("SELECT reason, due_at > now() AS later FROM repair WHERE name = 'a'")
    assert (row.reason, row.later) == ("the repair could not be started: ValueError: an unknown fault", True)
    assert ("a", "recreate", "started") in healer.heal()


def test_a_changed_property_is_corrected_in_place(healer: Healer):
    uuid = healer.make(a=BOX, b=BOX)
    healer.policy("heal")
    id_ = healer.id("a")
    healer.shelf.objects[id_]["label"] = "red"
    healer.round()
    assert healer.heal() == [("a", "update", "started")]
    assert (healer.id("a"), healer.shelf.objects[id_]["label"]) == (id_, "blue")
    assert healer.settle() == [("a", "update", "done")]
    reasons = healer.world.event_reasons(uuid, "a")
    assert any("(update), observed MODIFIED: label is red instead of blue" in text for text in reasons)
    marked = healer.world.rows("SELECT resource_name, action, status FROM event WHERE automatic ORDER BY id")
    assert [tuple(row) for row in marked] == [
        ("s", "UPDATE", "IN_PROGRESS"), ("a", "UPDATE", "IN_PROGRESS"), ("a", "UPDATE", "IN_PROGRESS"),
        ("a", "UPDATE", "COMPLETE"), ("s", "UPDATE", "COMPLETE"),
    ]  # fmt: skip
    [record] = healer.world.rows("SELECT action, user_name, target, result FROM audit_record")
    assert tuple(record) == (
        "stacks:repair", "automatic", f"s/{uuid} a: update, observed MODIFIED", "started",
    )  # fmt: skip
    healer.world.update("s", {"b": BOX})
    healer.deliver()
    [count] = healer.world.rows("SELECT count(*) AS n FROM event WHERE automatic")
    assert count.n == 5


def test_an_object_in_error_is_replaced(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    old = healer.id("a")
    healer.shelf.objects[old]["error"] = "no host"
    healer.round()
    assert healer.heal() == []
    healer.round()
    assert healer.heal() == [("a", "replace", "started")]
    assert healer.shelf.boxes() == [healer.id("a")] != [old]


@pytest.mark.parametrize("mode", ["off", "report", None])
def test_without_a_policy_for_it_nothing_is_repaired(healer: Healer, mode: str | None):
    healer.make(a=BOX, b=BOX)
    healer.policy("heal", resource="b")
    if mode is not None:
        healer.policy(mode)
    healer.remove("a")
    healer.round()
    assert healer.heal() == [("a", "recreate", "reported")]
    assert len(healer.shelf.objects) == 1


def test_data_is_replaced_only_after_an_approval(healer: Healer):
    uuid = healer.make(a=CHEST)
    healer.policy("heal")
    healer.remove("a")
    healer.round()
    for _ in range(2):
        assert healer.heal() == [("a", "recreate", "pending")]
    assert sum("waits for an approval" in text for text in healer.world.event_reasons(uuid, "a")) == 1
    healer.db.execute("UPDATE repair SET status = 'approved', decided_by = 'u', decided_at = now()")
    assert healer.heal() == [("a", "recreate", "started")]
    assert len(healer.shelf.objects) == 1


def test_a_chosen_name_is_corrected(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    id_ = healer.id("a")
    chosen = healer.shelf.objects[id_]["name"]
    healer.shelf.objects[id_]["name"] = "other"
    healer.round()
    assert healer.heal() == [("a", "update", "started")]
    assert (healer.id("a"), healer.shelf.objects[id_]["name"]) == (id_, chosen)
    assert healer.settle() == [("a", "update", "done")]


def test_a_fault_that_a_failed_update_did_not_reach_is_repaired_later(healer: Healer):
    healer.make(a=BOX, b={**BOX, "depends_on": "a"})
    healer.policy("heal")
    for name in ("a", "b"):
        healer.shelf.objects[healer.id(name)]["label"] = "red"
    healer.round()
    healer.shelf.refuses = True
    assert healer.heal() == [("a", "update", "started"), ("b", "update", "started")]
    healer.shelf.refuses = False
    assert healer.settle()[:2] == [("a", "update", "failed"), ("b", "update", "waiting")]
    assert healer.heal()[1] == ("b", "update", "started")
    assert healer.shelf.objects[healer.id("b")]["label"] == "blue"
    assert healer.settle()[1] == ("b", "update", "done")


def test_a_restricted_action_is_reported(healer: Healer):
    environment = {"resource_registry": {"resources": {"a": {"restricted_actions": "replace"}}}}
    healer.world.create("s", {"a": BOX}, environment=environment)
    healer.deliver()
    healer.discover()
    healer.policy("heal")
    healer.remove("a")
    healer.round()
    assert healer.heal() == [("a", "recreate", "reported")]
    assert "restricts" in healer.reason()


def test_a_pause_and_an_operation_delay_a_repair(healer: Healer):
    healer.make(a=BOX, b=BOX)
    healer.policy("heal")
    healer.db.execute(
        "INSERT INTO observation_rule (uuid, project_id, kind, reason, ends_at, created_by)"
        " VALUES (gen_random_uuid(), 'p1', 'pause', 'work', now() + interval '1 hour', 'u')"
    )
    healer.remove("a")
    healer.round()
    assert healer.heal() == [("a", "recreate", "waiting")]
    assert healer.reason() == "repairs are paused: work"
    healer.db.execute("UPDATE observation_rule SET ended_at = now(), ended_by = 'u' WHERE kind = 'pause'")
    healer.world.update("s", {"a": BOX, "b": {**BOX, "properties": {"label": "green"}}})
    assert repair_due_faults(healer.db, healer.world.types) == []
    healer.db.execute("UPDATE repair SET due_at = now()")
    assert repair_due_faults(healer.db, healer.world.types) == []
    assert healer.reason() == "an operation of the stack is in progress"


def test_an_accepted_difference_is_not_repaired(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    healer.db.execute(
        "INSERT INTO observation_rule (uuid, project_id, kind, stack_id, path, created_by) SELECT"
        " gen_random_uuid(), 'p1', 'accept', id, 'a.properties.label', 'u' FROM stack"
    )
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    healer.round()
    assert healer.heal() == []  # it is no fault
    assert healer.shelf.objects[healer.id("a")]["label"] == "red"


def test_a_mass_loss_needs_an_approval(healer: Healer):
    healer.make(**{f"r{n}": BOX for n in range(6)})
    healer.policy("heal")
    healer.shelf.objects.clear()
    healer.round()
    assert {status for _, _, status in healer.heal()} == {"pending"}
    assert "6 of 6 objects of boxes" in healer.reason()
    assert healer.shelf.objects == {}


def test_repairs_without_effect_pause_longer_and_are_given_up_once(healer: Healer):
    uuid = healer.make(a=BOX)
    healer.policy("heal")
    for n in range(5):
        healer.remove("a")
        healer.round()
        assert healer.heal()[-1] == ("a", "recreate", "waiting" if n else "started")
        if n:
            healer.db.execute("UPDATE repair SET started_at = started_at - interval '20 minutes'")
            assert healer.heal()[-1] == ("a", "recreate", "started")
        repair_due_faults(healer.db, healer.world.types)
        healer.remove("a")
        healer.round()
        repair_due_faults(healer.db, healer.world.types)
        assert healer.repairs()[n][2] == "failed"
        healer.shelf.objects[healer.id("a")] = {"label": "blue", "name": "", "holder": ""}
    healer.remove("a")
    healer.round()
    for _ in range(2):
        assert healer.heal()[-1] == ("a", "recreate", "given_up")
    assert sum("given up" in text for text in healer.world.event_reasons(uuid, "a")) == 1


def test_a_user_update_supersedes_a_repair(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    healer.remove("a")
    healer.round()
    healer.world.messages += repair_due_faults(healer.db, healer.world.types)
    healer.world.update("s", {"a": {**BOX, "properties": {"label": "green"}}})
    healer.deliver()
    assert [found["label"] for found in healer.shelf.objects.values()] == ["green"]
    assert healer.settle() == [("a", "recreate", "superseded")]


def test_a_member_of_a_group_is_repaired_by_an_update_of_the_root_stack(healer: Healer):
    group = {"type": "OS::Heat::ResourceGroup", "properties": {"count": 3, "resource_def": BOX}}
    uuid = healer.make(g=group)
    healer.policy("heal", resource="g.1")
    before = healer.id("0"), healer.id("2")
    healer.remove("1")
    healer.round()
    assert healer.heal() == [("1", "recreate", "started")]
    assert healer.world.state(uuid) == "UPDATE_COMPLETE"
    assert healer.shelf.boxes() == sorted([healer.id("1"), *before])
    assert healer.settle() == [("1", "recreate", "done")]


def test_an_object_that_is_back_is_left_alone(healer: Healer):
    healer.make(a=BOX)
    healer.policy("heal")
    id_ = healer.id("a")
    found = healer.shelf.objects.pop(id_)
    healer.round()
    healer.shelf.objects[id_] = found
    assert healer.heal() == [("a", "recreate", "started")]
    assert healer.shelf.boxes() == [id_]
    assert healer.settle() == [("a", "recreate", "done")]


def test_a_fault_that_a_user_corrects_leaves_no_repair(healer: Healer):
    healer.make(a=BOX, b=BOX)
    healer.policy("ask")
    healer.shelf.objects[healer.id("a")]["label"] = "red"
    healer.round()
    assert healer.heal() == [("a", "update", "pending")]
    healer.world.update("s", {"a": BOX, "b": BOX}, converge=True)
    healer.deliver()
    healer.round()
    assert healer.heal() == []
    assert healer.world.rows("SELECT 1 FROM resource_verdict") == []


def test_a_fault_that_ends_by_itself_leaves_no_repair(healer: Healer):
    healer.make(a=BOX)
    healer.policy("ask")
    id_ = healer.id("a")
    found = healer.shelf.objects.pop(id_)
    healer.round()
    assert healer.heal() == [("a", "recreate", "pending")]
    healer.shelf.objects[id_] = found
    healer.round()
    assert healer.heal() == []
