"""Metadata and tags of servers."""

from __future__ import annotations

from simulated_openstack.http import ApiError, Response
from simulated_openstack.nova.servers import Servers
from simulated_openstack.service import Call, Service


class Labels:
    """`/servers/{id}/metadata` and `/servers/{id}/tags`."""

    def __init__(self, nova: Service, servers: Servers) -> None:
        """Add the routes."""
        self._servers = servers
        add = nova.router.add
        one = "/v2.1/servers/{id_}"
        add("GET", f"{one}/metadata", self.metadata)
        add("POST", f"{one}/metadata", self.add_metadata)
        add("PUT", f"{one}/metadata", self.set_metadata)
        add("GET", f"{one}/metadata/{{key}}", self.metadata_item)
        add("DELETE", f"{one}/metadata/{{key}}", self.remove_metadata)
        add("GET", f"{one}/tags", self.tags)
        add("PUT", f"{one}/tags", self.set_tags)
        add("DELETE", f"{one}/tags", self.clear_tags)
        add("GET", f"{one}/tags/{{tag}}", self.tag)
        add("PUT", f"{one}/tags/{{tag}}", self.add_tag)
        add("DELETE", f"{one}/tags/{{tag}}", self.remove_tag)

    def metadata(self, call: Call, id_: str) -> Response:
        """Show the metadata."""
        return Response(200, {"metadata": self._servers.visible(call, id_)["metadata"]})

    def add_metadata(self, call: Call, id_: str) -> Response:
        """Add metadata."""
        row = self._servers.visible(call, id_)
        row["metadata"] = {**row["metadata"], **((call.body or {}).get("metadata") or {})}
        return Response(200, {"metadata": self._servers.touch(row)["metadata"]})

    def set_metadata(self, call: Call, id_: str) -> Response:
        """Replace the metadata."""
        row = self._servers.visible(call, id_)
        row["metadata"] = dict((call.body or {}).get("metadata") or {})
        return Response(200, {"metadata": self._servers.touch(row)["metadata"]})

    def metadata_item(self, call: Call, id_: str, key: str) -> Response:
        """Show a key."""
        row = self._servers.visible(call, id_)
        if key not in row["metadata"]:
            raise ApiError(404, "Metadata item was not found")
        return Response(200, {"meta": {key: row["metadata"][key]}})

    def remove_metadata(self, call: Call, id_: str, key: str) -> Response:
        """Remove a key."""
        row = self._servers.visible(call, id_)
        if key not in row["metadata"]:
            raise ApiError(404, "Metadata item was not found")
        row["metadata"] = {name: value for name, value in row["metadata"].items() if name != key}
        self._servers.touch(row)
        return Response(204)

    def tags(self, call: Call, id_: str) -> Response:
        """List the tags."""
        return Response(200, {"tags": self._servers.visible(call, id_)["tags"]})

    def set_tags(self, call: Call, id_: str) -> Response:
        """Replace the tags."""
        row = self._servers.visible(call, id_)
        row["tags"] = sorted(set((call.body or {}).get("tags") or []))
        return Response(200, {"tags": self._servers.touch(row)["tags"]})

    def clear_tags(self, call: Call, id_: str) -> Response:
        """Remove all tags."""
        row = self._servers.visible(call, id_)
        row["tags"] = []
        self._servers.touch(row)
        return Response(204)

    def tag(self, call: Call, id_: str, tag: str) -> Response:
        """Answer whether a server has a tag."""
        if tag not in self._servers.visible(call, id_)["tags"]:
            raise ApiError(404, f"Instance {id_} has no tag '{tag}'")
        return Response(204)

    def add_tag(self, call: Call, id_: str, tag: str) -> Response:
        """Add a tag."""
        row = self._servers.visible(call, id_)
        known = tag in row["tags"]
        row["tags"] = sorted({*row["tags"], tag})
        self._servers.touch(row)
        return Response(204 if known else 201)

    def remove_tag(self, call: Call, id_: str, tag: str) -> Response:
        """Remove a tag."""
        row = self._servers.visible(call, id_)
        if tag not in row["tags"]:
            raise ApiError(404, f"Instance {id_} has no tag '{tag}'")
        row["tags"] = [item for item in row["tags"] if item != tag]
        self._servers.touch(row)
        return Response(204)
