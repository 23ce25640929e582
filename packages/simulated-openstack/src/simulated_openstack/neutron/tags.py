"""The tags of objects."""

from __future__ import annotations

from typing import Protocol

from simulated_openstack.http import ApiError, Response, Router
from simulated_openstack.json_types import JsonObject
from simulated_openstack.service import Call


class Tagged(Protocol):
    """Objects with tags."""

    def visible(self, call: Call, id_: str) -> JsonObject:
        """Return an object that the caller may read."""

    def owned(self, call: Call, id_: str, verb: str) -> JsonObject:
        """Return an object that the caller may change."""

    def touch(self, row: JsonObject) -> JsonObject:
        """Keep a changed object."""


class Tags:
    """The requests for the tags of a family's objects."""

    def __init__(self, router: Router, family: Tagged, path: str) -> None:
        """Add the routes below the path of an object."""
        self.family = family
        add = router.add
        add("GET", f"{path}/tags", self.index)
        add("PUT", f"{path}/tags", self.replace)
        add("DELETE", f"{path}/tags", self.clear)
        add("GET", f"{path}/tags/{{tag}}", self.show)
        add("PUT", f"{path}/tags/{{tag}}", self.add)
        add("DELETE", f"{path}/tags/{{tag}}", self.remove)

    def index(self, call: Call, id_: str) -> Response:
        """List the tags."""
        return Response(200, {"tags": self.family.visible(call, id_)["tags"]})

    def replace(self, call: Call, id_: str) -> Response:
        """Replace the tags."""
        row = self.family.owned(call, id_, "update")
        row["tags"] = sorted(set((call.body or {}).get("tags") or []))
        return Response(200, {"tags": self.family.touch(row)["tags"]})

    def clear(self, call: Call, id_: str) -> Response:
        """Remove all tags."""
        row = self.family.owned(call, id_, "update")
        row["tags"] = []
        self.family.touch(row)
        return Response(204)

    def show(self, call: Call, id_: str, tag: str) -> Response:
        """Answer whether an object has a tag."""
        self._require_tag(self.family.visible(call, id_), tag)
        return Response(204)

    def add(self, call: Call, id_: str, tag: str) -> Response:
        """Add a tag."""
        row = self.family.owned(call, id_, "update")
        row["tags"] = sorted({*row["tags"], tag})
        self.family.touch(row)
        return Response(201)

    def remove(self, call: Call, id_: str, tag: str) -> Response:
        """Remove a tag."""
        row = self.family.owned(call, id_, "update")
        self._require_tag(row, tag)
        row["tags"] = [item for item in row["tags"] if item != tag]
        self.family.touch(row)
        return Response(204)

    def _require_tag(self, row: JsonObject, tag: str) -> None:
        if tag not in row["tags"]:
            raise ApiError(404, f"Tag {tag} could not be found.", "TagNotFound")
