"""The noisy cloud as seen by a test: its process, and the objects, calls and faults of a project."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.running import eventually

FOLDER = Path(__file__).resolve().parents[1] / "plugins" / "noisy"
# Until an expected state is reached, on a loaded machine. Fewer seconds are convenient during development.
PATIENCE_SECONDS = float(os.environ.get("NOISY_PATIENCE_SECONDS", "90"))
Entry = dict[str, Any]


class CloudProcess:
    """The process of the cloud."""

    def __init__(self) -> None:
        command = [sys.executable, str(FOLDER / "noisy_cloud.py")]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the cloud did not start"
        self._client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def env(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of processes that have the types and reach the cloud."""
        path = [str(FOLDER), *filter(None, [base.get("PYTHONPATH")])]
        return {**base, "NOISY_CLOUD": self.url, "PYTHONPATH": os.pathsep.join(path)}

    def tenant(self, project: str) -> Cloud:
        """Return the cloud of a project."""
        return Cloud(self._client, project)

    def stop(self) -> None:
        """Kill the process."""
        self._client.close()
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Cloud:
    """The objects, calls and faults of a project."""

    def __init__(self, client: httpx.Client, project: str) -> None:
        self._client, self.project = client, project

    # Facts.

    def objects(self, service: str = "compute", **properties: Any) -> list[Entry]:
        """Return the existing objects of a service that have these properties, oldest first."""
        return [
            item
            for item in self._control("state")["objects"]
            if item["service"] == service
            and all(item["properties"].get(name) == value for name, value in properties.items())
        ]

    def ids(self, service: str = "compute", **properties: Any) -> set[str]:
        """Return the ids of `objects`."""
        return {item["id"] for item in self.objects(service, **properties)}

    def labels(self, service: str = "compute") -> list[str]:
        """Return the sorted labels of the existing objects."""
        return sorted(item["properties"]["label"] for item in self.objects(service))

    def one(self, service: str = "compute") -> Entry:
        """Return the only object of a service."""
        (item,) = self.objects(service)
        return item

    @property
    def mark(self) -> int:
        """The number of calls so far; `calls(since=mark)` returns the later calls."""
        return len(self._control("state")["calls"])

    def calls(self, verb: str = "", outcome: str = "", *, service: str = "", since: int = 0) -> list[Entry]:
        """Return the log of the calls of the orchestrator, oldest first."""
        return [
            call
            for call in self._control("state", after=since)["calls"]
            if call["verb"] == (verb or call["verb"])
            and call["outcome"] == (outcome or call["outcome"])
            and call["service"] == (service or call["service"])
        ]

    def performed(self, verb: str, *, service: str = "", since: int = 0) -> int:
        """Return the number of calls with an effect, with or without an answer."""
        calls = self.calls(verb, service=service, since=since)
        return sum(call["outcome"] in ("ok", "silent") for call in calls)

    # Expectations that are awaited.

    def await_calls(self, verb: str = "", outcome: str = "", count: int = 1, **filters: Any) -> list[Entry]:
        """Return when at least `count` such calls are logged."""
        return self.until(lambda: len(found := self.calls(verb, outcome, **filters)) >= count and found)

    def await_objects(self, count: int, state: str = "", service: str = "compute") -> list[Entry]:
        """Return the objects when `count` objects are in this state."""

        def found() -> list[Entry] | None:
            items = [item for item in self.objects(service) if item["state"] == (state or item["state"])]
            return items if len(items) == count else None

        return self.until(found)

    def until(self, condition: Callable[[], Any]) -> Any:
        """Return the value of `condition` when it becomes true."""
        try:
            return eventually(condition, PATIENCE_SECONDS)
        except AssertionError:
            raise AssertionError(f"not in time; calls: {self.describe()}") from None

    def describe(self) -> list[str]:
        """Return the calls as short lines, for the message of a failed test."""
        return [f"{call['verb']} {call['id'] or call['name']} {call['outcome']}" for call in self.calls()][
            -60:
        ]

    # Faults.

    def fault(self, effect: str, *verbs: str, **match: Any) -> int:
        """Apply an effect to matching calls from now on; return the id of the fault."""
        return int(self._control("fault", effect=effect, verbs=list(verbs) or None, **match)["id"])

    def clear(self, fault: int | None = None) -> None:
        """Remove a fault, or all faults."""
        self._control("clear", **({} if fault is None else {"id": fault}))

    @contextlib.contextmanager
    def outage(self, *services: str, effect: str = "busy") -> Iterator[None]:
        """Reject every call of these services (default: all) in the block."""
        fault = self.fault(effect, services=list(services) or None)
        try:
            yield
        finally:
            self.clear(fault)

    # Changes by hand.

    def finish(self, id: str) -> None:
        """Finish the held operation of an object."""
        self._control("finish", id=id)

    def change(self, id: str, *, state: str | None = None, **properties: Any) -> None:
        """Change an object without the orchestrator."""
        self._control("change", id=id, properties=properties, **({"state": state} if state else {}))

    def remove(self, id: str) -> None:
        """Delete an object without the orchestrator."""
        self._control("remove", id=id)

    def _control(self, action: str, **body: Any) -> Any:
        answer = self._client.post(f"/control/{self.project}/{action}", json=body)
        answer.raise_for_status()
        return answer.json()
