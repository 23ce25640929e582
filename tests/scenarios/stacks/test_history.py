"""The history of a stack: the end of each revision, its effects, rollback to any revision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.errors import NotFound, NotSupported
from orchestrator.operations.planning import row_writer
from orchestrator.operations.stacks.actions import roll_back
from orchestrator.security.caller import Caller
from orchestrator.store.stacks import history
from tests.scenarios.world import World, test_resource


def outcomes(world: World) -> list[str | None]:
    """How the revisions ended, the oldest first."""
    return [row.outcome for row in world.rows("SELECT outcome FROM revision ORDER BY number")]


def deeds(world: World, number: int, name: str = "s") -> dict[str, int]:
    """The effects of a revision, without those that are zero."""
    stack = world.stack_row(name)
    result = history.revision_history(world.database, stack, number)
    assert result is not None
    did = history.revision_effects(world.database, stack, result)
    assert did is not None
    keywords = ("created", "updated", "replaced", "deleted", "failed")
    return {keyword: getattr(did, keyword) for keyword in keywords if getattr(did, keyword)}


def back(world: World, number: int, name: str = "s") -> None:
    context = replace(world.context, caller=Caller(world.caller.project_id, "regretful"))
    world.messages += roll_back(context, world.stack_row(name), number)


def values(world: World) -> dict[str, str]:
    query = "SELECT name, attributes->>'output' AS value FROM resource WHERE NOT deposed"
    return {row.name: row.value for row in world.rows(query)}


def replaceable(value: str, number: str) -> dict[str, object]:
    return test_resource(value, update_replace_value=number)


def test_a_revision_reports_its_effects(world: World):
    world.create("s", {"a": test_resource("1"), "b": replaceable("1", "1"), "c": test_resource("1")})
    world.deliver_all()
    resources = {"a": test_resource("2"), "b": replaceable("1", "2"), "d": test_resource("1")}
    world.update("s", resources)
    world.deliver_all()
    assert deeds(world, 1) == {"created": 3}
    assert deeds(world, 2) == {"created": 1, "updated": 1, "replaced": 1, "deleted": 1}
    assert outcomes(world) == ["complete", "complete"]
    world.update("s", {**resources, "e": test_resource("1", fail=True)})
    world.deliver_all()
    assert deeds(world, 3) == {"failed": 1}
    assert outcomes(world)[-1] == "failed"
    [row] = world.rows("SELECT ended_at >= created_at AS after FROM revision WHERE number = 3")
    assert row.after


def test_deletes_are_not_counted_for_the_previous_revision(world: World):
    uuid = world.create("s", {"a": test_resource("1"), "b": test_resource("1")})
    world.deliver_all()
    stack = world.stack_row("s")
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    first = history.revision_history(world.database, stack, 1)
    assert first is not None
    did = history.revision_effects(world.database, stack, first)
    assert did is not None
    assert (did.created, did.deleted, did.reason) == (2, 0, "Stack CREATE completed successfully")


def test_forgotten_stacks_have_no_history(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    stack = world.stack_row("s")
    with world.database.connect() as db:
        db.execute("DELETE FROM event")
    first = history.revision_history(world.database, stack, 1)
    assert first is not None
    assert history.revision_effects(world.database, stack, first) is None


def test_of_ten_updates_at_once_only_the_tenth_does_anything(world: World):
    uuid = world.create("s", {"a": test_resource("0"), "b": test_resource({"get_attr": ["a", "output"]})})
    world.deliver_all()
    reported = len(world.events(uuid))
    for number in range(1, 11):
        world.update("s", {"a": test_resource(str(number)), f"only{number}": test_resource("x")})
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world) == {"a": "10", "only10": "x"}
    assert outcomes(world) == ["complete", *["superseded"] * 9, "complete"]
    assert [deeds(world, number) for number in range(2, 11)] == [{}] * 9
    assert deeds(world, 11) == {"created": 1, "updated": 1, "deleted": 1}
    own = [event for event in world.events(uuid)[reported:] if not event.startswith("s ")]
    assert len(own) == 6  # three things, begun and done
    assert world.rows("SELECT 1 FROM graph_node WHERE traversal BETWEEN 2 AND 10") == []
    assert {row.name for row in world.rows("SELECT name FROM resource_definition")} == {"a", "b", "only10"}


def test_a_superseded_plan_stops_at_its_next_slice(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_writer, "SLICE", 2)
    uuid = world.create("s", {})
    world.deliver_all()
    copies = world.record("copy_nodes", traversal=2)
    world.after("plan_slice", lambda: world.update("s", {"late": test_resource("x")}), traversal=2)
    world.update("s", {f"r{number}": test_resource("x") for number in range(10)})
    world.deliver_all()
    assert len(copies) == 1
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world) == {"late": "x"}
    assert outcomes(world) == ["complete", "superseded", "complete"]
    assert not [event for event in world.events(uuid) if event.startswith("r")]


def test_a_delete_over_an_update_supersedes_it(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2", action_wait_secs={"update": -1})})
    world.deliver(2)
    world.delete("s")
    assert outcomes(world) == ["complete", "superseded"]
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert outcomes(world) == ["complete", "superseded"]


def test_a_check_during_an_update_leaves_its_revision_alone(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.act("s", "check")
    world.deliver_all()
    assert outcomes(world) == ["complete"]
    assert deeds(world, 1) == {"created": 1}
    world.update("s", {"a": test_resource("2")})
    world.act("s", "check")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert outcomes(world) == ["complete", "complete"]
    assert deeds(world, 2) == {"updated": 1}
    assert values(world) == {"a": "2"}


def test_a_message_of_an_older_traversal_ends_no_newer_revision(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    finished = world.rows("SELECT id FROM graph_node WHERE kind = 'finish'")
    world.update("s", {"a": test_resource("2")})
    for row in finished:
        world.deliver_one(type(world.messages[0])(row.id, 1, "bulk"))
    assert outcomes(world) == ["complete", None]
    world.deliver_all()
    assert outcomes(world) == ["complete", "complete"]


# Back to a revision


def test_a_stack_rolls_back_to_any_of_its_revisions_as_a_new_revision(world: World):
    uuid = world.create("s", {"a": test_resource("1"), "b": test_resource("1")})
    world.deliver_all()
    made = {row.name: row.physical_id for row in world.rows("SELECT name, physical_id FROM resource")}
    for number in ("2", "3"):
        world.update("s", {"a": test_resource(number), "c": test_resource("1")})
        world.deliver_all()
    back(world, 1)
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert values(world) == {"a": "1", "b": "1"}
    [row] = world.rows("SELECT physical_id FROM resource WHERE name = 'a'")
    assert row.physical_id == made["a"]
    assert outcomes(world) == ["complete"] * 4
    [row] = world.rows("""SELECT r.number, r.copy_of, r.created_by, r.action
        FROM stack s JOIN revision r ON r.id = s.good_revision_id AND r.id = s.revision_id""")
    assert tuple(row) == (4, 1, "regretful", "ROLLBACK")
    back(world, 2)
    world.deliver_all()
    assert values(world) == {"a": "2", "c": "1"}
    world.patch("s")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert values(world) == {"a": "2", "c": "1"}
    back(world, 4)  # itself like the first
    [row] = world.rows("SELECT copy_of FROM revision ORDER BY number DESC LIMIT 1")
    assert row.copy_of == 1


def test_going_back_brings_hidden_values_and_files_back(world: World):
    resources = {"v": test_resource({"list_join": ["-", [{"get_param": "p"}, {"get_file": "f"}]]})}
    shared = {"parameters": {"p": {"type": "string", "hidden": True}}, "files": {"f": "one"}}
    world.create("s", resources, **shared, environment={"parameters": {"p": "secret"}})
    world.deliver_all()
    world.patch("s", parameters={"p": "other"}, files={"f": "two"})
    world.deliver_all()
    back(world, 1)
    world.deliver_all()
    [row] = world.rows("SELECT convert_from(sealed, 'UTF8') AS sealed FROM resource")
    assert world.cipher.open(row.sealed.encode())["attributes"]["output"] == "secret-one"


def test_a_rollback_supersedes_any_running_action(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("2"), "b": test_resource("1", wait_secs=-1)})
    world.deliver(3)
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    back(world, 1)
    world.deliver_all(shuffle=True)
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert values(world) == {"a": "1"}
    assert outcomes(world) == ["complete", "superseded", "complete"]


def test_incomplete_revisions_can_be_rolled_back_to(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    world.update("s", {"a": test_resource("1"), "b": test_resource("1", wait_secs=-1)})
    world.deliver(3)
    world.update("s", {"a": test_resource("3")})
    world.deliver_all()
    back(world, 2)
    world.deliver(10)
    assert world.state(uuid) == "ROLLBACK_IN_PROGRESS"
    back(world, 1)
    world.deliver_all()
    assert outcomes(world) == ["complete", "superseded", "complete", "superseded", "complete"]


def test_a_revision_that_does_not_exist_is_refused_and_changes_nothing(world: World):
    uuid = world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    reported = world.events(uuid)
    with pytest.raises(NotFound, match=r"^The Revision \(7\) could not be found\.$"):
        back(world, 7)
    world.create("other", {"a": test_resource("1")})
    world.update("other", {})
    world.deliver_all()
    with pytest.raises(NotFound):  # another stack's number 2
        back(world, 2)
    assert world.events(uuid) == reported
    assert len(world.rows("SELECT 1 FROM revision")) == 3


def test_a_suspended_or_deleted_stack_does_not_go_back(world: World):
    world.create("s", {"a": test_resource("1")})
    world.deliver_all()
    with world.database.connect() as db:
        db.execute("UPDATE stack SET action = 'SUSPEND'")
    with pytest.raises(NotSupported, match="Rolling back a stack when it is suspended is not supported"):
        back(world, 1)
    with world.database.connect() as db:
        db.execute("UPDATE stack SET action = 'UPDATE'")
    stack = world.stack_row("s")
    world.delete("s")
    world.deliver_all()
    with pytest.raises(NotFound, match="The Stack"):
        roll_back(world.context, stack, 1)
    assert len(world.rows("SELECT 1 FROM revision")) == 1


def test_a_failed_create_that_is_rolled_back_has_two_revisions(world: World):
    uuid = world.create(
        "s",
        {"a": test_resource("1"), "b": test_resource("1", fail=True, requires=("a",))},
        disable_rollback=False,
    )
    world.deliver_all()
    assert world.state(uuid) == "ROLLBACK_COMPLETE"
    assert outcomes(world) == ["failed", "complete"]
    assert deeds(world, 1) == {"created": 1, "failed": 1}
    assert deeds(world, 2) == {"deleted": 2}
    rows = world.rows("SELECT created_by, copy_of FROM revision ORDER BY number")
    assert [tuple(row) for row in rows] == [("tester", None), ("", None)]
