"""The `things` fixture: the server behind Test::Thing, its log, and the environment of worker processes.

A test module uses it with ``from tests.plugins.thing_fixture import things`` or through `pytest_plugins`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

THING_DIR = Path(__file__).parent / "thing"


class ThingServer:
    """The process of the server, and its log."""

    def __init__(self, folder: Path) -> None:
        self.log_path = folder / "things.jsonl"
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, on its earlier port if it had one, with the things in its log."""
        port = self.url.rpartition(":")[2] or "0"
        command = [sys.executable, str(THING_DIR / "server.py"), str(self.log_path), port]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the things' server did not start"

    def stop(self) -> None:
        """Kill it; requests that are not logged have no effect."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def set_noise(self, outages: Mapping[str, float], stuck: float, held: float) -> None:
        """Set the end of each outage, a timestamp by service, and the fractions of things that never become
        ready and of changes that are carried out late.
        """
        body = {"outages": dict(outages), "stuck": stuck, "held": held}
        httpx.post(f"{self.url}/noise", json=body, timeout=30, trust_env=False).raise_for_status()

    def held_until(self) -> float:
        """Return when the last held change is carried out, a timestamp."""
        answer = httpx.get(f"{self.url}/noise", timeout=30, trust_env=False)
        return float(answer.raise_for_status().json()["held_until"])

    def freeze(self) -> None:
        """Make it silent: the system accepts connections, and no answer comes."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume it, with all requests received since."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def env(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment in which a process knows Test::Thing and finds this server."""
        env = dict(os.environ if base is None else base)
        path = [str(THING_DIR), *filter(None, [env.get("PYTHONPATH")])]
        return env | {"THING_URL": self.url, "PYTHONPATH": os.pathsep.join(path)}

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """Return all its log entries, or those of a single event, in order."""
        text = self.log_path.read_text() if self.log_path.exists() else ""
        entries = [json.loads(line) for line in text.splitlines()]
        return [entry for entry in entries if event in (None, entry["event"])]

    def made(self, stack: str = "") -> Counter[str]:
        """Return how many things were ever made, or only a stack's, by the physical name asked for."""
        return Counter(entry["name"] for entry in self._created(stack))

    def alive(self, stack: str = "") -> dict[str, str]:
        """Return the things that are there, or only a stack's: id to physical name."""
        gone = {entry["id"] for entry in self.log("deleted")}
        return {entry["id"]: entry["name"] for entry in self._created(stack) if entry["id"] not in gone}

    def values(self) -> dict[str, str]:
        """Return the value each thing was given last."""
        result = {entry["id"]: entry["thing"]["value"] for entry in self.log("created")}
        return result | {entry["id"]: entry["value"] for entry in self.log("updated")}

    def _created(self, stack: str) -> list[dict[str, Any]]:
        prefix = f"{stack}-" if stack else ""
        return [entry for entry in self.log("created") if entry["name"].startswith(prefix)]


@pytest.fixture
def things(tmp_path: Path) -> Iterator[ThingServer]:
    """Run a server of things for a single test."""
    server = ThingServer(tmp_path)
    server.start()
    yield server
    server.stop()
