"""Glance's API: images, their import and their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collections
from orchestrator.json_types import JsonMapping, JsonObject

# The request token of an image: Glance stores properties that it does not know.
TOKEN_PROPERTY: Final = "orchestrator_token"  # noqa: S105


class Image(Collections):
    """Glance, called as a credential."""

    service: ClassVar[str] = "glance"
    service_type: ClassVar[str] = "image"

    def create_image(self, values: JsonMapping, token: str) -> JsonObject:
        """Create an image without data; `image_ids_with_token` finds it."""
        return self.post("/images", {**values, TOKEN_PROPERTY: token})

    def image(self, image_id: str) -> JsonObject | None:
        """Return an image, None if it does not exist."""
        return self.find_one(f"/images/{image_id}")

    def image_ids_with_token(self, token: str) -> list[str]:
        """Return the images that were created with the token."""
        return [image["id"] for image in self.listed("/images", "images", {TOKEN_PROPERTY: token})]

    def import_from(self, image_id: str, url: str) -> None:
        """Request that Glance downloads the data of an image."""
        method = {"name": "web-download", "uri": url}
        self.post(f"/images/{image_id}/import", {"method": method})

    def import_tasks(self, image_id: str) -> list[JsonObject]:
        """Return the tasks of an image: `status` and `message`."""
        answer = self.find_one(f"/images/{image_id}/tasks") or {}
        tasks: list[JsonObject] = answer.get("tasks") or []
        return tasks

    def change_image(
        self, image_id: str, values: JsonMapping, removed: Iterable[str] = (), known: Iterable[str] = ()
    ) -> None:
        """Set properties of an image and remove others in a single request; `known` are those it has."""
        present = set(known)
        operations: list[dict[str, Any]] = [
            {"op": "replace" if name in present else "add", "path": _pointer(name), "value": value}
            for name, value in values.items()
        ]
        operations += [{"op": "remove", "path": _pointer(name)} for name in removed if name in present]
        if operations:
            self.patch(f"/images/{image_id}", operations)

    def delete_image(self, image_id: str) -> None:
        """Delete an image; an image that does not exist is no error."""
        self.delete(f"/images/{image_id}")

    def deactivate(self, image_id: str) -> None:
        """Make the data of an image unavailable to users; may be repeated."""
        self.post(f"/images/{image_id}/actions/deactivate")

    def reactivate(self, image_id: str) -> None:
        """Make the data of an image available again; may be repeated."""
        self.post(f"/images/{image_id}/actions/reactivate")

    def members(self, image_id: str) -> Sequence[str]:
        """Return the projects with which an image is shared."""
        answer = self.get(f"/images/{image_id}/members")
        return [member["member_id"] for member in answer.get("members") or ()]

    def add_member(self, image_id: str, member: str) -> None:
        """Share an image with a project."""
        self.post(f"/images/{image_id}/members", {"member": member})

    def remove_member(self, image_id: str, member: str) -> None:
        """Stop sharing an image with a project; may be repeated."""
        self.delete(f"/images/{image_id}/members/{member}")


def _pointer(name: str) -> str:
    """Return the JSON pointer to a property."""
    return "/" + name.replace("~", "~0").replace("/", "~1")
