"""OS::Heat::None in the place of something real, and the real thing back
(docs/internals/resource-types.md §A4).
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest

from orchestrator.operations.context import Body
from orchestrator.operations.preview.update import preview_update
from tests.scenarios.fake_cloud import Cloud, cloud_thing
from tests.scenarios.world import World, test_resource

NOTHING = {"resource_registry": {"Cloud::Thing": "OS::Heat::None"}}


@pytest.fixture
def clouded(postgres_url: str, cloud: Cloud) -> Iterator[World]:
    made = World(postgres_url, types=cloud.types())
    yield made
    made.close()


def resources(value="v"):
    observed = {"list_join": ["-", ["seen", {"get_attr": ["thing", "value"]}]]}
    return {
        "thing": cloud_thing(value=value),
        "watcher": {"type": "OS::Heat::Value", "properties": {"value": observed}},
    }


OUTPUTS = {
    "value": {"value": {"get_attr": ["thing", "value"]}},
    "reference": {"value": {"get_resource": "thing"}},
    "seen": {"value": {"get_attr": ["watcher", "value"]}},
}


def test_a_real_thing_is_left_alone_and_its_attributes_are_null(clouded, cloud):
    uuid = clouded.create("s", resources(), outputs=OUTPUTS)
    clouded.deliver_all()
    before = dict(cloud.things)
    reference = clouded.outputs("s")["reference"]
    clouded.update("s", resources("another"), outputs=OUTPUTS, environment=NOTHING)
    clouded.deliver_all()
    assert clouded.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.things == before
    assert clouded.outputs("s") == {"value": None, "reference": reference, "seen": "seen-"}


def test_deleting_the_stack_then_deletes_the_real_thing(clouded, cloud):
    uuid = clouded.create("s", resources())
    clouded.deliver_all()
    clouded.update("s", resources(), environment=NOTHING)
    clouded.deliver_all()
    assert len(cloud.things) == 1
    clouded.delete("s")
    clouded.deliver_all()
    assert clouded.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {}


def test_when_its_own_type_is_back_it_is_the_same_thing_with_its_attributes(clouded, cloud):
    uuid = clouded.create("s", resources(), outputs=OUTPUTS)
    clouded.deliver_all()
    before = dict(cloud.things)
    was = clouded.outputs("s")
    clouded.update("s", resources(), outputs=OUTPUTS, environment=NOTHING)
    clouded.deliver_all()
    assert clouded.outputs("s") != was
    clouded.update("s", resources(), outputs=OUTPUTS)
    clouded.deliver_all()
    assert clouded.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.things == before
    assert clouded.outputs("s") == was


def test_a_thing_that_nothing_stood_for_from_the_start_is_made_when_its_type_is_back(clouded, cloud):
    clouded.create("s", resources(), environment=NOTHING)
    clouded.deliver_all()
    assert cloud.things == {}
    clouded.update("s", resources())
    clouded.deliver_all()
    assert len(cloud.things) == 1
    clouded.update("s", {"x": test_resource()}, environment=NOTHING)
    clouded.deliver_all()
    assert cloud.things == {}


def test_a_preview_says_that_it_stays(clouded):
    clouded.create("s", resources())
    clouded.deliver_all()
    whole = {"heat_template_version": "2021-04-16", "resources": resources("another")}
    body = Body(orjson.dumps({"template": whole, "environment": NOTHING}))
    previewed = preview_update(clouded.context, clouded.stack_row("s"), body)
    turns = {item.expected.name: turn for turn, items in previewed.items.items() for item in items}
    assert turns == {"thing": "unchanged", "watcher": "updated"}


INNER = """
heat_template_version: 2021-04-16
resources:
  a: {type: "OS::Heat::TestResource"}
outputs:
  out: {value: {get_attr: [a, output]}}
"""


def test_a_nested_stack_is_kept_too_and_deleted_with_its_parent(world):
    own = {"resource_registry": {"My::Own": "own.yaml"}}
    nothing = {"resource_registry": {"My::Own": "OS::Heat::None"}}
    resources = {"own": {"type": "My::Own"}}
    outputs = {"out": {"value": {"get_attr": ["own", "out"]}}}
    additional = {"outputs": outputs, "files": {"own.yaml": INNER}}
    children = "SELECT uuid FROM stack WHERE owner_id IS NOT NULL AND deleted_at IS NULL"
    uuid = world.create("s", resources, environment=own, **additional)
    world.deliver_all()
    assert world.outputs("s") == {"out": "test_string"}
    before = world.rows(children)
    assert len(before) == 1
    world.update("s", resources, environment=nothing, **additional)
    world.deliver_all()
    assert (world.state(uuid), world.outputs("s")) == ("UPDATE_COMPLETE", {"out": None})
    assert world.rows(children) == before
    world.update("s", resources, environment=own, **additional)
    world.deliver_all()
    assert (world.state(uuid), world.outputs("s")) == ("UPDATE_COMPLETE", {"out": "test_string"})
    assert world.rows(children) == before
    world.update("s", resources, environment=nothing, **additional)
    world.deliver_all()
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"
    assert world.rows(children) == []


def test_a_template_that_says_none_itself_wants_the_thing_gone(clouded, cloud):
    uuid = clouded.create("s", resources())
    clouded.deliver_all()
    assert len(cloud.things) == 1
    nothing = {"thing": {"type": "OS::Heat::None"}}
    whole = {"heat_template_version": "2021-04-16", "resources": nothing}
    previewed = preview_update(
        clouded.context, clouded.stack_row("s"), Body(orjson.dumps({"template": whole}))
    )
    assert [item.expected.name for item in previewed.items["replaced"]] == ["thing"]
    clouded.update("s", nothing)
    clouded.deliver_all()
    assert clouded.state(uuid) == "UPDATE_COMPLETE"
    assert cloud.things == {}
