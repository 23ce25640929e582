"""Pages of lists."""

from __future__ import annotations

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call


def listing(call: Call, key: str, rows: list[JsonObject]) -> Response:
    """Return a page of a list with the link to the next page."""
    marker, limit = call.request.value("marker"), int(call.request.value("limit") or 1000)
    if marker:
        ids = [row["id"] for row in rows]
        if marker not in ids:
            raise ApiError(404, f"{key.capitalize()[:-1]} {marker} could not be found.")
        rows = rows[ids.index(marker) + 1 :]
    body: JsonObject = {key: rows[:limit]}
    if len(rows) >= limit > 0:
        link = call.request.following(rows[limit - 1]["id"], call.base)
        body[f"{key}_links"] = [{"rel": "next", "href": link}]
    return Response(200, body)
