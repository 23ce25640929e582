"""Stacks of any size, written by SQL: layers of resources in all states, with their events."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.types.json import Jsonb

from orchestrator.template.parse import Limits
from orchestrator.template.template import load

PROJECT: Final = "bench"
LAYERS: Final = 12
TEMPLATE: Final = {"heat_template_version": "2018-08-31", "description": "resources written by SQL"}
TYPES: Final = (
    "OS::Neutron::Net",
    "OS::Neutron::Subnet",
    "OS::Neutron::Port",
    "OS::Nova::Server",
    "OS::Cinder::Volume",
    "OS::Heat::SoftwareDeployment",
)

STACK: Final = """
INSERT INTO stack (uuid, project_id, name, root_id, action, status, traversal, action_started_at)
VALUES (%(uuid)s, %(project)s, %(name)s, currval(pg_get_serial_sequence('stack', 'id')), 'CREATE',
    'IN_PROGRESS', 1, now() - interval '10 minutes')
RETURNING id
"""
ROOT: Final = "UPDATE stack SET root_id = id WHERE id = %(id)s"
CONTENT: Final = "INSERT INTO content (hash, body) VALUES (sha256('{}'), '{}') ON CONFLICT DO NOTHING"
REVISION: Final = """
WITH v AS (
    INSERT INTO revision (stack_id, number, action, template_hash, outline, traversal)
    VALUES (%(id)s, 1, 'CREATE', sha256('{}'), %(outline)s, 1) RETURNING id, stack_id)
UPDATE stack s SET revision_id = v.id FROM v WHERE s.id = v.stack_id
"""

# The layer of resource n is n / width; it requires two resources of the layer before. Most are complete, the
# last layers are in progress or planned, and a few have failed.
RESOURCES: Final = """
INSERT INTO resource (uuid, stack_id, name, type, action, status, physical_id, created_at, updated_at)
SELECT gen_random_uuid(), %(id)s, 'r' || lpad(n::text, 7, '0'),
    (%(types)s::text[])[1 + (n / %(width)s) %% %(kinds)s],
    CASE WHEN n >= %(size)s * 0.95 THEN 'INIT' ELSE 'CREATE' END,
    CASE WHEN n >= %(size)s * 0.95 THEN 'COMPLETE' WHEN n %% 997 = 5 THEN 'FAILED'
        WHEN n >= %(size)s * 0.85 THEN 'IN_PROGRESS' ELSE 'COMPLETE' END,
    gen_random_uuid()::text, now() - interval '599 seconds', now()
FROM generate_series(0, %(size)s - 1) AS n
"""
# Dependents first, as a plan writes them.
DEFINITIONS: Final = """
INSERT INTO resource_definition (stack_id, name, digest, body, requires, valid_from)
SELECT %(id)s, 'r' || lpad(n::text, 7, '0'), '\\x00', '{}',
    CASE WHEN n < %(width)s THEN '{}' ELSE ARRAY['r' || lpad((n - %(width)s)::text, 7, '0'),
        'r' || lpad((n - n %% %(width)s - %(width)s + (n + 1) %% %(width)s)::text, 7, '0')] END, 1
FROM generate_series(%(size)s - 1, 0, -1) AS n
"""
EVENTS: Final = """
INSERT INTO event (stack_id, resource_name, resource_type, physical_id, action, status, reason, created_at)
SELECT stack_id, name, type, physical_id, action, x.status, 'state changed',
    now() - interval '10 minutes' + (600.0 * x.at) * interval '1 second'
FROM (
    SELECT r.*, row_number() OVER (ORDER BY name) - 1 AS n FROM resource r WHERE stack_id = %(id)s
        AND action = 'CREATE') r
CROSS JOIN LATERAL (VALUES
    ('IN_PROGRESS', (n / %(width)s) * 0.08 + (n %% %(width)s) * 0.02 / %(width)s),
    (CASE WHEN r.status = 'IN_PROGRESS' THEN NULL ELSE r.status::text END,
        (n / %(width)s) * 0.08 + 0.05 + ((n * 7) %% %(width)s) * 0.02 / %(width)s)) AS x(status, at)
WHERE x.status IS NOT NULL ORDER BY x.at
"""
NODES: Final = """
INSERT INTO graph_node (stack_id, root_id, traversal, kind, resource_id, queue, label, state, observed_ready,
    observed_ready_at, blocked_by)
SELECT stack_id, stack_id, 1, 'update', id, 'check', name,
    CASE WHEN action = 'INIT' THEN 'blocked' WHEN status = 'FAILED' THEN 'failed'
        WHEN status = 'COMPLETE' THEN 'ready' ELSE 'queued' END,
    action <> 'INIT' AND status = 'COMPLETE',
    CASE WHEN action <> 'INIT' AND status = 'COMPLETE' THEN updated_at END, (action = 'INIT')::int
FROM resource WHERE stack_id = %(id)s
"""
# As the sweep counts.
PROGRESS: Final = """
INSERT INTO progress (stack_id, traversal, counts, counted_at, seconds, final)
SELECT %(id)s, 1, jsonb_object_agg(state, n), now(), 0.1, false
FROM (SELECT state, count(*) AS n FROM graph_node WHERE stack_id = %(id)s GROUP BY state) c
"""


@dataclass(frozen=True, slots=True)
class BenchStack:
    """A stack that was written."""

    id: int
    uuid: str
    name: str
    size: int

    @property
    def path(self) -> str:
        """The address of its pages, below the console."""
        return f"/ui/{PROJECT}/stacks/{self.name}/{self.uuid}"


def write(db: psycopg.Connection[tuple[object, ...]], size: int, project: str = PROJECT) -> BenchStack:
    """Write a stack of `size` resources."""
    name, id_ = f"s{size}", str(uuid.uuid4())
    row = db.execute(STACK, {"uuid": id_, "project": project, "name": name}).fetchone()
    assert row is not None
    values = {
        "id": row[0],
        "size": size,
        "width": max(1, -(-size // LAYERS)),
        "types": list(TYPES),
        "kinds": len(TYPES),
        "outline": Jsonb(load(TEMPLATE, Limits()).outline()),
    }
    for statement in (ROOT, CONTENT, REVISION, RESOURCES, DEFINITIONS, EVENTS, NODES, PROGRESS):
        db.execute(statement, values) if "%(" in statement else db.execute(statement)
    db.execute("ANALYZE resource, resource_definition, event, graph_node, stack")
    return BenchStack(int(str(row[0])), id_, name, size)
