"""Resources by their physical id, in projects with very many resources: no statement reads them all."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import random
import string
from typing import Any

import psycopg
import pytest

from orchestrator.store.observation import notices, watched
from orchestrator.store.stacks import physical_ids
from tests.integration.api_world import Made, World, project, world  # noqa: F401 - fixtures
from tests.scenarios.plans import explained

CROWD = """
INSERT INTO resource (uuid, stack_id, name, type, physical_id, action)
SELECT gen_random_uuid(), %(stack)s, 'r' || i, 'Test::Plain', 'crowd-' || %(stack)s || '-' || i, 'CREATE'
FROM generate_series(1, 20000) i
"""
VALUES = {"most": 1_000, "repeated_seconds": 0.2}
STATEMENTS = [notices.NOTE, watched.NAMED, physical_ids.STACK_WITH]


@pytest.fixture
def crowded(world: World, project: str) -> Made:
    """A stack with many resources, in a table whose statistics are older."""
    stack = world.stack(project, "crowded")
    with psycopg.connect(world.database.url, autocommit=True) as db:
        db.execute("ANALYZE resource")
        db.execute(CROWD, {"stack": stack.id})
    return stack


@pytest.mark.parametrize("statement", STATEMENTS, ids=["note", "named", "stack_with"])
@pytest.mark.parametrize("hot", [True, False])
def test_named_objects_are_found_by_their_index(
    world: World, crowded: Made, statement: str, hot: bool
) -> None:
    ids = [f"crowd-{crowded.id}-7", f"crowd-{crowded.id}-19999", *(f"forged-{i}" for i in range(30))]
    values = {"project_id": crowded.project, "ids": ids, **VALUES}
    for analyzed in (False, True):
        with world.database.borrow(hot=hot) as db:
            if analyzed:
                db.execute("ANALYZE resource")
            work = explained(db, statement, values)
        assert work.rows < 20, (analyzed, work.scans)


def test_a_notification_finds_objects_of_its_project_only(world: World, crowded: Made) -> None:
    named = [f"crowd-{crowded.id}-7", "forged"]
    with world.database.borrow() as db:
        assert notices.note(db, world.project(), named).known == 0
        assert notices.note(db, crowded.project, named).known == 1
        assert list(notices.take(db, crowded.project)) == named[:1]
        found = watched.named(db, crowded.project, named)
    assert [item.physical_id for item in found] == named[:1]


def test_a_physical_id_may_be_longer_than_a_row_of_an_index(world: World, project: str) -> None:
    stack = world.stack(project, "long")
    long: Any = "".join(random.choices(string.ascii_letters, k=20_000))  # it cannot be compressed
    world.resource(stack, "one", physical_id=long)
    assert physical_ids.stack_with(world.database, project, long) == stack.uuid
    assert physical_ids.stack_with(world.database, project, long[:-1]) is None
