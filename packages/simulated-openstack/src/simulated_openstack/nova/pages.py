"""Links and pages of the compute API."""

from __future__ import annotations

from urllib.parse import urlencode

from simulated_openstack.http import ApiError, Response
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call

MAX_PAGE = 1000


def links_of(call: Call, collection: str, id_: str) -> list[JsonObject]:
    """Return the links of an object."""
    return [
        {"rel": "self", "href": f"{call.base}/v2.1/{collection}/{id_}"},
        {"rel": "bookmark", "href": f"{call.base}/{collection}/{id_}"},
    ]


def page_of(call: Call, rows: list[JsonObject], key: str) -> tuple[list[JsonObject], JsonObject]:
    """Return a page of rows, and the part of the answer with the link to the next page."""
    marker, asked = call.request.value("marker"), call.request.value("limit")
    if asked is not None and not asked.isdigit():
        raise ApiError(400, "Invalid input for query parameters limit.")
    limit = min(int(asked or MAX_PAGE), MAX_PAGE)
    if marker:
        ids = [row["id"] for row in rows]
        if marker not in ids:
            raise ApiError(400, f"marker [{marker}] not found")
        rows = rows[ids.index(marker) + 1 :]
    shown = rows[:limit]
    if shown and len(shown) == limit:
        query = sorted((name, value) for name, value in call.request.query if name != "marker")
        link = f"{call.base}{call.request.path}?{urlencode([*query, ('marker', shown[-1]['id'])])}"
        return shown, {f"{key}_links": [{"rel": "next", "href": link}]}
    return shown, {}


def listing(call: Call, key: str, rows: list[JsonObject]) -> Response:
    """Return the answer with a page of a list."""
    shown, links = page_of(call, rows, key)
    return Response(200, {key: shown, **links})
