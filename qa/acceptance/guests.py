"""The signals of the servers and agents that a template waits for."""

from __future__ import annotations

import base64
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from orchestrator.errors import ProviderError
from qa.acceptance.background import working
from qa.acceptance.installation import Failed, Installation

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


POLL_SECONDS: Final = 3.0
SCRIPT_SECONDS: Final = 300
USER_DATA: Final = "OS-EXT-SRV-ATTR:user_data"
USER_DATA_VERSION: Final = "2.3"


@contextmanager
def scripts_run(installation: Installation) -> Iterator[None]:
    """Run the scripts of new servers that call the orchestrator, as their guests would, during the block."""
    with working(partial(_run_scripts, installation)):
        yield


def _run_scripts(installation: Installation, over: threading.Event) -> None:
    compute, known = installation.administrator.compute, set[str]()
    while not over.wait(POLL_SECONDS):
        with suppress(ProviderError):
            for server in compute.listed("/servers/detail", "servers", microversion=USER_DATA_VERSION):
                if server["status"] == "ACTIVE" and server["id"] not in known:
                    known.add(server["id"])
                    text = base64.b64decode(server.get(USER_DATA) or "").decode(errors="replace")
                    if text.startswith("#!/bin/sh") and installation.up.url in text:
                        threading.Thread(target=_run_script, args=(text,), daemon=True).start()


def _run_script(text: str) -> None:
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["sh", "-c", text], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=SCRIPT_SECONDS,
        )  # fmt: skip
