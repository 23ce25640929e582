"""The signals of the servers and agents that a template waits for."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any, Final

from tests.openstack.acceptance.installation import Failed, Installation

CONDITIONS: Final = ("AWS::CloudFormation::WaitCondition", "OS::Heat::WaitCondition")
HANDLES: Final = tuple(f"{name}Handle" for name in CONDITIONS)
DEPLOYMENTS: Final = ("OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment")


class Guests:
    """Sends the signals of the servers of stacks."""

    def __init__(self, installation: Installation) -> None:
        """Send nothing yet."""
        self._installation = installation

    def signal(self, name: str) -> None:
        """Signal all handles and deployments of a stack that something waits for."""
        rows: list[dict[str, Any]] = []
        with suppress(Failed):  # the stack is deleted
            rows = self._installation.resources(name)
        waiting = {row["resource_type"] for row in rows if row["resource_status"].endswith("IN_PROGRESS")}
        for row in rows:
            kind = row["resource_type"]
            if (
                kind in HANDLES
                and waiting.intersection(CONDITIONS)
                and row["resource_status"].endswith("COMPLETE")
            ):
                self._send(row, _success(kind))
            if kind in DEPLOYMENTS and row["resource_status"].endswith("IN_PROGRESS"):
                self._send(row, {"deploy_status_code": 0, "deploy_stdout": "done", "deploy_stderr": ""})

    def _send(self, row: dict[str, Any], body: dict[str, Any]) -> None:
        stack = next(link["href"] for link in row["links"] if link["rel"] == "stack")
        path = f"/stacks/{stack.partition('/stacks/')[2]}/resources/{row['resource_name']}/signal"
        with suppress(Failed):  # the resource has ended
            self._installation.request("POST", path, json=body)


def _success(kind: str) -> dict[str, str]:
    id_ = uuid.uuid4().hex[:8]
    if kind.startswith("AWS"):
        return {"Status": "SUCCESS", "UniqueId": id_, "Data": "done", "Reason": "done"}
    return {"status": "SUCCESS", "id": id_, "data": "done", "reason": "done"}
