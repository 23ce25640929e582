"""Stacks by name, in projects with very many stacks: no query scans them all."""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import psycopg
import pytest

from orchestrator.store.connections.prepared import numbered
from orchestrator.store.stacks import stacks
from tests.integration.api_world import World, project, world  # noqa: F401 - fixtures

CROWD = """
INSERT INTO stack (root_id, owner_id, depth, uuid, project_id, name, action, status, parent_resource)
SELECT %(root)s, %(root)s, 1, gen_random_uuid(), %(project)s, 'nested-' || i, 'CREATE', 'COMPLETE', 'r' || i
FROM generate_series(1, 20000) i
"""


@pytest.mark.parametrize("name", ["nested-777", "nobody"])
def test_the_name_of_no_root_is_found_by_index(world: World, project: str, name: str) -> None:
    root = world.stack(project, "root")
    with psycopg.connect(world.database.url, autocommit=True) as db:
        db.execute(CROWD, {"root": root.id, "project": project})
        text, order = numbered(stacks.BY_NAME_NESTED)
        types = {"project_id": "text", "name": "text"}
        db.execute(f"PREPARE others ({', '.join(types[item] for item in order)}) AS {text.decode()}".encode())
        for analyzed in (False, True):
            if analyzed:
                db.execute("ANALYZE stack")
            values = [{"project_id": project, "name": name}[item] for item in order]
            supplied = ", ".join(f"'{value}'" for value in values)
            plan = "\n".join(row[0] for row in db.execute(f"EXPLAIN EXECUTE others ({supplied})".encode()))
            assert "Seq Scan on stack n" not in plan, plan
            assert "Seq Scan on stack u" not in plan, plan
    stack_row = stacks.find(world.database, project, name)
    assert (stack_row.name if stack_row else None) == (None if name == "nobody" else name)


def test_a_name_finds_the_root_stack_first_then_the_least_deep_and_oldest(world: World, project: str) -> None:
    root = world.stack(project, "root")
    inner = {"root_id": root.id, "owner_id": root.id, "parent_resource": "r"}
    deep = world.stack(project, "same", age=-50, depth=2, **inner)
    young = world.stack(project, "same", age=10, depth=1, **inner)
    old = world.stack(project, "same", age=0, depth=1, **inner)
    gone = {"action": "DELETE", "status": "COMPLETE", "deleted_at": "2026-01-01T00:00:00Z"}
    world.stack(project, "same", age=-90, depth=1, **inner, **gone)

    def resolved(of: str) -> object:
        row = stacks.find(world.database, of, "same")
        return row and row.uuid

    assert resolved(project) == old.uuid
    theirs = world.project()
    assert resolved(theirs) is None
    kept = world.stack(world.project(), "same", user_project_id=theirs)
    assert resolved(theirs) == kept.uuid
    own = world.stack(project, "same")
    assert resolved(project) == own.uuid
    assert {deep.uuid, young.uuid}.isdisjoint({old.uuid, own.uuid, kept.uuid})
