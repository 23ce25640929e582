"""Types of retired services: existing stacks with such a type continue, and can be deleted (spec A11)."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from orchestrator.resources.builtin.retired import NAMES
from orchestrator.resources.type_schema import list_types
from tests.scenarios.world import World, test_resource


def test_a_created_resource_is_a_placeholder(world: World):
    resources = {
        "r": {"type": "OS::Heat::HARestarter", "properties": {"InstanceId": "i"}},
        "a": test_resource({"get_attr": ["r", "AlarmUrl"]}, value2="x") | {"depends_on": "r"},
    }
    resources["a"]["properties"] = {"value": {"get_resource": "r"}}
    uuid = world.create("s", resources)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"


@pytest.mark.parametrize("name", ["OS::Sahara::Cluster", "OS::Neutron::LBaaS::Pool", "OS::Nova::FloatingIP"])
def test_a_stack_without_a_user_is_updated_and_deleted(world: World, name):
    uuid = world.create("s", {"r": {"type": name, "properties": {"x": 1}}, "a": test_resource()})
    world.deliver_all()
    with world.database.engine.begin() as db:
        db.execute(text("UPDATE resource SET physical_id = 'made-by-the-service' WHERE name = 'r'"))
    world.update("s", {"r": {"type": name, "properties": {"x": 2}}, "a": test_resource("w")})
    world.deliver_all()
    assert world.state(uuid) == "UPDATE_COMPLETE"
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


def test_no_list_contains_them(world: World):
    assert not set(NAMES) & set(list_types(world.types))
    assert len(NAMES) == len(set(NAMES)) == 33
