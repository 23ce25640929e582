"""The overview of a project; an extension of Heat's API (docs/console.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from flask import Blueprint, Response

from api.dependencies import caller, dependencies
from api.request import query_params
from api.response.serialization import json_response, time
from orchestrator.engine.history.failure_kinds import NEXT, classify
from orchestrator.json_types import JsonObject
from orchestrator.security.policy import allowed, policy_of
from orchestrator.store.maintenance import gauges, workers
from orchestrator.store.stacks import overview as stored
from orchestrator.store.stacks.overview import RootCause

overview = Blueprint("overview", __name__)

MAX_SLOW: Final = 10
MAX_EXAMPLES: Final = 3  # of a kind of failure


@overview.get("/<project_id>/overview")
def show(project_id: str) -> Response:
    """Return counts by state, the longest operations, failures by cause, and for operators the workers."""
    query_params.require_known()
    project, database = caller().project_id or project_id, dependencies().database
    counted = stored.counts(database, project)
    body: JsonObject = {
        "counts": {f"{action}_{status}": number for (action, status), number in sorted(counted.items())},
        "slowest": [
            {
                "id": row.uuid,
                "stack_name": row.name,
                "stack_status": f"{row.action}_{row.status}",
                "since": time(row.since),
            }
            for row in stored.slowest(database, project, MAX_SLOW)
        ],
        "failures": _by_kind(stored.root_causes(database, project)),
        "workers": _workers(),
    }
    return json_response({"overview": body})


def _by_kind(causes: Sequence[RootCause]) -> list[JsonObject]:
    """Group causes by their classification, the most frequent first."""
    found: dict[str, list[RootCause]] = {}
    for cause in causes:
        found.setdefault(classify(cause.reason).category, []).append(cause)
    ordered = Counter({category: len(members) for category, members in found.items()}).most_common()
    return [
        {
            "class": category,
            "count": count,
            "stacks": len({cause.stack_uuid for cause in found[category]}),
            "next_step": NEXT[category],
            "examples": [_example(cause) for cause in found[category][:MAX_EXAMPLES]],
        }
        for category, count in ordered
    ]


def _example(cause: RootCause) -> JsonObject:
    return {
        "stack_id": cause.stack_uuid,
        "stack_name": cause.stack_name,
        "resource_name": cause.resource_name,
        "resource_type": cause.resource_type,
        "reason": cause.reason,
        "failure_time": time(cause.at),
    }


def _workers() -> JsonObject | None:
    """Return workers and queues, None for callers who may not list the services."""
    settings, database = dependencies().settings, dependencies().database
    if settings.auth != "none" and not allowed(policy_of(settings), "service:index", caller()):
        return None
    read = gauges.read_gauges(database)
    return {
        "processes": [
            {
                "host": row.name,
                "hostname": row.hostname,
                "queues": row.queues,
                "is_up": row.is_up,
                "updated_at": time(row.updated_at),
            }
            for row in workers.list_workers(database)
        ],
        "leases": read.nodes.get("checking", 0),
        "waiting": read.nodes.get("waiting", 0),
        "queued": read.nodes.get("queued", 0),
        "queues": [
            {"queue": queue, "messages": count, "oldest_seconds": round(read.oldest_seconds[queue], 3)}
            for queue, count in sorted(read.enqueued.items())
        ],
    }
