"""The statements that end a stack, as values: `render` returns the SQL.

Each finds the stack and writes its final state in the common table expression `s`, whose rows the effects
read: the outcome of the revision, the final event, the end of a snapshot, and the node of the parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from orchestrator.engine.states import STATES_VISITED
from orchestrator.store.tables.base import check_in
from orchestrator.store.traversals.traversals import STACK_EVENT

# Of a stack whose traversal has not ended. The empty second value is for the planner (nodes/visit_sql.py).
NOT_ENDED: Final = "status IN ('IN_PROGRESS', '')"
IS_HELD: Final = "state IN ('held', '')"  # a credential, likewise
COMPLETE_REASON: Final = "'Stack ' || action || ' completed successfully'"

# A snapshot ends with the traversal that creates it (docs/internals/protocol.md rule 14).
END_SNAPSHOT: Final = """
    UPDATE snapshot x SET status = s.status, status_reason = s.status_reason
    FROM s WHERE s.action = 'SNAPSHOT' AND x.stack_id = s.id AND x.traversal = s.traversal
        AND x.action = 'CREATE' AND x.status = 'IN_PROGRESS'"""
# The end of a child wakes the node of its resource (docs/internals/protocol.md rule 12). The conditions are
# those of ix_graph_node_at_work.
WAKE_PARENT: Final = f"""
    UPDATE graph_node n SET state = 'queued', due_at = NULL, enqueued_at = now(), re_enqueues = 0
    FROM s CROSS JOIN LATERAL (
        SELECT m.id FROM graph_node m
        WHERE m.stack_id = s.owner_id AND m.resource_id = s.parent_resource_id
            AND {check_in("m.state", STATES_VISITED)} AND m.due_at IS NOT NULL OFFSET 0) AS blocked_node
    WHERE n.id = ANY (ARRAY[blocked_node.id]) AND n.due_at IS NOT NULL
    RETURNING n.id, n.traversal, n.queue, n.label, s.root_id"""
# The follow-up of a resized group (`signals/group_resize.py`).
RESUME_GROUP: Final = """
    UPDATE signal g SET due_at = now() FROM s
    WHERE g.resource_id = s.parent_resource_id AND g.due_at = 'infinity'"""
MESSAGES: Final = """(
    SELECT json_agg(json_build_array(w.id, w.traversal, w.queue, w.label, x.uuid))
    FROM woken w JOIN stack x ON x.id = w.root_id)"""  # for the woken nodes


_LOCKED: Final = {"k": "MATERIALIZED "}  # the locked stack


@dataclass(frozen=True, slots=True)
class StackEnd:
    """A statement that ends a stack. The parts are common table expressions by their names, in order."""

    name: str
    steps: Mapping[str, str]  # among them `s`, the ended stack
    outcome: str  # of the revision, as SQL
    answer: str  # the final SELECT
    effects: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # further ones
    ends_snapshot: bool = True


def render(end: StackEnd) -> str:
    """Return the text of a statement."""
    revision = f"""
    UPDATE revision SET outcome = {end.outcome}, ended_at = now() FROM s
    WHERE revision.id = s.revision_id AND revision.traversal = s.traversal AND revision.outcome IS NULL"""
    parts = {
        **end.steps,
        "r": revision,
        **end.effects,
        **({"snapshot_ended": END_SNAPSHOT} if end.ends_snapshot else {}),
        "recorded": STACK_EVENT.rstrip(),
        "woken": WAKE_PARENT,
        "resumed": RESUME_GROUP,
    }
    written = ", ".join(f"{name} AS {_LOCKED.get(name, '')}({text}\n)" for name, text in parts.items())
    return f"WITH {written}\n{end.answer}"
