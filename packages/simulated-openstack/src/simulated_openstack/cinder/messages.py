"""Messages for users: the causes of failed operations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from simulated_openstack.cinder.pages import listing
from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call, Service, new_id
from simulated_openstack.state import Table

FIRST_VERSION: Final = (3, 3)
FILTERS_VERSION: Final = (3, 5)
FILTERS: Final = ("resource_uuid", "resource_type", "event_id", "request_id", "message_level")
KEPT: Final = timedelta(days=30)


class Kind(NamedTuple):
    """A kind of messages."""

    event_id: str
    text: str


NO_BACKEND: Final = Kind(
    "VOLUME_VOLUME_001_003",
    "schedule allocate volume:Could not find any available weighted backend.",
)
DRIVER_FAILED: Final = Kind(
    "VOLUME_VOLUME_008_012",
    "create volume from backend storage:Driver failed to create the volume.",
)


class Messages:
    """All messages."""

    def __init__(self, cinder: Service) -> None:
        """Add the routes."""
        self.table: Table = cinder.cloud.state.table("cinder.message", "project_id")
        add = cinder.router.add
        add("GET", "/v3/messages", self.index)
        add("GET", "/v3/messages/{id_}", self.show)
        add("DELETE", "/v3/messages/{id_}", self.delete)

    def add(self, volume: JsonObject, request_id: str, kind: Kind) -> None:
        """Keep a message about a volume."""
        now = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        self.table.save(
            {
                "id": new_id(),
                "event_id": kind.event_id,
                "user_message": kind.text,
                "message_level": "ERROR",
                "created_at": now.isoformat(timespec="microseconds"),
                "guaranteed_until": (now + KEPT).isoformat(timespec="microseconds"),
                "request_id": request_id,
                "resource_type": "VOLUME",
                "resource_uuid": volume["id"],
                "project_id": volume["project_id"],
            }
        )

    def index(self, call: Call) -> Response:
        """List the messages of the project, the newest first."""
        _require_version(call)
        rows = self.table.where("project_id", call.caller.project_id)[::-1]
        if call.version >= FILTERS_VERSION:
            wanted = [(key, value) for key, value in call.request.query if key in FILTERS]
            rows = [row for row in rows if all(row[key] == value for key, value in wanted)]
        return listing(call, "messages", [_view(call, row) for row in rows])

    def show(self, call: Call, id_: str) -> Response:
        """Show a message."""
        return Response(200, {"message": _view(call, self._visible(call, id_))})

    def delete(self, call: Call, id_: str) -> Response:
        """Delete a message."""
        self.table.remove(self._visible(call, id_)["id"])
        return Response(204)

    def _visible(self, call: Call, id_: str) -> JsonObject:
        _require_version(call)
        row = self.table.get(id_)
        if row is None or row["project_id"] != call.caller.project_id:
            raise ApiError(404, f"Message {id_} could not be found.")
        return row


def _require_version(call: Call) -> None:
    if call.version < FIRST_VERSION:
        raise ApiError(404, "The resource could not be found.")


def _view(call: Call, row: JsonObject) -> JsonObject:
    path = f"messages/{row['id']}"
    links = [
        {"rel": "self", "href": f"{call.base}/v3/{path}"},
        {"rel": "bookmark", "href": f"{call.base}/{path}"},
    ]
    return {**{key: value for key, value in row.items() if key != "project_id"}, "links": links}
