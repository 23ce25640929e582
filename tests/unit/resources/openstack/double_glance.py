"""Glance in memory. A test decides when an import ends."""

from __future__ import annotations

import itertools
from typing import Any

from tests.unit.resources.openstack.double_cloud import Answer, Request, refusal


class DoubleGlance:
    """Answers requests about images, their import and their members."""

    def __init__(self) -> None:
        """Start without images; imports succeed at the second observation."""
        self.images: dict[str, dict[str, Any]] = {}
        self.members: dict[str, list[str]] = {}
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.import_error = ""
        self._numbers = itertools.count(1)

    def __call__(self, request: Request) -> Answer:
        """Answer a request."""
        match request.method, request.path:
            case "POST", ("images",):
                return self._create(request.body)
            case "GET", ("images",):
                token = request.query["orchestrator_token"]
                found = [one for one in self.images.values() if one.get("orchestrator_token") == token]
                return Answer({"images": found})
            case method, ("images", image_id, *rest):
                if image_id not in self.images:
                    return refusal(404, f"No image found with ID {image_id}")
                return self._of_image(method, image_id, rest, request)
        raise AssertionError(request)

    def _create(self, values: dict[str, Any]) -> Answer:
        image_id = values.get("id") or f"image-{next(self._numbers)}"
        if image_id in self.images:
            return refusal(409, f"Image ID {image_id} already exists!")
        self.images[image_id] = {"protected": False, **values, "id": image_id, "status": "queued"}
        self.members[image_id], self.tasks[image_id] = [], []
        return Answer(self.images[image_id], 201)

    def _of_image(self, method: str, image_id: str, rest: list[str], request: Request) -> Answer:
        image = self.images[image_id]
        match method, rest:
            case "GET", []:
                answer = Answer(dict(image))
                self._progress(image_id)
                return answer
            case "GET", ["tasks"]:
                return Answer({"tasks": self.tasks[image_id]})
            case "POST", ["import"]:
                image["status"] = "importing"
                self.tasks[image_id].append({"status": "processing", "input": request.body})
                return Answer(status=202)
            case "PATCH", []:
                return self._patch(image, request.body)
            case "DELETE", []:
                if image["protected"]:
                    return refusal(403, f"Image {image_id} is protected and cannot be deleted.")
                del self.images[image_id]
                return Answer(status=204)
            case "POST", ["actions", action]:
                image["status"] = {"deactivate": "deactivated", "reactivate": "active"}[action]
                return Answer(status=204)
        return self._membership(method, image_id, rest, request)

    def _progress(self, image_id: str) -> None:
        image = self.images[image_id]
        if image["status"] == "importing":
            task = self.tasks[image_id][-1]
            task["status"] = "failure" if self.import_error else "success"
            task["message"] = self.import_error
            image["status"] = "queued" if self.import_error else "active"

    def _patch(self, image: dict[str, Any], operations: Any) -> Answer:
        for one in operations:
            name = one["path"][1:]
            if one["op"] in ("replace", "remove") and name not in image:
                return refusal(409, f"Property {name} does not exist.")
            if one["op"] == "remove":
                del image[name]
            else:
                image[name] = one["value"]
        return Answer(image)

    def _membership(self, method: str, image_id: str, rest: list[str], request: Request) -> Answer:
        members = self.members[image_id]
        match method, rest:
            case "GET", ["members"]:
                return Answer({"members": [{"member_id": one} for one in members]})
            case "POST", ["members"]:
                if request.body["member"] in members:
                    return refusal(409, "Member is duplicated")
                members.append(request.body["member"])
                return Answer({})
            case "DELETE", ["members", member]:
                members.remove(member)
                return Answer(status=204)
        raise AssertionError(request)
