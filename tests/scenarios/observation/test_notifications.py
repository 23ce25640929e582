"""Notifications select objects to be observed; nothing else of them is believed (operations/adr/0020)."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from orchestrator.engine.messages import RoundMessage
from orchestrator.errors import InvalidTemplate
from orchestrator.operations.context import Body
from orchestrator.operations.observation import notified
from orchestrator.operations.observation.healing import repair_due_faults
from orchestrator.operations.observation.rounds import observe_group
from orchestrator.store.observation import notices
from tests.scenarios.observation.shelf import Shelf
from tests.scenarios.observation.test_repairs import BOX, Healer
from tests.scenarios.world import World

CRATE = {"type": "Shelf::Crate", "properties": {"label": "blue"}}


class Told(Healer):
    """A world that is notified."""

    def tell(self, *ids: str, project: str = "p1") -> list[RoundMessage]:
        """Notify about objects; return the message that this causes."""
        return notified.note(self.db, project, ids, self.world.settings.region_name)

    def deliver_rounds(self, messages: list[RoundMessage]) -> None:
        """Carry the rounds out, and start the repairs that are due after them."""
        for message in messages:
            for group_id in observe_group(self.world.engine, message.group_id):
                self.world.messages += repair_due_faults(self.db, self.world.types, group_id)
        self.deliver()

    def pass_pause(self) -> None:
        """Let the pause after a round go by."""
        self.db.execute("UPDATE observation_group SET observed_at = observed_at - interval '1 minute'")
        self.db.execute("UPDATE observation_notice SET noted_at = noted_at - interval '1 minute'")

    def pending(self) -> list[str]:
        return [row.physical_id for row in self.world.rows("SELECT physical_id FROM observation_notice")]


@pytest.fixture
def told(postgres_url: str) -> Iterator[Told]:
    shelf = Shelf()
    world = World(postgres_url, types=shelf.types(), observation_interval_seconds=30)
    yield Told(world, shelf)
    world.close()


@pytest.mark.parametrize("resource", [BOX, CRATE])
def test_a_named_object_is_observed_by_its_id_and_repaired(told: Told, resource: dict[str, object]):
    told.world.create("s", {"a": resource, "b": resource})
    told.deliver()
    told.discover()
    told.policy("heal")
    old = told.id("a")
    told.remove("a")
    told.shelf.calls.clear()
    told.deliver_rounds(told.tell(old))
    assert told.repairs() == [("a", "recreate", "started")]
    assert told.id("a") != old
    assert "list" not in told.shelf.calls
    assert f"get {told.id('b')}" not in told.shelf.calls
    assert told.pending() == []


def test_what_a_notification_says_is_not_believed(told: Told):
    told.make(a=BOX)
    told.policy("heal")
    told.deliver_rounds(told.tell(told.id("a")))
    assert told.verdicts() == {}
    assert told.repairs() == []


def test_unknown_objects_and_those_of_other_projects_cause_no_request(told: Told):
    told.make(a=BOX)
    told.shelf.calls.clear()
    told.deliver_rounds(told.tell("forged", "forged-2"))
    told.deliver_rounds(told.tell(told.id("a"), project="p2"))
    assert told.shelf.calls == []
    assert told.pending() == []


def test_a_flood_keeps_a_row_per_object_and_a_message_per_round(told: Told):
    told.make(a=BOX)
    messages = [message for _ in range(50) for message in told.tell(told.id("a"))]
    assert len(messages) == 1
    assert told.pending() == [told.id("a")]
    told.deliver_rounds(messages)
    told.db.execute("UPDATE observation_group SET interval_seconds = 60 WHERE kind = 'notified'")
    assert told.tell(told.id("a")) == []  # the pause after a round
    told.pass_pause()
    assert told.pending() == [told.id("a")]


def test_more_objects_than_are_kept_make_the_lists_due(told: Told, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notices, "MAX_PENDING", 2)
    told.make(a=BOX, b=BOX, c=BOX)
    told.pass_pause()
    told.db.execute("UPDATE observation_group SET due_at = now() + interval '1 hour'")
    told.tell(*(told.id(name) for name in "abc"))
    assert len(told.pending()) == 2
    assert told.world.rows("SELECT 1 FROM observation_group WHERE kind = 'lists' AND due_at <= now()")


def test_forged_names_take_no_room(told: Told):
    told.make(a=BOX)
    forged = [f"forged-{number}" for number in range(2 * notices.MAX_PENDING)]
    assert told.tell(*forged) == []
    assert told.pending() == []
    assert told.tell(*forged, told.id("a"))
    assert told.pending() == [told.id("a")]


def test_many_named_objects_are_observed_with_their_list_at_once(told: Told):
    told.make(**{f"r{number}": BOX for number in range(30)})
    told.policy("heal")
    told.pass_pause()
    told.shelf.objects[told.id("r7")]["label"] = "red"
    told.shelf.calls.clear()
    told.deliver_rounds(told.tell(*told.shelf.boxes()))
    assert told.repairs() == [("r7", "update", "started")]
    assert [call for call in told.shelf.calls if call.startswith("list")] == ["list"]
    assert told.pending() == []


def test_lists_for_named_objects_pause_in_proportion_to_their_cost(told: Told):
    told.make(**{f"r{number}": BOX for number in range(30)})
    told.pass_pause()
    told.db.execute("UPDATE observation_group SET seconds = 60 WHERE kind = 'lists'")
    told.shelf.calls.clear()
    told.deliver_rounds(told.tell(*told.shelf.boxes()))
    assert told.shelf.calls == []
    [group] = told.world.rows(
        "SELECT due_at - observed_at AS pause FROM observation_group WHERE kind = 'lists'"
    )
    assert 30 <= group.pause.total_seconds() <= 600


def test_an_object_that_is_named_again_during_its_observation_is_observed_again(told: Told):
    told.make(a=BOX)
    messages = told.tell(told.id("a"))
    noted = notices.take(told.db, "p1")
    told.db.execute("UPDATE observation_notice SET noted_at = noted_at + interval '1 second'")
    notices.remove(told.db, "p1", noted)
    assert told.pending() == [told.id("a")]
    told.deliver_rounds(messages)
    assert told.pending() == []


def test_an_error_is_observed_a_second_time_soon(told: Told):
    told.make(a=BOX)
    told.shelf.objects[told.id("a")]["error"] = "no host"
    told.deliver_rounds(told.tell(told.id("a")))
    assert told.verdicts() == {}
    assert told.pending() == [told.id("a")]
    told.db.execute("UPDATE observation_notice SET due_at = now()")
    told.pass_pause()
    told.deliver_rounds(told.tell(told.id("a")))
    assert told.verdicts() == {"a": "FAILED"}


def test_a_loss_of_many_objects_asks_for_an_approval_also_after_notifications(told: Told):
    told.make(**{f"r{number}": BOX for number in range(6)})
    told.policy("heal")
    ids = told.shelf.boxes()
    told.pass_pause()
    told.shelf.objects.clear()
    told.deliver_rounds(told.tell(*ids))
    assert {status for _, _, status in told.repairs()} == {"pending"}
    assert told.shelf.objects == {}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({}, "objects must be a list"),
        ({"objects": []}, "objects must be a list"),
        ({"objects": "a"}, "objects must be a list"),
        ({"objects": ["a"] * 1_001}, "objects must be a list"),
        ({"objects": [1]}, "must be a text"),
        ({"objects": ["x" * 256]}, "must be a text"),
        ({"objects": ["a"], "verdict": "missing"}, "Unknown key 'verdict'"),
    ],
)
def test_malformed_notifications_change_nothing(told: Told, body: dict[str, object], text: str):
    told.make(a=BOX)
    with pytest.raises(InvalidTemplate, match=text):
        notified.notify(told.world.context, Body(orjson.dumps(body)))
    assert told.pending() == []


def test_a_project_without_stacks_has_no_observation(told: Told):
    assert told.tell("a") == []
    assert told.world.rows("SELECT 1 FROM observation_group") == []
