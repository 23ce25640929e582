"""A user of the orchestrator: requests over HTTP in a project of the test's own, and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import psycopg

from tests.e2e.running import eventually
from tests.noisy.cloud import PATIENCE_SECONDS, Cloud

Entry = dict[str, Any]


class Project:
    """The stacks of a project, and its cloud."""

    def __init__(self, client: httpx.Client, cloud: Cloud, database_url: str) -> None:
        self.client, self.cloud, self._database_url = client, cloud, database_url
        self.name = cloud.project
        self._paths: dict[str, str] = {}

    # Requests.

    def create(self, stack: str, resources: Mapping[str, Any], **body: Any) -> None:
        """Request a stack."""
        request = {"stack_name": stack, "template": document(resources), **body}
        made = self.ask("POST", "/stacks", request).json()["stack"]
        self._paths[stack] = f"/stacks/{stack}/{made['id']}"

    def created(self, stack: str, resources: Mapping[str, Any], **body: Any) -> None:
        """Create a stack and wait until it is complete."""
        self.create(stack, resources, **body)
        self.settle(stack, "CREATE_COMPLETE")

    def update(self, stack: str, resources: Mapping[str, Any], **body: Any) -> None:
        """Request another template."""
        self.ask("PUT", self.path(stack), {"template": document(resources), **body})

    def patch(self, stack: str, **body: Any) -> None:
        """Request an update with the given changes of the template; an empty body changes nothing."""
        self.ask("PATCH", self.path(stack), body)

    def delete(self, stack: str) -> None:
        """Request the deletion of a stack."""
        self.ask("DELETE", self.path(stack))

    def act(self, stack: str, action: str, *, expected: int = 0, query: str = "") -> httpx.Response:
        """Request `check`, `suspend` …; `expected` is the status of an error."""
        return self.ask("POST", f"{self.path(stack)}/actions{query}", {action: None}, expected=expected)

    def snapshot(self, stack: str, *, expected: int = 0, query: str = "") -> httpx.Response:
        """Request a snapshot."""
        return self.ask("POST", f"{self.path(stack)}/snapshots{query}", {}, expected=expected)

    def mark_unhealthy(self, stack: str, resource: str, *, expected: int = 0) -> httpx.Response:
        """Mark a resource unhealthy."""
        body = {"mark_unhealthy": True, "resource_status_reason": "marked by the test"}
        return self.ask("PATCH", f"{self.path(stack)}/resources/{resource}", body, expected=expected)

    def signal(self, stack: str, resource: str, details: Any = None) -> None:
        """Send a signal to a resource."""
        self.ask("POST", f"{self.path(stack)}/resources/{resource}/signal", details)

    # Answers.

    def show(self, stack: str) -> Entry:
        """Return a stack; its status is `GONE` if it does not exist."""
        answer = self.client.get(self.path(stack))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return {"stack_status": "GONE", "stack_status_reason": ""}
        shown: Entry = answer.raise_for_status().json()["stack"]
        return shown

    def status(self, stack: str) -> str:
        """Return the status of a stack."""
        return str(self.show(stack)["stack_status"])

    def reason(self, stack: str) -> str:
        """Return the status reason of a stack."""
        return str(self.show(stack)["stack_status_reason"])

    def settle(self, stack: str, expected: str) -> Entry:
        """Return a stack when its operation has ended; the status must be the expected status."""

        def ended() -> Entry | None:
            shown = self.show(stack)
            if shown["stack_status"] == "DELETE_COMPLETE":
                return {**shown, "stack_status": "GONE"}
            return None if shown["stack_status"].endswith("_IN_PROGRESS") else shown

        try:
            shown: Entry = eventually(ended, PATIENCE_SECONDS)
        except AssertionError:
            message = f"{self.show(stack)}\n{self.why(stack)}\n{self.cloud.describe()}"
            raise AssertionError(f"the operation did not end: {message}") from None
        assert shown["stack_status"] == expected, (
            f"{shown['stack_status']}, not {expected}: {shown['stack_status_reason']}; "
            f"calls: {self.cloud.describe()}"
        )
        return shown

    def resources(self, stack: str) -> dict[str, Entry]:
        """Return the resources of a stack by name."""
        listed = self.ask("GET", f"{self.path(stack)}/resources").json()["resources"]
        return {row["resource_name"]: row for row in listed}

    def resource(self, stack: str, name: str) -> Entry:
        """Return a resource."""
        shown: Entry = self.ask("GET", f"{self.path(stack)}/resources/{name}").json()["resource"]
        return shown

    def statuses(self, stack: str) -> dict[str, str]:
        """Return the status of each resource."""
        return {name: row["resource_status"] for name, row in self.resources(stack).items()}

    def events(self, stack: str, resource: str = "") -> list[Entry]:
        """Return the events of a stack or a resource, oldest first."""
        place = f"{self.path(stack)}/resources/{resource}" if resource else self.path(stack)
        listed: list[Entry] = self.ask("GET", f"{place}/events").json()["events"]
        return listed

    def why(self, stack: str, resource: str = "") -> Entry:
        """Return the explanation of a stack or a resource."""
        place = f"{self.path(stack)}/resources/{resource}" if resource else self.path(stack)
        explained: Entry = self.ask("GET", f"{place}/why").json()["why"]
        return explained

    def revisions(self, stack: str) -> list[Entry]:
        """Return the revisions of a stack, newest first."""
        listed: list[Entry] = self.ask("GET", f"{self.path(stack)}/revisions").json()["revisions"]
        return listed

    def diff(self, stack: str, before: int, after: int) -> Entry:
        """Return the differences between two revisions."""
        place = f"{self.path(stack)}/revisions/{before}/diff/{after}"
        shown: Entry = self.ask("GET", place).json()["diff"]["sections"]
        return shown

    def child(self, stack: str, resource: str) -> str:
        """Return the name of the child stack of a resource; requests accept it like a stack's name."""
        child = self.resource(stack, resource)["physical_resource_id"]
        shown = self.ask("GET", f"/stacks/{child}").json()["stack"]
        name = str(shown["stack_name"])
        self._paths[name] = f"/stacks/{name}/{shown['id']}"
        return name

    def path(self, stack: str) -> str:
        """Return the path of a stack."""
        return self._paths[stack]

    def ask(self, method: str, path: str, body: Any = None, *, expected: int = 0) -> httpx.Response:
        """Send a request. Its status must be `expected`, or without an expected status a success."""
        answer = self.client.request(method, path, json=body)
        message = f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        assert answer.status_code == expected if expected else answer.is_success, message
        return answer

    def abandon(self) -> None:
        """Clear all faults and delete all stacks, without waiting: later tests need the workers."""
        self.cloud.clear()
        for path in self._paths.values():
            self.client.delete(path)

    # Time.

    def pass_timeout(self, stack: str) -> None:
        """Move the start of the operation into the past, beyond the timeout, also in nested stacks."""
        uuid = self.path(stack).rpartition("/")[2]
        with psycopg.connect(self._database_url) as db:
            db.execute(
                "UPDATE stack SET action_started_at = action_started_at - interval '1 day' "
                "WHERE root_id = (SELECT id FROM stack WHERE uuid = %s)",
                (uuid,),
            )


def document(resources: Mapping[str, Any]) -> Entry:
    """Return a template with these resources."""
    return {"heat_template_version": "2021-04-16", "resources": dict(resources)}
