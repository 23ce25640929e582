"""Whether this process lives (`/livez`), and whether it can do its work (`/readyz`).

Who restarts processes asks the first, who sends requests to them the second: a database that is away is no
reason to restart anything. `/healthcheck` is Heat's word for the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from flask import Blueprint, Response

from api.dependencies import Dependencies, dependencies
from api.response.errors import RETRY_SECONDS
from api.response.serialization import json_response
from orchestrator.store.maintenance.gauges import schema_version
from orchestrator.store.schema.version import head

health = Blueprint("health", __name__)


@cache
def needed() -> str:
    """Return the schema that this code needs."""
    return head()


@health.get("/livez")
def live() -> Response:
    """Say that this process answers."""
    return json_response({"status": "ok"})


@health.get("/readyz")
def ready() -> Response:
    """Say how each part is; 503 unless requests can be answered.

    Without the broker they can: what was accepted waits in the database, and is found there.
    """
    made_of = dependencies()
    found = {"database": _look(lambda: _schema(made_of)), "broker": _look(lambda: _broker(made_of))}
    if found["database"]["status"] == "ok":
        schema = found["database"].pop("said")
        found["schema"] = {"status": "ok" if schema == needed() else "failed", "version": schema}
        if schema != needed():
            found["schema"]["reason"] = f"this code needs {needed()}"
    essential = [part["status"] for name, part in found.items() if name != "broker"]
    well = all(part["status"] == "ok" for part in found.values())
    able = all(status == "ok" for status in essential)
    body = {"status": "ok" if well else "degraded" if able else "failed", "parts": found}
    response = json_response(body, 200 if able else 503)
    if not able:
        response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _look(part: Callable[[], Any]) -> dict[str, Any]:
    begun = time.perf_counter()
    try:
        said = part()
    except Exception as error:
        return {"status": "failed", "reason": type(error).__name__, "seconds": _since(begun)}
    return {"status": "ok", "seconds": _since(begun), **({} if said is None else {"said": said})}


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)


def _schema(made_of: Dependencies) -> str | None:
    return schema_version(made_of.database)


def _broker(made_of: Dependencies) -> None:
    if made_of.broker_stats is not None:
        made_of.broker_stats.depths()
