"""Stacks with expired rows, their numbers of rows, and purge policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from orchestrator.operations.maintenance.purge import Policy
from tests.scenarios.world import World, test_resource

EVERYTHING = Policy(0, 0, 0, 0, 0)
NOTHING = Policy(1e9, 1e9, 1000, 1e9, 1e9)
TABLES = ("stack", "revision", "resource_definition", "resource", "graph_node", "event", "failure", "content")


@pytest.fixture
def db(world: World) -> Iterator[psycopg.Connection[Any]]:
    with world.database.connect(hot=True, replan=True) as connection:
        yield connection


def made(world: World, name: str = "s", value: str = "v", **snippet: Any) -> str:
    uuid = world.create(name, {"a": test_resource(value) | snippet})
    world.deliver_all()
    assert world.state(uuid) == "CREATE_COMPLETE"
    return uuid


def updated(world: World, *values: str, name: str = "s", **snippet: Any) -> None:
    for value in values:
        world.update(name, {"a": test_resource(value) | snippet})
        world.deliver_all()


def count(world: World, table: str) -> int:
    return int(world.rows(f"SELECT count(*) FROM {table}")[0][0])


def counts(world: World) -> dict[str, int]:
    return {table: count(world, table) for table in TABLES}


def numbers(world: World) -> list[int]:
    return [row.number for row in world.rows("SELECT number FROM revision ORDER BY number")]


def execute(world: World, statement: str) -> None:
    with psycopg.connect(world.database.url, autocommit=True) as connection:
        connection.execute(statement.encode())
