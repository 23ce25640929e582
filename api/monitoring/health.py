"""Liveness (`/livez`, and Heat's `/healthcheck`) and readiness (`/readyz`) of this process.

Process managers use liveness, load balancers readiness: an unreachable database is no reason to restart a
process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

from flask import Blueprint, Response

from api.dependencies import Dependencies, dependencies
from api.response.errors import RETRY_SECONDS
from api.response.serialization import json_response
from orchestrator.json_types import JsonObject
from orchestrator.store.maintenance.gauges import schema_and_collation
from orchestrator.store.schema.collation import ADVICE, RECOMMENDED
from orchestrator.store.schema.version import head

health = Blueprint("health", __name__)


@cache
def required_schema() -> str:
    """Return the schema version that this code requires."""
    return head()


@health.get("/livez")
def live() -> Response:
    """Report that this process is alive."""
    return json_response({"status": "ok"})


@health.get("/readyz")
def ready() -> Response:
    """Report the state of each dependency; 503 unless requests can be served.

    The API works without the broker: the sweep enqueues accepted work later.
    """
    deps = dependencies()
    probes = {"database": _probe(lambda: _schema(deps)), "broker": _probe(lambda: _broker(deps))}
    if probes["database"]["status"] == "ok":
        schema, collation = probes["database"].pop("value")
        probes["database"]["collation"] = collation
        if collation != RECOMMENDED:
            probes["database"]["warning"] = f"collation {collation} instead of {RECOMMENDED}: {ADVICE}"
        probes["schema"] = {"status": "ok" if schema == required_schema() else "failed", "version": schema}
        if schema != required_schema():
            probes["schema"]["reason"] = f"this code needs {required_schema()}"
    essential = [part["status"] for name, part in probes.items() if name != "broker"]
    well = all(part["status"] == "ok" for part in probes.values())
    able = all(status == "ok" for status in essential)
    body = {"status": "ok" if well else "degraded" if able else "failed", "parts": probes}
    response = json_response(body, 200 if able else 503)
    if not able:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _probe(part: Callable[[], object]) -> JsonObject:
    started = time.perf_counter()
    try:
        value = part()
    except Exception as error:
        return {"status": "failed", "reason": type(error).__name__, "seconds": _seconds_since(started)}
    return {
        "status": "ok",
        "seconds": _seconds_since(started),
        **({} if value is None else {"value": value}),
    }


def _seconds_since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)


def _schema(made_of: Dependencies) -> tuple[str | None, str]:
    return schema_and_collation(made_of.database)


def _broker(made_of: Dependencies) -> None:
    if made_of.broker_stats is not None:
        made_of.broker_stats.depths()
