"""The order between the things of a provider, according to the rows of the engine."""

from __future__ import annotations

from tests.scenarios.world import World


def required(world: World, token: str, *, meddled: bool) -> list[str]:
    """Return the ids of the things that a token's thing requires, by the definition of its current
    operation: of two things with the same name, the thing it was begun with; of a stack, all its things.
    """
    rows = world.rows(
        """WITH RECURSIVE chosen AS (
            SELECT DISTINCT ON (q.name) q.id
            FROM resource r JOIN resource_definition d ON d.id = r.definition_id
            JOIN resource q ON q.stack_id = r.stack_id AND q.name = ANY(d.requires)
            CROSS JOIN LATERAL (
                SELECT coalesce(r.input_digests[array_position(r.requires, q.id)], '') <> '' AS begun
            ) AS x
            WHERE r.uuid::text = left(:token, 36) AND (x.begun OR NOT q.deposed)
            ORDER BY q.name, x.begun DESC
        ), q AS (
            SELECT q.* FROM chosen JOIN resource q ON q.id = chosen.id
            UNION ALL
            SELECT m.* FROM q JOIN stack c ON c.parent_resource_id = q.id AND NOT :meddled
            JOIN resource m ON m.stack_id = c.id AND NOT m.deposed
        )
        SELECT physical_id FROM q WHERE type LIKE 'Sim::%'""",
        token=token,
        meddled=meddled,
    )
    return [row.physical_id for row in rows]


def dependents(world: World, id_: str) -> list[str]:
    """Return the ids of the dependents of a thing according to the engine, including all things of a
    dependent stack.
    """
    rows = world.rows(
        """WITH RECURSIVE r AS (
            SELECT r.* FROM resource r JOIN resource q ON q.id = ANY(r.requires)
            WHERE q.physical_id = :id AND r.physical_id IS NOT NULL
            UNION ALL
            SELECT m.* FROM r JOIN stack c ON c.parent_resource_id = r.id
            JOIN resource m ON m.stack_id = c.id AND m.physical_id IS NOT NULL
        )
        SELECT physical_id FROM r WHERE type LIKE 'Sim::%'""",
        id=id_,
    )
    return [row.physical_id for row in rows]
