"""Compare the results with the requests, once the system is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from qa.soak.templates import INSIDE, nested, things, value_of
from qa.soak.users import UserRequest, UserStack
from tests.plugins.thing_fixture import ThingServer

UNFINISHED = """
SELECT s.name, s.action, s.status, n.traversal, n.kind, n.label, n.state, n.blocked_by, n.lost_leases,
    n.retry_count, n.last_error, n.due_at, n.leased_until, r.op, r.physical_id, r.lease IS NOT NULL
FROM graph_node n JOIN stack s ON s.id = n.stack_id LEFT JOIN resource r ON r.id = n.resource_id
WHERE n.traversal = s.traversal AND s.name = %s AND n.state NOT IN ('ready', 'dropped') ORDER BY n.id LIMIT 30
"""
OPEN = """
SELECT s.name, r.name, r.op, r.lease, r.leased_until FROM resource r JOIN stack s ON s.id = r.stack_id
WHERE r.op IS NOT NULL OR r.leased_until > now()  -- one that has run out is as good as none
"""
STACKS = """
SELECT c.name, c.action, c.status, r.id FROM stack c
LEFT JOIN resource r ON r.id = c.parent_resource_id AND r.stack_id = c.owner_id
WHERE c.owner_id IS NOT NULL AND c.deleted_at IS NULL AND (c.status = 'IN_PROGRESS' OR r.id IS NULL)
"""
AT_WORK = """
SELECT s.name, n.kind, n.label, n.state FROM graph_node n JOIN stack s ON s.id = n.stack_id
WHERE n.state IN ('queued', 'checking', 'waiting')
"""
KNOWN = """
SELECT r.physical_id FROM resource r JOIN stack s ON s.id = r.stack_id JOIN stack root ON root.id = s.root_id
WHERE root.uuid::text = %s AND r.physical_id IS NOT NULL AND coalesce(r.runs_as, r.type) = 'Test::Thing'
"""


# The things in the stacks of a stack, by the resources that these stand for.
INNER = """
WITH RECURSIVE below AS (
    SELECT r.name, c.id FROM stack s JOIN resource r ON r.stack_id = s.id AND NOT r.deposed
    JOIN stack c ON c.parent_resource_id = r.id AND c.deleted_at IS NULL WHERE s.uuid::text = %s
    UNION ALL
    SELECT b.name, c.id FROM below b JOIN stack c ON c.owner_id = b.id AND c.deleted_at IS NULL
)
SELECT b.name, r.physical_id FROM below b JOIN resource r ON r.stack_id = b.id AND r.type = 'Test::Thing'
ORDER BY r.id
"""


def doubles(server: ThingServer) -> list[str]:
    """Return objects that exist more than once for a token."""
    tokens = Counter(entry["token"] for entry in server.log("created"))
    return [f"{times} things with the token {token}" for token, times in tokens.items() if times > 1]


def strangers(server: ThingServer, stacks: Sequence[UserStack]) -> list[str]:
    """Return things of no stack at all."""
    names = tuple(f"{stack.name}-" for stack in stacks)
    return [
        f"{id_} ({name}) is nobody's" for id_, name in server.alive().items() if not name.startswith(names)
    ]


def destroyed(server: ThingServer, stacks: Sequence[UserStack]) -> list[str]:
    """Return the things of steady stacks that were deleted although they were ready."""
    names = tuple(f"{stack.name}-" for stack in stacks)
    ready_at = {entry["id"]: entry["thing"]["ready_at"] for entry in server.log("created")}
    return [
        f"{entry['id']} ({entry['name']}) was ready and was deleted"
        for entry in server.log("deleted")
        if names and entry["name"].startswith(names) and ready_at[entry["id"]] <= entry["time"]
    ]


def at_work(url: str) -> list[str]:
    """Return operations, leases and visits left open by stacks that are at rest."""
    with psycopg.connect(url) as db:
        return [
            f"left open: {row}" for query in (OPEN, AT_WORK, STACKS) for row in db.execute(query).fetchall()
        ]


def unfinished(url: str, name: str) -> list[Any]:
    """Return the unfinished nodes of a stack that does not end."""
    with psycopg.connect(url) as db:
        return db.execute(UNFINISHED, (name,)).fetchall()


def faults(stack: UserStack, server: ThingServer, url: str) -> list[str]:
    """Return all faults of a stack."""
    alive = server.alive(stack.name)
    state = stack.api.ask("GET", stack.place)
    if stack.action == "delete":
        result = (
            []
            if state.status == 404 or state.body["stack"]["stack_status"] == "DELETE_COMPLETE"
            else [f"{stack.name}: not deleted: {state.body}"]
        )
        return result + [f"{stack.name}: leaked {id_} ({name})" for id_, name in alive.items()]
    shown = state.body["stack"]
    status, reason = shown["stack_status"], shown["stack_status_reason"]
    with psycopg.connect(url) as db:
        recorded = {row[0] for row in db.execute(KNOWN, (stack.place.rpartition("/")[2],)).fetchall()}
    result = []
    if recorded != set(alive):
        result.append(
            f"{stack.name} ({status}): rows know {sorted(recorded - set(alive))},"
            f" leaked {set(alive) - recorded}"
        )
    expected = _expected(stack, status)
    if expected is None:
        return [*result, f"{stack.name}: {status} ({reason}) after {stack.action} of {stack.last.mark}"]
    if status.endswith("_FAILED"):
        return result
    mark = stack.api.ask("GET", f"{stack.place}/template").body.get("description", "")
    requests = next((item for item in expected if item.mark == mark), None)
    if requests is None:
        return [*result, f"{stack.name}: {status} with {mark!r}, not {[item.mark for item in expected]}"]
    return result + _differences(stack, requests, server, url)


def _expected(stack: UserStack, status: str) -> list[UserRequest] | None:
    """Return the templates a stack may have in its state; None when it may not be in that state."""
    goes_back = stack.action == "cancel" or (stack.last.broken and stack.last.rollback)
    if stack.action == "stop":
        return [] if status.endswith("_FAILED") else None
    if goes_back:
        return stack.can_go_back_to if status == "ROLLBACK_COMPLETE" else None
    if stack.last.broken:
        return [] if status.endswith("_FAILED") else None
    return [stack.last] if status in {"CREATE_COMPLETE", "UPDATE_COMPLETE"} else None


def _differences(stack: UserStack, requests: UserRequest, server: ThingServer, url: str) -> list[str]:
    """Return how the resources and things of a stack differ from its template."""
    listed = stack.api.ask("GET", f"{stack.place}/resources").body["resources"]
    ids = {row["resource_name"]: row["physical_resource_id"] for row in listed}
    if set(ids) != set(requests.resources):
        return [f"{stack.name}: has {sorted(ids)}, not {sorted(requests.resources)} of {requests.mark}"]
    alive, values = server.alive(stack.name), server.values()
    desired = {ids[name]: value_of(requests.resources, name, ids) for name in things(requests.resources)}
    with psycopg.connect(url) as db:
        inner = db.execute(INNER, (stack.place.rpartition("/")[2],)).fetchall()
    counts = Counter(name for name, _ in inner)
    expected = {name: INSIDE[requests.resources[name]["type"]] for name in nested(requests.resources)}
    if counts != expected:
        return [f"{stack.name}: {dict(counts)} things in its stacks, not {expected}, of {requests.mark}"]
    desired |= {id_: value_of(requests.resources, name, ids) for name, id_ in inner}
    result = [f"{stack.name}: {id_} is gone" for id_ in desired if id_ not in alive]
    result += [f"{stack.name}: {id_} is one too many" for id_ in alive if id_ not in desired]
    return result + [
        f"{stack.name}: {id_} is {values[id_]!r}, not {value!r}"
        for id_, value in desired.items()
        if id_ in alive and values[id_] != value
    ]
