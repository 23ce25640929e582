"""The template language where it counts: in the checks of a running stack."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.operations.reconcile.check import check_local
from tests.scenarios.world import World


def value(of, **options):
    return {"type": "OS::Heat::Value", "properties": {"value": of}, **options}


def test_files_reach_the_resources_that_ask_for_them(world):
    files = {"motd": "hello", "other": "unused"}
    parameters = {"name": {"type": "string", "default": "motd"}}
    resources = {"named": value({"get_file": "motd"}), "computed": value({"get_file": {"get_param": "name"}})}
    outputs = {
        "named": {"value": {"get_attr": ["named", "value"]}},
        "computed": {"value": {"get_attr": ["computed", "value"]}},
        "direct": {"value": {"get_file": "other"}},
    }
    uuid = world.create("s", resources, outputs=outputs, parameters=parameters, files=files)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("s") == {"named": "hello", "computed": "hello", "direct": "unused"}


def test_a_definition_changes_with_the_file_it_uses(world):
    digests = []
    for name, text in (("one", "a"), ("two", "b"), ("three", "a")):
        uuid = world.create(name, {"v": value({"get_file": "f"}), "w": value(1)}, files={"f": text})
        world.deliver_all()
        query = """SELECT d.name, d.digest FROM resource_definition d JOIN stack s ON s.id = d.stack_id
            WHERE s.uuid = :u ORDER BY d.name"""
        digests.append({row.name: bytes(row.digest) for row in world.rows(query, u=uuid)})
    item, two, three = digests
    assert item["v"] != two["v"]
    assert item == three
    assert item["w"] == two["w"]


def test_a_file_that_is_not_there_is_refused_before_anything_is_written(world):
    message = 'No content found in the "files" section for get_file path: no'
    with pytest.raises(InvalidTemplate, match=message):
        world.create("s", {"v": value({"get_file": "no"})})
    assert world.rows("SELECT 1 FROM stack") == []


def test_conditions_are_decided_when_a_stack_is_made(world):
    resources = {
        "large": value("big", condition="prod"),
        "small": value("tiny", condition={"not": "prod"}),
        "size": value({"if": ["prod", {"get_attr": ["large", "value"]}, {"get_attr": ["small", "value"]}]}),
    }
    shared = {
        "conditions": {"prod": {"equals": [{"get_param": "env"}, "prod"]}},
        "outputs": {
            "size": {"value": {"get_attr": ["size", "value"]}},
            "only": {"value": 1, "condition": "prod"},
        },
    }
    parameters = {"env": {"type": "string"}}
    for env, size, made in (("prod", "big", {"large", "size"}), ("dev", "tiny", {"small", "size"})):
        environment = {"parameters": {"env": env}}
        uuid = world.create(env, resources, **shared, parameters=parameters, environment=environment)
        world.deliver_all()
        assert world.state(uuid) == "CREATE_COMPLETE"
        assert world.outputs(env) == {"size": size, **({"only": 1} if env == "prod" else {})}
        query = "SELECT r.name FROM resource r JOIN stack s ON s.id = r.stack_id WHERE s.uuid = :u"
        assert {row.name for row in world.rows(query, u=uuid)} == made


def test_a_stack_of_the_other_dialect_is_made(world):
    count = {"Fn::GetAtt": ["Count", "value"]}
    template = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"Kind": {"Type": "String", "Default": "web"}},
        "Mappings": {"Sizes": {"web": {"count": "2"}, "db": {"count": "8"}}},
        "Conditions": {"Many": {"Fn::Equals": [{"Ref": "Kind"}, "db"]}},
        "Resources": {
            "Count": {
                "Type": "OS::Heat::Value",
                "Properties": {"value": {"Fn::FindInMap": ["Sizes", {"Ref": "Kind"}, "count"]}},
            },
            "Text": {
                "Type": "OS::Heat::Value",
                "DependsOn": "Count",
                "Properties": {"value": {"Fn::Join": ["-", [{"Ref": "AWS::StackName"}, count]]}},
            },
            "Extra": {"Type": "OS::Heat::None", "Condition": "Many"},
        },
        "Outputs": {
            "Text": {"Value": {"Fn::GetAtt": ["Text", "value"]}},
            "Here": {"Value": {"Fn::FindInMap": ["Sizes", "db", "count"]}},
        },
    }
    uuid = world.submit("cfn", template)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    assert world.outputs("cfn") == {"Text": "cfn-2", "Here": "8"}


def test_the_environment_maps_a_type_to_another_type(world):
    environment = {"resource_registry": {"My::Secret": "OS::Heat::RandomString", "OS::Cloud*": "OS::Heat*"}}
    resources = {
        "secret": {"type": "My::Secret", "properties": {"length": 8}},
        "value": {"type": "OS::Cloud::Value", "properties": {"value": {"get_attr": ["secret", "value"]}}},
    }
    uuid = world.create("s", resources, environment=environment)
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    rows = world.rows("SELECT name, type, runs_as FROM resource ORDER BY name")
    assert [tuple(row) for row in rows] == [
        ("secret", "My::Secret", "OS::Heat::RandomString"),
        ("value", "OS::Cloud::Value", "OS::Heat::Value"),
    ]
    world.delete("s")
    world.deliver_all()
    assert world.state(uuid) == "DELETE_COMPLETE"


# external_id


@pytest.fixture
def cloudy(postgres_url, cloud):
    world = World(postgres_url, types=cloud.types())
    yield world
    world.close()


def test_an_external_resource_is_observed_and_not_changed(cloudy, cloud):
    cloud.things["theirs"] = "token"
    resources = {
        "taken": {"type": "Cloud::Thing", "external_id": {"get_param": "id"}},
        "after": value({"get_resource": "taken"}),
    }
    parameters = {"id": {"type": "string", "default": "theirs"}}
    outputs = {"id": {"value": {"get_attr": ["after", "value"]}}}
    uuid = cloudy.create("s", resources, parameters=parameters, outputs=outputs)
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "CREATE_COMPLETE"
    assert cloudy.outputs("s") == {"id": "theirs"}
    assert cloud.made == {}
    cloudy.delete("s")
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "DELETE_COMPLETE"
    assert cloud.things == {"theirs": "token"}
    assert not [call for call in cloud.calls if call.startswith(("create", "delete"))]


def test_whose_id_an_external_resource_takes_is_made_before_it(cloudy, cloud):
    cloud.things["theirs"] = "token"
    resources = {
        "taken": {"type": "Cloud::Thing", "external_id": {"get_attr": ["name", "value"]}},
        "name": value("theirs"),
    }
    uuid = cloudy.create("s", resources)
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "CREATE_COMPLETE"
    assert cloud.made == {}


def test_metadata_with_a_hidden_value_is_sealed(world):
    parameters = {"h": {"type": "string", "hidden": True}}
    resources = {"a": {**value(1), "metadata": {"k": {"get_param": "h"}}}}
    world.create("s", resources, parameters=parameters, environment={"parameters": {"h": "tellnobody"}})
    world.deliver_all()
    [row] = world.rows("SELECT row_to_json(r)::text AS all, sealed FROM resource r")
    assert "tellnobody" not in row.all
    assert world.cipher.open(row.sealed)["metadata"] == {"k": "tellnobody"}


def test_an_external_thing_that_is_not_there_fails_the_stack(cloudy, cloud):
    uuid = cloudy.create("s", {"taken": {"type": "Cloud::Thing", "external_id": "nowhere"}})
    cloudy.deliver_all()
    assert cloudy.state(uuid) == "CREATE_FAILED"
    assert cloud.made == {}


# The data of a check (docs/internals/design.md, "Template API").


def check_of(world: World, stack: str, name: str) -> Any:
    """Deliver until the node of a resource is queued; return the node."""
    while True:
        world.deliver(1)
        rows = world.rows(
            """SELECT n.id, n.traversal FROM graph_node n JOIN stack s ON s.id = n.stack_id
            WHERE s.name = :stack AND n.label = :name AND n.state = 'queued'""",
            stack=stack,
            name=name,
        )
        if rows:
            return rows[0]


def received_by_a_check(world: World, node: Any) -> str:
    """Run a check; return the text of all rows that the database sends for it."""
    answers = world.seams.results("statement")
    check_local(world.engine, [node.id], node.traversal)
    return "".join(str(cell) for rows in answers for row in rows for cell in row if cell is not None)


def test_a_check_reads_only_the_attributes_that_its_definition_uses(cloudy):
    resources = {
        "far": value("value-of-far"),
        "near": value("value-of-near", depends_on="far"),
        "unused": value("value-of-unused"),
        "last": value({"list_join": ["", [{"get_attr": ["near", "value"]}, {"get_resource": "unused"}]]}),
    }
    cloudy.create("s", resources)
    received = received_by_a_check(cloudy, check_of(cloudy, "s", "last"))
    assert "value-of-near" in received
    assert "value-of-unused" not in received  # required, but only by its id
    assert "value-of-far" not in received  # required by a requirement only


TABLE_ROWS = """
SELECT sum(coalesce(idx_tup_fetch, 0) + coalesce(seq_tup_read, 0))::bigint AS rows
FROM pg_stat_user_tables WHERE schemaname = 'public'
"""


def reads_of_a_check(world: World, size: int) -> tuple[int, int]:
    """Return the rows that a check reads in a stack of this size, and the bytes that reach the worker."""
    resources = {f"r{n}": value(str(n)) for n in range(size)}
    resources["last"] = value({"list_join": [",", [{"get_resource": "r1"}, {"get_attr": ["r2", "value"]}]]})
    world.create(f"s{size}", resources)
    node = check_of(world, f"s{size}", "last")
    db = world.database.check_connection(durable=False)

    def counted() -> int:
        """Return the rows read so far, also by the connections that have created the stack."""
        with world.database.borrow(hot=False) as one, world.database.borrow(hot=False) as other:
            for connection in (db, one, other):
                connection.execute("SELECT pg_stat_force_next_flush()").fetchone()
                connection.execute("SELECT 1").fetchone()
        return int(world.rows(TABLE_ROWS)[0].rows)

    before = counted()
    received = len(received_by_a_check(world, node))
    read = counted() - before
    world.seams.remove()
    world.messages.clear()
    return read, received


def test_the_reads_of_a_check_do_not_grow_with_its_stack(world):
    rows, size = reads_of_a_check(world, 5)
    more_rows, more_size = reads_of_a_check(world, 1_000)
    assert 0 < more_rows <= rows + 5 <= 60
    assert 0 < more_size <= size + 100 <= 4_000
