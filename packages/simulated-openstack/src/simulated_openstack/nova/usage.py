"""The usage of projects, as dashboards show it: of the servers that exist."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.nova.pages import page_of
from simulated_openstack.nova.servers import Servers
from simulated_openstack.service import Call, Service

ROOT: Final = "/v2.1/os-simple-tenant-usage"
PAGES: Final = (2, 40)  # first version with pages


class Usage:
    """`/os-simple-tenant-usage`."""

    def __init__(self, nova: Service, servers: Servers) -> None:
        """Add the routes."""
        self._servers = servers
        nova.router.add("GET", ROOT, self.index)
        nova.router.add("GET", f"{ROOT}/{{project}}", self.show)

    def index(self, call: Call) -> Response:
        """List the usage of each project with servers."""
        if not call.caller.is_admin:
            raise _refusal("list")
        begin, end = _period(call)
        rows, links = _page(call, _in_period(self._servers.table, end), "tenant_usages")
        detailed = call.request.value("detailed") == "1"
        shown = []
        for project in sorted({row["project_id"] for row in rows}):
            usage = _usage(project, [row for row in rows if row["project_id"] == project], begin, end)
            shown.append(usage if detailed else {k: v for k, v in usage.items() if k != "server_usages"})
        return Response(200, {"tenant_usages": shown, **links})

    def show(self, call: Call, project: str) -> Response:
        """Show the usage of a project; without servers it is empty."""
        if not call.caller.is_admin and project != call.caller.project_id:
            raise _refusal("show")
        begin, end = _period(call)
        own = self._servers.table.where("project_id", project)
        rows, links = _page(call, _in_period(own, end), "tenant_usage")
        return Response(200, {"tenant_usage": _usage(project, rows, begin, end) if rows else {}, **links})


def _refusal(verb: str) -> ApiError:
    return ApiError(
        403, f"Policy doesn't allow os_compute_api:os-simple-tenant-usage:{verb} to be performed."
    )


def _page(call: Call, rows: list[JsonObject], key: str) -> tuple[list[JsonObject], JsonObject]:
    return page_of(call, rows, key) if call.version >= PAGES else (rows, {})


def _period(call: Call) -> tuple[datetime, datetime]:
    """Return the begin and the end of the period, by default of the last moment."""
    now = datetime.now(UTC)
    begin, end = (_time(call.request.value(name), now) for name in ("start", "end"))
    if begin > end:
        raise ApiError(400, "Invalid start time. The start time cannot occur after the end time.")
    return begin, min(end, now)


def _time(text: str | None, default: datetime) -> datetime:
    try:
        return default if not text else datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise ApiError(400, f"Datetime is in invalid format: {text}") from None


def _started_at(row: JsonObject) -> datetime:
    return datetime.fromisoformat(row["created"])


def _in_period(rows: Iterable[JsonObject], end: datetime) -> list[JsonObject]:
    return [row for row in rows if _started_at(row) <= end]


def _usage(project: str, rows: list[JsonObject], begin: datetime, end: datetime) -> JsonObject:
    servers = [_server_usage(row, begin, end) for row in rows]
    return {
        "tenant_id": project,
        "start": _shown(begin),
        "stop": _shown(end),
        "total_hours": sum(server["hours"] for server in servers),
        "total_vcpus_usage": sum(server["hours"] * server["vcpus"] for server in servers),
        "total_memory_mb_usage": sum(server["hours"] * server["memory_mb"] for server in servers),
        "total_local_gb_usage": sum(server["hours"] * server["local_gb"] for server in servers),
        "server_usages": servers,
    }


def _server_usage(row: JsonObject, begin: datetime, end: datetime) -> JsonObject:
    started_at, flavor = _started_at(row), row["flavor"]
    return {
        "instance_id": row["id"],
        "name": row["name"],
        "tenant_id": row["project_id"],
        "flavor": flavor["name"],
        "vcpus": flavor["vcpus"],
        "memory_mb": flavor["ram"],
        "local_gb": flavor["disk"] + flavor["ephemeral"],
        "state": row["vm_state"],
        "started_at": _shown(started_at),
        "ended_at": None,
        "hours": max(0.0, (end - max(begin, started_at)).total_seconds() / 3600),
        "uptime": int((datetime.now(UTC) - started_at).total_seconds()),
    }


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
