"""A stack of all types of a service is created, updated in place, updated with replacements, checked and
deleted by the engine.
"""

from __future__ import annotations

import pytest

from tests.openstack.stacks.cloud_world import CloudWorld
from tests.openstack.stacks.templates import STACKS, StackOfService


@pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)
def test_a_stack_of_a_service_lives(world: CloudWorld, stack: StackOfService) -> None:
    before = world.objects()
    uuid = world.create("s", stack.resources)
    world.settle(uuid, "CREATE_COMPLETE")
    created = world.ids()
    world.update("s", stack.changed(stack.in_place))
    world.settle(uuid, "UPDATE_COMPLETE")
    assert world.ids() == created
    texts = world.texts()
    for values in stack.in_place.values():
        marks = [value for value in values.values() if str(value).startswith("changed-")]
        assert [mark for mark in marks if mark not in texts] == []
    world.update("s", stack.changed(stack.in_place, stack.replacing))
    world.settle(uuid, "UPDATE_COMPLETE")
    replaced = world.ids()
    assert {name for name in stack.replacing if replaced[name] == created[name]} == stack.same_id
    assert len(world.resources()) == len(stack.resources)  # the replaced objects are deleted
    world.act("s", "check")
    world.settle(uuid, "CHECK_COMPLETE")
    world.delete("s")
    world.settle(uuid, "DELETE_COMPLETE")
    world.tidy()
    assert {kind for kind, _ in world.objects() - before} <= stack.kept
    assert before - world.objects() == {}
