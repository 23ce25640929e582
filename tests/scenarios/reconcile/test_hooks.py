"""Hooks: the place of the pause, the waiting resources, and refused clears
(docs/internals/engine-semantics.md §11).
"""

from __future__ import annotations

import pytest

from orchestrator.errors import Forbidden, InvalidHook, NotFound, NotSupported
from orchestrator.store.maintenance import stalled
from tests.scenarios.reconcile.hook_world import KINDS, chain, hooked, states, thing
from tests.scenarios.world import test_resource


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_pauses_before_its_create_and_only_its_dependents_wait(world, kind):
    uuid = world.create("s", {**chain(kind), "c": thing(kind)}, environment=hooked(a="pre-create"))
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("a", "pre-create")]
    assert states(world) == {"a": "INIT_COMPLETE", "b": "INIT_COMPLETE", "c": "CREATE_COMPLETE"}
    assert world.state(uuid) == "CREATE_IN_PROGRESS"
    assert world.event_reasons(uuid, "a") == ["INIT_COMPLETE CREATE paused until Hook pre-create is cleared"]
    assert world.rows("SELECT 1 FROM resource WHERE lease IS NOT NULL") == []
    world.clear("s", "a", "pre-create")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.event_reasons(uuid, "a") == [
        "INIT_COMPLETE CREATE paused until Hook pre-create is cleared",
        "INIT_COMPLETE Hook pre-create is cleared",
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_resource_pauses_after_it_was_made_and_before_its_dependents_are(world, cloud, kind):
    uuid = world.create("s", chain(kind), environment=hooked(a="post-create"))
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("a", "post-create")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    assert world.event_reasons(uuid, "a") == [
        "CREATE_IN_PROGRESS state changed",
        "CREATE_COMPLETE state changed",
        "CREATE_COMPLETE CREATE paused until Hook post-create is cleared",
    ]
    world.clear("s", "a", "post-create")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert world.event_reasons(uuid, "a")[3:] == ["CREATE_COMPLETE Hook post-create is cleared"]
    assert kind == "own" or cloud.made == {"a": 1, "b": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_an_update_pauses_also_before_unchanged_resources(world, kind):
    uuid = world.create("s", chain(kind), environment=hooked(**{"*": ["pre-update"]}))
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    reported = len(world.event_reasons(uuid, "a"))
    world.patch("s")
    world.deliver_all()
    assert world.paused("s") == [("a", "pre-update")]
    world.clear("s", "a", "pre-update")
    world.deliver_all()
    assert world.paused("s") == [("b", "pre-update")]
    world.clear("s", "b", "pre-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert world.event_reasons(uuid, "a")[reported:] == [
        "CREATE_COMPLETE UPDATE paused until Hook pre-update is cleared",
        "CREATE_COMPLETE Hook pre-update is cleared",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_after_an_update_the_dependents_get_the_new_value_when_the_hook_is_cleared(world, kind):
    def resources(value):
        return {"a": thing(kind, value=value), "b": test_resource({"get_attr": ["a", attribute]})}

    attribute = "output" if kind == "own" else "value"
    environment = hooked(a=["pre-update", "post-update"])
    uuid = world.create("s", resources("1"), environment=environment)
    world.deliver_all()
    world.update("s", resources("2"), environment=environment)
    world.deliver_all()
    world.clear("s", "a", "pre-update")
    world.deliver_all()
    assert world.paused("s") == [("a", "post-update")]
    assert states(world) == {"a": "UPDATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert world.state(uuid) == "UPDATE_IN_PROGRESS"
    world.clear("s", "a", "post-update")
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    [b] = world.rows("SELECT attributes->>'output' AS value FROM resource WHERE name = 'b'")
    assert b.value == "2"


def test_there_is_no_pause_after_an_update_that_changed_nothing_or_replaced_it(world):
    environment = hooked(a=["post-update"], r=["pre-create", "post-create", "post-update"])
    resources = {"a": test_resource(), "r": test_resource(update_replace_value="1")}
    uuid = world.create("s", resources)
    world.deliver_all()
    world.update("s", resources, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.update(
        "s", {"r": test_resource(update_replace_value="2"), "new": test_resource()}, environment=environment
    )
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"


def test_resources_added_by_an_update_are_created_without_a_pause(world):
    uuid = world.create("s", {"a": test_resource()})
    world.deliver_all()
    world.update("s", chain("own"), environment=hooked(b=["pre-create", "pre-update", "post-create"]))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert states(world)["b"] == "CREATE_COMPLETE"


@pytest.mark.parametrize("kind", KINDS)
def test_a_deletion_pauses_before_and_after_each(world, cloud, kind):
    environment = hooked(b=["pre-delete", "post-delete"])
    uuid = world.create("s", chain(kind), environment=environment)
    world.deliver_all()
    reported = len(world.event_reasons(uuid, "b"))
    world.delete("s")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("b", "pre-delete")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    world.clear("s", "b", "pre-delete")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.paused("s") == [("b", "post-delete")]
    assert states(world) == {"a": "CREATE_COMPLETE", "b": "DELETE_COMPLETE"}
    assert not [item for item in cloud.things if item.startswith("b")]
    world.clear("s", "b", "post-delete")
    world.deliver_all(shuffle=True, repeat=0.3)
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows("SELECT 1 FROM resource") == []
    assert world.event_reasons(uuid, "b")[reported:] == [
        "CREATE_COMPLETE DELETE paused until Hook pre-delete is cleared",
        "CREATE_COMPLETE Hook pre-delete is cleared",
        "DELETE_IN_PROGRESS state changed",
        "DELETE_COMPLETE state changed",
        "DELETE_COMPLETE DELETE paused until Hook post-delete is cleared",
        "DELETE_COMPLETE Hook post-delete is cleared",
    ]


def test_removing_a_resource_in_an_update_pauses_nowhere(world):
    uuid = world.create("s", chain("own"), environment=hooked(b=["pre-delete", "post-delete"]))
    world.deliver_all()
    world.update("s", {"a": test_resource("v")}, environment=hooked(b=["pre-delete", "post-delete"]))
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    assert set(states(world)) == {"a"}


def test_a_resource_that_was_never_created_is_dropped_without_a_pause(world):
    uuid = world.create("s", chain("own"), environment=hooked(a=["pre-create", "pre-delete", "post-delete"]))
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_a_paused_stack_is_not_taken_for_stalled_and_nothing_rings_for_it(world):
    world.create("s", chain("own"), environment=hooked(a="pre-create"))
    world.deliver_all()
    world.elapse(600, "action")
    world.audit_soon()
    world.sweep_once()
    assert world.messages == []
    with world.database.connect() as db:
        assert stalled.stalled_stacks(db) == []


def test_clearing_an_unknown_or_inactive_hook_is_refused_with_heats_message(world):
    uuid = world.create("s", chain("own"), environment=hooked(a="pre-create"))
    with pytest.raises(NotFound, match=r"^The Resource \(a\) is not available.$"):
        world.clear("s", "a", "pre-create")
    world.deliver_all()
    with pytest.raises(InvalidHook) as refused:
        world.clear("s", "a", "nope")
    assert str(refused.value) == f'Invalid hook type "nope" for TestResource "a" Stack "s" [{uuid}]'
    with pytest.raises(InvalidHook) as refused:
        world.clear("s", "a", "pre-update")
    assert (
        str(refused.value) == f'The "pre-update" hook is not defined on TestResource "a" Stack "s" [{uuid}]'
    )
    with pytest.raises(
        NotSupported, match=r"^signal is not supported for resource\. \(resource: a, type: \S+\)$"
    ):
        world.signal("s", "a", {"x": 1})
    with pytest.raises(NotFound, match=r"^The Resource \(zz\) could not be found in Stack s.$"):
        world.clear("s", "zz", "pre-create")
    assert world.paused("s") == [("a", "pre-create")]


def test_clearing_a_hook_requires_a_role_of_its_own(world, tmp_path):
    """A role may be allowed to signal resources, and not to clear breakpoints."""
    (tmp_path / "policy.yaml").write_text("resource:unset_hook: [approver]\n")
    world.settings.policy_file = tmp_path / "policy.yaml"
    uuid = world.create("s", chain("own"), environment=hooked(a="pre-create"))
    world.deliver_all()
    with pytest.raises(Forbidden, match=r"^You are not authorized to use resource:unset_hook\.$"):
        world.clear("s", "a", "pre-create")
    assert world.paused("s") == [("a", "pre-create")]
    world.settings.policy_file = None
    world.clear("s", "a", "pre-create")
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
