"""A template of five resources, and the ids and values of the resources in the database."""

from __future__ import annotations

from tests.scenarios.world import test_resource


def five(**changes):
    """The usual template: C needs A and B, D has C's id, E its value."""
    made = {
        "A": test_resource("a"),
        "B": test_resource("b"),
        "C": test_resource("4alpha", requires=("A", "B")),
        "D": test_resource({"get_resource": "C"}),
        "E": test_resource({"get_attr": ["C", "output"]}),
    }
    made.update(changes)
    return {name: body for name, body in made.items() if body is not None}


def ids(world):
    query = "SELECT name, physical_id FROM resource WHERE NOT deposed ORDER BY name"
    return {row.name: row.physical_id for row in world.rows(query)}


def values(world):
    query = "SELECT name, attributes->>'output' AS value FROM resource WHERE NOT deposed"
    return {row.name: row.value for row in world.rows(query)}
